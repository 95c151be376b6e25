"""Launches of a case's kernels on a device, and checks of their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.model.condition import Condition
from harness.model.expression import Expression

TYPES = (
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
)  # as NumPy spells them, but for bfloat16, which it does not know
"""Element types of arguments."""

SPELLINGS: Mapping[str, str] = {
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned int": "uint32",
    "signed char": "int8",
}
"""CUDA C++'s names of some of them, which definitions may use."""

FILLS = ("zeros", "ones", "sequence", "random")
"""Initial values of arrays: 0, 1, 2, … or numbers from -1 to 1 (-8 to 8 for integers) by a seed."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of a kernel: an array in the device's memory, or a number.

    Parameters
    ----------
    name : str
        What messages call it.
    type : str
        One of `TYPES`, or a definition that names one, without ``[]``.
    size : tuple of Expression or None
        Lengths of an array's dimensions; None for a number.
    fill : str or float
        What an array starts with.
    seed : int
        For ``random``.
    value : Expression or None
        The number.
    """

    name: str
    type: str
    size: tuple[Expression, ...] | None = None
    fill: str | float = "zeros"
    seed: int = 0
    value: Expression | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchRule:
    """The launch of one kernel when `when` holds.

    Parameters
    ----------
    kernel : str
        Its name.
    grid, block : tuple of Expression
        Up to three dimensions each.
    shared : Expression
        Dynamic shared memory, in bytes.
    opt_in : bool
        Whether the host raises the kernel's limit of dynamic shared memory first.
    cooperative : bool
        Whether the whole grid must be resident at once, so that it can wait for itself.
    arguments : tuple of Argument
        In the kernel's order.
    """

    when: Condition
    kernel: str
    grid: tuple[Expression, ...]
    block: tuple[Expression, ...]
    shared: Expression
    opt_in: bool = False
    cooperative: bool = False
    arguments: tuple[Argument, ...] = ()
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class VerifyRule:
    """The check of results when `when` holds.

    Parameters
    ----------
    reference : Path
        A Python file with a function of each kernel's name, which does to NumPy arrays what the kernel does.
    rtol, atol : float
        Tolerances, as in `numpy.allclose`.
    """

    when: Condition
    reference: Path
    rtol: float = 0.0
    atol: float = 0.0
    line: int = 0
