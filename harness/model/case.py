"""Cases: declared programs and what is expected of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.model.condition import Condition
from harness.model.enums import Stage, Status
from harness.model.launch import LaunchRule, VerifyRule
from harness.model.library import HeaderLibrary

Scalar = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One assignment of a case's parameters.

    Parameters
    ----------
    labels : Mapping[str, Scalar]
        What conditions see and the variant's name is made of: ``{"fragment": "tf32"}``.
    libraries : Mapping[str, str]
        Header libraries by name, with the version of each: ``{"cutlass": "3.5.1"}``.
    definitions : Mapping[str, Scalar]
        What the program sees: macros of CUDA C++ and module constants of Python. A parameter whose
        values are tables contributes the keys of the chosen table; another one its own
        name in capitals.
    options : str
        For a program without a case, its compile options, which separate its cells from those with others.
    """

    labels: Mapping[str, Scalar]
    definitions: Mapping[str, Scalar]
    libraries: Mapping[str, str] = field(default_factory=dict)
    options: str = ""

    @cached_property
    def name(self) -> str:
        """``fragment=tf32,arch=given``; empty for a case without parameters. Of a program without a case its options."""
        return self.options or ",".join(f"{key}={spell(value)}" for key, value in self.labels.items())


def spell(value: Scalar) -> str:
    """Spell a parameter's value as cell names and macros do: ``true``, ``49156``, ``half``."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """An expected outcome for cells that match `when`.

    Parameters
    ----------
    when : Condition
        Where it applies.
    status : Status
        The expected status.
    stage : Stage or None
        The stage at which it happens; None accepts any.
    diagnostic : str or None
        Regular expression that the message of one of the diagnostics must match (`harness.patterns`).
    xfail : bool
        True for a fault that should be fixed: a match is then ``xfail`` and a build is ``xpass``.
    reason, link : str
        Why, and the public page that says so.
    line : int
        Line of the table in its case file.
    """

    when: Condition
    status: Status
    stage: Stage | None = None
    diagnostic: str | None = None
    xfail: bool = False
    reason: str = ""
    link: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class UnsupportedRule:
    """Cells of a case that are not applicable, and why."""

    when: Condition
    reason: str
    link: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class OptionRule:
    """Compiler and library options that apply where `when` holds; later rules win."""

    when: Condition
    values: Mapping[str, Any]
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A declared program.

    Parameters
    ----------
    name : str
        ``topic/name``, from its place below the folder of cases.
    path : Path
        The ``case.toml``, or the program itself for a file without a case.
    program : str
        Digest of where a file without a case lies: its name alone does not tell it from others. Empty for a case.
    project : str
        Name of the project that it belongs to (`harness.cases.whose`), which tells it from another project's of its name. Empty for cumatrix's own cases, and where nothing names the project.
    title, description : str
        One line, and a paragraph.
    features : tuple of str
        Features of CUDA that the case exercises, for grouping and selection.
    links : tuple of str
        Pages of upstream that tell of it.
    backends : tuple of str
        The only backends that it is for; empty for every one that speaks a language of its sources.
    host_compilers : tuple of str
        Names of the compilers that nvcc hands the host's half to; the machine's own when empty.
    heavy : bool
        Whether it takes long: a run without names leaves it out.
    sources : Mapping[str, Path]
        Program by language: ``cuda``, ``torch`` (CUDA C++ with PyTorch's headers) and ``python``.
    together : tuple of Path
        Further files of the same program, in CUDA C++: each is a translation unit, and all of them are linked where they are relocatable.
    root : Path or None
        The project's folder, where the program or its headers lie outside of the case's: records name files as seen from there.
    entries : Mapping[str, Mapping[str, str]]
        By language, the kernels that must come out, each with its signature (empty for CUDA C++,
        a Numba signature such as ``void(float32[:])`` for Python).
    libraries : Mapping[str, HeaderLibrary]
        Header libraries that its variants name versions of.
    variants : tuple of Variant
        Every assignment of the case's parameters.
    options, unsupported, expectations : tuple
        Rules, in the order of the file. The first expectation that applies counts; where none
        does, the cell is expected to be built.
    launches, verify : tuple
        How kernels are launched on a device and how results are checked: for each kernel the first launch that
        applies counts, and the first check that does.
    """

    name: str
    path: Path
    title: str
    program: str = ""
    project: str = ""
    description: str = ""
    features: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    host_compilers: tuple[str, ...] = ()
    heavy: bool = False
    sources: Mapping[str, Path] = field(default_factory=dict)
    together: tuple[Path, ...] = ()
    root: Path | None = None
    entries: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    libraries: Mapping[str, HeaderLibrary] = field(default_factory=dict)
    variants: tuple[Variant, ...] = (Variant(labels={}, definitions={}),)
    options: tuple[OptionRule, ...] = ()
    unsupported: tuple[UnsupportedRule, ...] = ()
    launches: tuple[LaunchRule, ...] = ()
    verify: tuple[VerifyRule, ...] = ()
    expectations: tuple[Expectation, ...] = ()

    @property
    def has_file(self) -> bool:
        """Return whether the case has its own ``case.toml``; otherwise a user or a configuration named its file."""
        return self.path.name == "case.toml"

    @property
    def topic(self) -> str:
        """The folder that groups the case with others."""
        return self.name.split("/")[0]
