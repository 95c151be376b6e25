"""A pair: two states of a machine, and a command for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .changes import Change, Content, Variable

CUDA = ("nvrtc", "cupy-nvrtc", "cupy-jitify", "nvcc")
PYTHON = ("numba", "numba-cuda")

KERNEL = 'extern "C" __global__ void k(int *a) { *a = N; }\n'
"""Return a kernel whose code depends on N."""
KERNEL_PY = "from numba import cuda\n\n@cuda.jit\ndef k(a):\n    a[0] = N\n"
"""Return the same program for Numba."""
ONE, TWO = "#define N 1\n", "#define N 2\n"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """State A (`files`), and the `change` that makes state B; `test_pairs.py` has the conditions.

    In every text, ``@here@`` is the pair's folder, ``@toolkit@`` a copy of the toolkit, ``@store@`` the toolkit itself, ``@site@`` and
    ``@source@`` are folders in the pair's own environment, and ``@path@`` is ``$PATH``.

    Parameters
    ----------
    name : str
        Name of the test.
    backends : tuple of str
        Backends to run it with.
    files : Mapping
        Texts (or links) by name. ``kernel.cu`` or ``kernel.py`` is the program, unless `command` names another.
    change : tuple
        `Change` and `Variable`, in order.
    args : tuple of str
        Further arguments of ``cumatrix try``.
    command : tuple of str
        The whole command instead of ``try``, without the axes.
    variables : Mapping[str, str]
        Variables of state A.
    environment : str
        ``shared``; ``own``: a copy of it; ``editable``: numba-cuda's sources, installed with ``-e``; ``pth``: CuPy in a
        folder that a ``.pth`` names.
    copy : str
        ``local``: ``-t`` is a copy of the toolkit, like another CUDA of the machine; ``store``: the toolkit is in the pair's own data
        folder.
    host : bool
        Whether nvcc runs the host pass, too.
    matters : bool
        Whether the change changes the outcome; otherwise the outcome must stay.
    kept : bool
        Whether the cache must answer A while nothing changes. False if the files that were read cannot be known.
    """

    name: str
    backends: tuple[str, ...]
    files: Mapping[str, Content]
    change: tuple[Change | Variable, ...]
    args: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    environment: str = "shared"
    copy: str = ""
    host: bool = False
    matters: bool = True
    kept: bool = True
