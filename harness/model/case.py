"""Cases: declared programs, the kernels that they contain, and what is expected of them."""

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
# No function of a class is a kernel, so all names around a kernel's own are namespaces
# (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
_NESTED = re.compile(r"_ZNK?")
_PLAIN = re.compile(r"_ZL?(?=\d)")
_LENGTH = re.compile(r"L?(\d{1,5})")
_TAG = re.compile(r"B(?=\d)")
_ANONYMOUS = "_GLOBAL__N"


def name_of(symbol: str) -> str:
    """Name of a kernel as its source has it, ``ns::reduce``, without parameters and template arguments; the symbol itself where it is not mangled.

    Unnamed namespaces are left out.
    """
    nested = _NESTED.match(symbol)
    start = nested or _PLAIN.match(symbol)
    if not start:
        return symbol
    names, place = [], start.end()
    while length := _LENGTH.match(symbol, place):
        place = length.end() + int(length[1])
        names.append(symbol[length.end() : place])
        while tag := _TAG.match(symbol, place):  # what Numba and inline namespaces of GCC add to a name
            length = _LENGTH.match(symbol, tag.end())
            place = length.end() + int(length[1]) if length else len(symbol)
        if not nested:
            break
    if not names or place > len(symbol):
        return symbol
    return "::".join(name for name in names if not name.startswith(_ANONYMOUS)) or symbol


@dataclass(frozen=True, kw_only=True)
class RequiredKernels:
    """Kernels without which a built program is not as expected.

    Parameters
    ----------
    names : tuple of str
        Names that must be there: of a symbol, or as the source has them, with or without their namespaces.
    count : int
        Number of kernels that must be there at least.
    """

    names: tuple[str, ...] = ()
    count: int = 0

    @classmethod
    def of_all(cls, parts: Iterable[RequiredKernels]) -> RequiredKernels:
        """The requirements of several files of one program together."""
        each = list(parts)
        if len(each) == 1:
            return each[0]
        names = dict.fromkeys(name for part in each for name in part.names)
        return cls(names=tuple(names), count=sum(part.count or len(part.names) for part in each))

    def missing(self, symbols: Iterable[str]) -> str:
        """A sentence on missing kernels, given the symbols of an artifact; empty where none is missing."""
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
    """Instructions for tensor cores of several kernels together, ``HMMA IMMA``; empty without any, and None where that is not known."""
    each = list(kernels)
    if not any(each):
        return "" if each and None not in each else None
    return " ".join(sorted({name for names in each for name in (names or "").split()}))


def _starts(name: str) -> list[int]:
    """Beginnings of the name with and without its namespaces."""
    return [0, *(match.end() for match in re.finditer("::", name))]


def _listed(names: Iterable[str]) -> str:
    counts = Counter(names)
    shown = [f"{name} ({count} instances)" if count > 1 else name for name, count in counts.items()]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return f"{', '.join(shown[:_SHOWN])}{more}" or "none"


@dataclass(frozen=True, kw_only=True)
class Headers:
    """Headers that come in no wheel: those of a folder, or of a commit that was checked out.

    Parameters
    ----------
    include : tuple of Path
        Their include directories.
    origin : Mapping[str, str]
        What records say of them: ``headers``, the version in the headers themselves; ``commit``; ``path`` or ``url``.
    problem : str
        Why they are not there; empty where they are.
    """

    include: tuple[Path, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def fingerprint(self) -> str:
        """Hash over where they lie and which they are. What the files say comes in when a compiler reads them."""
        text = json.dumps([list(map(str, self.include)), dict(self.origin)], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class HeaderLibrary:
    """Headers from a wheel or a repository.

    Parameters
    ----------
    name : str
        What conditions, variants and records call it: ``cutlass``.
    packages : Mapping[str, str]
        The wheel on PyPI by the first number of the version; the key ``""`` covers every other.
    include : tuple of str
        Folders of the wheel that hold headers; the first that a release has counts.
    header : str
        Header, below the include folder, that defines the version; empty where none does.
    macros : tuple of str
        Macros in it, one for each part of the version; a single one holds all in one number.
    digits : tuple of int
        For a single one, the digits of each part but the first: ``(3, 2)`` reads 300104 as 3.1.4. Empty: the number as it is.
    releases : Mapping[str, str]
        For a library whose wheels are numbered otherwise, the wheel by version: ``{"3.1.4": "nvidia-cuda-cccl==13.1.115"}``.
    checkout : tuple of str
        Include directories of a checkout, all that it has.
    aliases : tuple of str
        Further names of it in questions.
    tracker, notes : str
        Address of the form for a new issue, and of a release's notes with ``{}`` in place of the version; empty where there is none.
    built : Mapping[str, Headers]
        By their numbers, those of no release: what ``[libraries]`` or ``--library`` named by folder or revision.
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
        """The reason why no wheel can have this version, or None if one can."""
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
        """Name and version of the wheel that has a version."""
        if version in self.releases:
            name, _, number = self.releases[version].partition("==")
            return name, number
        return self.packages.get(version.split(".")[0]) or self.packages[""], version


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
        Regular expression that the message of one of the diagnostics must match (`harness.regex`).
    xfail : bool
        True for a fault that should be fixed: a match is then ``xfail`` and a build is ``xpass``.
    kernels : RequiredKernels or None
        Kernels that have to come out of what is built; None for those of the case.
    tensor_cores : bool or None
        Whether what is built has to use tensor cores, or must not; None where either will do.
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
        Name of the project that it belongs to (`harness.cases.load`), which tells it from another project's of its name. Empty for cumatrix's own cases, and where nothing names the project.
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
    kernels : RequiredKernels or None
        Kernels without which a built cell is not as expected, where no expectation says otherwise.
    ships : tuple of str
        Targets that the project's own build makes code for (``sm_80``, ``compute_90``); empty where no build was recorded.
    libraries : Mapping[str, HeaderLibrary]
        Header libraries that its variants name versions of.
    variants : tuple of Variant
        Every assignment of the case's parameters.
    options, unsupported, expectations : tuple
        Rules, in the order of the file. The first expectation that applies counts; where none
        does, the cell is expected to be built.
    faults : tuple of Expectation
        Of libraries, for every case of a topic or of the folder of cases (``faults.toml``). They apply where none of `expectations` does.
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
        """The case's own expectations, and after them the faults."""
        return (*self.expectations, *self.faults)

    @property
    def has_file(self) -> bool:
        """Return whether the case has its own ``case.toml``; otherwise a user or a configuration named its file."""
        return self.path.name == "case.toml"

    @property
    def topic(self) -> str:
        """The folder that groups the case with others."""
        return self.name.split("/")[0]
