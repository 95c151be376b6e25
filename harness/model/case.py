"""Cases: declared programs, their kernels and their expected outcomes."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.model.condition import Condition
from harness.model.expression import Expression
from harness.model.outcome import Stage, Status

_SHOWN = 6
# A kernel cannot be a member of a class, so every name in front of a kernel's own name is a namespace
# (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
_NESTED = re.compile(r"_ZNK?")
_PLAIN = re.compile(r"_ZL?(?=\d)")
_LENGTH = re.compile(r"L?(\d{1,5})")
_TAG = re.compile(r"B(?=\d)")
_ANONYMOUS = "_GLOBAL__N"


def name_of(symbol: str) -> str:
    """Return the name of a kernel in its source, ``ns::reduce``, without parameters and template arguments.

    Unnamed namespaces are omitted. A symbol that is not mangled is returned unchanged.
    """
    nested = _NESTED.match(symbol)
    start = nested or _PLAIN.match(symbol)
    if not start:
        return symbol
    names, place = [], start.end()
    while length := _LENGTH.match(symbol, place):
        place = length.end() + int(length[1])
        names.append(symbol[length.end() : place])
        while tag := _TAG.match(symbol, place):  # Numba and GCC's inline namespaces append tags to a name
            length = _LENGTH.match(symbol, tag.end())
            place = length.end() + int(length[1]) if length else len(symbol)
        if not nested:
            break
    if not names or place > len(symbol):
        return symbol
    return "::".join(name for name in names if not name.startswith(_ANONYMOUS)) or symbol


@dataclass(frozen=True, kw_only=True)
class RequiredKernels:
    """Kernels that a built program must contain to match its expectation.

    Parameters
    ----------
    names : tuple of str
        Required kernels: symbols, or names as in the source, with or without their namespaces.
    count : int
        Minimum number of kernels.
    """

    names: tuple[str, ...] = ()
    count: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[RequiredKernels]) -> RequiredKernels:
        """Combine the requirements of several files of one program."""
        each = list(parts)
        if len(each) == 1:
            return each[0]
        names = dict.fromkeys(name for part in each for name in part.names)
        return cls(names=tuple(names), count=sum(part.count or len(part.names) for part in each))

    def missing(self, symbols: Iterable[str]) -> str:
        """Return a sentence on the missing kernels, given the symbols of an artifact; empty if no kernel is missing."""
        there = list(symbols)
        found = [name_of(symbol) for symbol in there]
        known = {*there, *(name[place:] for name in found for place in _starts(name))}
        lacking = [name for name in self.names if name not in known]
        if lacking:
            what = f"kernel{'s' if len(lacking) > 1 else ''} {_listed(lacking)} {'are' if len(lacking) > 1 else 'is'} missing"
        elif len(there) < self.count:
            what = f"{len(there)} kernel{'' if len(there) == 1 else 's'} came out where at least {self.count} must"
        else:
            return ""
        return f"{what} (kernels there: {_listed(found)})"


def tensor_cores_of(kernels: Iterable[str | None]) -> str | None:
    """Return the tensor core instructions of several kernels, ``HMMA IMMA``; empty without any, None if they are unknown."""
    each = list(kernels)
    if not any(each):
        return "" if each and None not in each else None
    return " ".join(sorted({name for names in each for name in (names or "").split()}))


def _starts(name: str) -> list[int]:
    """Return the positions in a name at which it starts with and without its namespaces."""
    return [0, *(match.end() for match in re.finditer("::", name))]


def _listed(names: Iterable[str]) -> str:
    counts = Counter(names)
    shown = [f"{name} ({count} instances)" if count > 1 else name for name, count in counts.items()]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN])}{more}" or "none"


@dataclass(frozen=True, kw_only=True)
class Headers:
    """Headers that no wheel contains: those of a folder or of a checked-out commit.

    Parameters
    ----------
    include : tuple of Path
        Include directories.
    origin : Mapping[str, str]
        Origin in records: ``headers``, the version that the headers define; ``commit``; ``path`` or ``url``.
    problem : str
        Reason why the headers are missing; empty if they exist.
    """

    include: tuple[Path, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def fingerprint(self) -> str:
        """Hash of the include directories and the origin.

        The contents of the files count when a compiler reads them.
        """
        text = json.dumps([list(map(str, self.include)), dict(self.origin)], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class HeaderLibrary:
    """Headers from a wheel or a repository.

    Parameters
    ----------
    name : str
        Name in conditions, variants and records: ``cutlass``.
    packages : Mapping[str, str]
        Wheel on PyPI by major version; the key ``""`` covers every other major version.
    include : tuple of str
        Candidate include folders of the wheel. The first folder that a release contains is used.
    header : str
        Header in the include folder that defines the version; empty if no header does.
    macros : tuple of str
        Macros of that header, one per part of the version. A single macro encodes all parts in one number.
    digits : tuple of int
        Digits of each part but the first, for a single macro: ``(3, 2)`` reads 300104 as 3.1.4. Empty: the number is
        the version.
    releases : Mapping[str, str]
        Wheel by version, for a library whose wheels have other version numbers: ``{"3.1.4":
        "nvidia-cuda-cccl==13.1.115"}``.
    checkout : tuple of str
        Include directories of a checkout.
    aliases : tuple of str
        Further names that questions may use.
    tracker, notes : str
        Address of the form for a new issue, and of a release's notes with ``{}`` in place of the version; empty without
        one.
    built : Mapping[str, Headers]
        Unreleased versions by number: those that ``[libraries]`` or ``--library`` names by folder or revision.
    """

    name: str
    packages: Mapping[str, str]
    include: tuple[str, ...]
    header: str = ""
    macros: tuple[str, ...] = field(default=())
    digits: tuple[int, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)
    checkout: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tracker: str = ""
    notes: str = ""
    built: Mapping[str, Headers] = field(default_factory=dict)

    def problem(self, version: str) -> str | None:
        """Return the reason why no wheel has this version; None if a wheel may have it."""
        if self.releases:
            return None if version in self.releases else self._not_among(version)
        if "" in self.packages or version.split(".")[0] in self.packages:
            return None
        if not self.packages:
            return f"{self.name} is in no wheel: it is named by folder or revision"
        newest = self.packages[max(self.packages, key=int)]
        return (
            f"{self.name} has no version {version}: those of its wheels begin with {' or '.join(self.packages)} "
            f"(`pip index versions {newest}` lists them)"
        )

    def _not_among(self, version: str) -> str:
        wheels = {wheel.partition("==")[2]: own for own, wheel in self.releases.items()}
        if version in wheels:
            return f"{version} is the number of a wheel: the {self.name} in it is {wheels[version]}"
        known = list(self.releases)
        near = [each for each in known if each.split(".")[:2] == version.split(".")[:2]] or known
        shown = near if len(near) < 8 else [*near[:3], "…", *near[-4:]]
        return f"{self.name} has no version {version} that is in a wheel; it has {', '.join(shown)}"

    def wheel(self, version: str) -> tuple[str, str]:
        """Return the name and version of the wheel that contains a version."""
        if version in self.releases:
            name, _, number = self.releases[version].partition("==")
            return name, number
        return self.packages.get(version.split(".")[0]) or self.packages[""], version


TYPES = (
    "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()
)  # NumPy's names, and bfloat16, which NumPy lacks
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
"""Aliases for some of `TYPES`: names of CUDA C++ that definitions may use."""

FILLS = ("zeros", "ones", "sequence", "random")
"""Initial values of arrays: 0, 1, the index, or seeded random numbers from -1 to 1 (-8 to 8 for integers)."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument of a kernel: an array in the device's memory, or a number.

    Parameters
    ----------
    name : str
        Name in messages.
    type : str
        One of `TYPES`, or a definition that names one, without ``[]``.
    size : tuple of Expression or None
        Lengths of an array's dimensions; None for a number.
    fill : str or float
        Initial value of an array: one of `FILLS`, or a number.
    seed : int
        Seed of ``random``.
    value : Expression or None
        Value of a number.
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
        Name of the kernel.
    grid, block : tuple of Expression
        Up to three dimensions.
    shared : Expression
        Dynamic shared memory, in bytes.
    opt_in : bool
        Whether the host first raises the kernel's limit of dynamic shared memory.
    cooperative : bool
        Whether the launch is cooperative: all blocks of the grid are resident at once and can synchronize.
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
        Python file with one function per kernel, of the kernel's name, that does the kernel's work on NumPy arrays.
    rtol, atol : float
        Tolerances, as in `numpy.allclose`.
    """

    when: Condition
    reference: Path
    rtol: float = 0.0
    atol: float = 0.0
    line: int = 0


Scalar = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One assignment of a case's parameters.

    Parameters
    ----------
    labels : Mapping[str, Scalar]
        Values that conditions read and that form the variant's name: ``{"fragment": "tf32"}``.
    libraries : Mapping[str, str]
        Version of each header library by name: ``{"cutlass": "3.5.1"}``.
    definitions : Mapping[str, Scalar]
        Macros of CUDA C++ and module constants of Python. A parameter with tables as values contributes the keys of the
        chosen table; any other parameter contributes its own name in capitals.
    options : str
        Compile options of a program without a case. They distinguish its cells from cells with other options.
    """

    labels: Mapping[str, Scalar]
    definitions: Mapping[str, Scalar]
    libraries: Mapping[str, str] = field(default_factory=dict)
    options: str = ""

    @cached_property
    def name(self) -> str:
        """Name in cell ids: ``fragment=tf32,arch=given``; empty without parameters.

        The name of a program without a case is its options.
        """
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
        Condition that selects the cells.
    status : Status
        The expected status.
    stage : Stage or None
        Expected stage; None accepts any stage.
    diagnostic : str or None
        Regular expression that the message of at least one diagnostic must match (`harness.regex`).
    xfail : bool
        True for a fault that should be fixed: a match is ``xfail``, a build is ``xpass``.
    kernels : RequiredKernels or None
        Kernels that the artifact must contain; None uses those of the case.
    tensor_cores : bool or None
        Whether the artifact must use tensor cores (True) or must not (False); None accepts both.
    reason, link : str
        Reason, and the public page that documents it.
    line : int
        Line of the table in its case file.
    """

    when: Condition
    status: Status
    stage: Stage | None = None
    diagnostic: str | None = None
    xfail: bool = False
    kernels: RequiredKernels | None = None
    tensor_cores: bool | None = None
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
    """Compiler and library options for cells that match `when`; later rules win."""

    when: Condition
    values: Mapping[str, Any]
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A declared program.

    Parameters
    ----------
    name : str
        ``topic/name``, the path relative to the folder of cases.
    path : Path
        The ``case.toml``, or the program itself for a file without a case.
    program : str
        Digest of the path of a file without a case, since several files may have the same name. Empty for a case.
    project : str
        Name of the project that owns the case (`harness.cases.load`); it separates cases of the same name in different
        projects. Empty for cumatrix's own cases, and if nothing names the project.
    title, description : str
        One line, and a paragraph.
    features : tuple of str
        Features of CUDA that the case exercises, for grouping and selection.
    links : tuple of str
        Pages of upstream on the subject.
    backends : tuple of str
        The only backends that may compile the case; empty for every backend with a language of its sources.
    host_compilers : tuple of str
        Names of the host compilers for nvcc; the machine's default compiler if empty.
    heavy : bool
        Whether the case takes long; a run that names no cases skips it.
    sources : Mapping[str, Path]
        Program by language: ``cuda``, ``torch`` (CUDA C++ with PyTorch's headers) and ``python``.
    together : tuple of Path
        Further CUDA C++ files of the same program. Each is a translation unit; relocatable units are linked.
    root : Path or None
        Folder of the project, if the program or its headers are outside the case's folder. Records name files relative
        to it.
    entries : Mapping[str, Mapping[str, str]]
        Required kernels by language, each with its signature: empty for CUDA C++, a Numba signature such as
        ``void(float32[:])`` for Python.
    kernels : RequiredKernels or None
        Kernels that a built cell must contain, unless an expectation requires others.
    ships : tuple of str
        Targets of the project's own build (``sm_80``, ``compute_90``); empty without a recorded build.
    libraries : Mapping[str, HeaderLibrary]
        Header libraries of the variants.
    variants : tuple of Variant
        Every assignment of the case's parameters.
    options, unsupported, expectations : tuple
        Rules, in the order of the file. The first expectation that applies counts; a cell without one is expected to be
        built.
    faults : tuple of Expectation
        Faults of libraries, for every case of a topic or of the folder of cases (``faults.toml``). They apply if none
        of `expectations` does.
    launches, verify : tuple
        Launches of kernels on a device, and checks of results. For each kernel, the first launch and the first check
        that apply count.
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
    kernels: RequiredKernels | None = None
    ships: tuple[str, ...] = ()
    libraries: Mapping[str, HeaderLibrary] = field(default_factory=dict)
    variants: tuple[Variant, ...] = (Variant(labels={}, definitions={}),)
    options: tuple[OptionRule, ...] = ()
    unsupported: tuple[UnsupportedRule, ...] = ()
    launches: tuple[LaunchRule, ...] = ()
    verify: tuple[VerifyRule, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    faults: tuple[Expectation, ...] = ()

    @property
    def all_expectations(self) -> tuple[Expectation, ...]:
        """Expectations of the case, followed by the faults."""
        return (*self.expectations, *self.faults)

    @property
    def has_file(self) -> bool:
        """Return whether the case has its own ``case.toml``. A user or a configuration names any other file."""
        return self.path.name == "case.toml"

    @property
    def topic(self) -> str:
        """Folder that groups cases."""
        return self.name.split("/")[0]
