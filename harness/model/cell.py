"""Cells (one variant of one case, for one toolchain and one target), their host compilers, and the facts that conditions read from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Final

from packaging.version import InvalidVersion

from harness.errors import NothingToRun, UsageError
from harness.libraries import names_in_conditions
from harness.model.case import Case, Variant
from harness.model.condition import HOST_VERSIONS, NAMES, Condition, ConditionError, Version, Words, read_version
from harness.model.outcome import Stage, Status, Verdict
from harness.model.target import NVIDIA, Target

HOST_COMPILER = r"(gcc|clang)-(\d{1,2})"
"""Names of the machine's host compilers, as distributions name their packages."""

_HOST_PROGRAMS = {"gcc": "g++", "clang": "clang++"}
"""The program of each family: nvcc needs a C++ compiler."""


@dataclass(frozen=True, kw_only=True)
class HostCompiler:
    """A host compiler, as a toolchain asks for it; two of one name are the same.

    Parameters
    ----------
    name : str
        Its name: ``gcc-13``. Empty for the machine's own.
    version : str
        What it says of itself: ``gcc 12.2.0, glibc 2.36``; of one that is not there what its name says, and empty where that says nothing.
    program : str
        The program: a path, or a name to look for on the path.
    """

    name: str = ""
    version: str = field(default="", compare=False)
    program: str = field(default="", compare=False)

    @property
    def versions(self) -> dict[str, str]:
        """Each of `HOST_VERSIONS`; empty for what it has not."""
        return dict(_versions(self.version))


@lru_cache(maxsize=256)
def _versions(line: str) -> dict[str, str]:
    """Read once: every cell of nvcc asks for it, and a machine has few host compilers."""
    pairs = (part.partition(" ") for part in line.split(", "))
    return {**dict.fromkeys(HOST_VERSIONS, ""), **{name: number for name, _, number in pairs if name in HOST_VERSIONS}}


def told_version(line: str) -> str:
    """Parse the first line of ``--version``: ``gcc 12.2.0``; empty for anything but gcc and clang."""
    clang = re.search(r"clang version (\d+(?:\.\d+)*)", line)
    gcc = re.search(r"(?:g\+\+|gcc|GCC|c\+\+|cc)\S*(?: \(.*\))? (\d+(?:\.\d+)+)", line)
    return f"clang {clang[1]}" if clang else f"gcc {gcc[1]}" if gcc else ""


OWN_HOST = HostCompiler()
"""The default host compiler."""


def host_named(name: str, version: str = "") -> HostCompiler:
    """A host compiler from the name in a record, a plan or a case, and maybe its version; ``gcc-13`` is the program g++-13."""
    found = re.fullmatch(HOST_COMPILER, name)
    if not found:
        return HostCompiler(name=name, version=version)
    program = f"{_HOST_PROGRAMS[found[1]]}-{found[2]}"
    return HostCompiler(name=name, version=version or f"{found[1]} {found[2]}", program=program)


def toolchain_facts(
    *, backend: str, library: str, release: str, headers: str, device: bool, packages: Mapping[str, str],
    host: HostCompiler = OWN_HOST, lenient: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Facts that the cells of one toolchain have in common.

    Parameters
    ----------
    backend, library : str
        Name of the backend and version of the library behind it, empty without one.
    release, headers : str
        The CUDA release, and the one that the headers come from.
    device : bool
        Whether the cell requests a real device.
    packages : Mapping[str, str]
        Versions of distributions.
    host : HostCompiler
        The compiler of the host's half, which nvcc calls.
    lenient : bool
        Treat what is no version by PEP 440 as missing: files may say anything.

    Returns
    -------
    dict
        By name; a missing version is None.

    Raises
    ------
    InvalidVersion
        On what is no version, unless `lenient`.
    """
    known = names_in_conditions()
    named = {name.replace("-", "_"): text for name, text in packages.items()}
    return {
        **{
            name: _version(text, lenient) for name, text in named.items() if NAMES.get(name) is Version or name in known
        },
        "backend": backend,
        "device": device,
        "wheels": library.endswith(("+wheels", ".wheels")),
        "toolkit": _version(release, lenient),
        "headers": _version(headers, lenient),
        "library": _version(library, lenient),
        # clang is a host compiler of nvcc, and a backend.
        **{
            family: _version(named.get(family, "") if family == backend else text, lenient)
            for family, text in host.versions.items()
        },
    }


def cell_facts(
    toolchain: Mapping[str, Any], target: Target, libraries: Mapping[str, str], labels: Mapping[str, Any] | None = None, *,
    lenient: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Facts of a cell: those of its toolchain (`toolchain_facts`), its target, its header libraries and its parameters."""
    return {
        **toolchain,
        **_target_facts(target),
        **(labels or {}),
        **{name: _version(text, lenient) for name, text in libraries.items()},
    }


@lru_cache(maxsize=256)  # the cells of a run have few different ones
def _target_facts(target: Target) -> Mapping[str, Any]:
    return {
        "target": str(target),
        "virtual": target.virtual,
        "suffix": target.suffix,
        "cc": read_version(target.capability) if target.vendor is NVIDIA else None,
    }


def _version(text: str, lenient: bool) -> Version | None:
    try:
        return read_version(text) if text else None
    except InvalidVersion:
        if lenient:
            return None
        raise


CELLS: Mapping[str, type] = {
    **NAMES,
    **dict.fromkeys(("cell", "case", "project", "topic", "variant", "environment", "host_compiler"), str),
}
"""Names for cells that have not run."""

RESULTS: Mapping[str, type] = {
    **CELLS,
    **dict.fromkeys(("status", "stage", "verdict", "message", "mark", "run", "title", "features"), str),
    "expected": bool,
    "tensor_cores": Words,
    **dict.fromkeys(("registers", "shared", "spills", "seconds"), float),
}
"""Names for cells and what happened to them."""

RESULT_VALUES: Mapping[str, tuple[str, ...]] = {
    "status": tuple(Status),
    "stage": tuple(Stage),
    "verdict": tuple(Verdict),
}
"""For some of the names of results, the only possible values."""


def read_where(
    text: str,
    names: Mapping[str, type],
    parameters: Mapping[str, Collection[Any]],
    values: Mapping[str, Collection[str]] | None = None,
) -> Condition:
    """Read what stands after ``--where``.

    Parameters
    ----------
    text : str
        The condition.
    names : Mapping[str, type]
        `CELLS` or `RESULTS`.
    parameters : Mapping
        Parameters of the cases that are there, with the values that each may have.
    values : Mapping, optional
        For more of `names`, the only values that there are.

    Raises
    ------
    UsageError
        One sentence, with the character that it is about.
    """
    try:
        return Condition.parse(text, parameters, names=names, values={**RESULT_VALUES, **(values or {})})
    except ConditionError as error:
        where = f", character {error.position}" if error.position else ""
        raise UsageError(f"--where{where}: {error}") from None


def none_left(cells: str, where: str) -> NothingToRun:
    """The error for a condition that holds for none of some `cells`: ``"24"``, ``"old.jsonl and new.jsonl"``."""
    return NothingToRun(f"no cell is left of {cells} --where {' '.join(where.split())}")


BUNDLED: Final = "@bundled"
"""Ends the name of a toolkit that a library brings along."""


ROCM: Final = "@rocm"
"""Ends the name of a ROCm of the machine's own."""


def spelled_toolkit(toolkit: str) -> str:
    """A toolkit's name as cell ids spell it: ``cuda12.4``, ``rocm5.2``."""
    return f"rocm{toolkit.removesuffix(ROCM)}" if toolkit.endswith(ROCM) else f"cuda{toolkit}"


def named_toolkit(toolkit: str) -> str:
    """A toolkit's name in sentences: ``CUDA 12.9@bundled``, ``ROCm 5.2``."""
    return f"ROCm {toolkit.removesuffix(ROCM)}" if toolkit.endswith(ROCM) else f"CUDA {toolkit}"


def titled_toolkit(toolkit: str) -> str:
    """A toolkit's name as headings have it: ``CUDA 12.4, headers 12.6``, ``CUDA 12.9, bundled``, ``ROCm 5.2``."""
    return named_toolkit(toolkit).replace("+headers", ", headers ").replace(BUNDLED, ", bundled")


def cuda_of(toolkit: str) -> str:
    """The CUDA release of a toolkit's name; empty for one that a library brings along: the release of the library decides it."""
    return "" if toolkit.endswith(BUNDLED) else toolkit


@dataclass(frozen=True, kw_only=True, order=True)
class ToolkitRef:
    """A CUDA release by name, with the release whose headers it is paired with; or a ROCm of the machine's own.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    headers : str
        The release of the headers; the compiler's own by default.
    home : str
        Folder of a toolkit that is on the machine already; empty for one out of wheels.
    local : bool
        Whether it is one of those.
    bundled : bool
        Whether it is what a library's own wheel has of that release, such as Triton's ptxas; nothing else is installed for it.
    rocm : bool
        Whether it is a ROCm release, which is always a local one.
    """

    release: str
    headers: str
    home: str = field(default="", compare=False)
    local: bool = False
    bundled: bool = False
    rocm: bool = False

    def __str__(self) -> str:
        name = self.release + (ROCM if self.rocm else "@local" if self.local else BUNDLED if self.bundled else "")
        return name if self.headers == self.release else f"{name}+headers{self.headers}"

    @property
    def sort_key(self) -> tuple[Version, Version]:
        """Oldest release first."""
        return (Version(self.release), Version(self.headers))


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Backend, library version and toolkit, as a cell asks for them.

    Parameters
    ----------
    backend : str
        Name of the backend.
    library : str
        Version of the library behind the backend that the environment declares to have
        (``"13.6.0"``); empty for a backend without one.
    toolkit : ToolkitRef
        The CUDA release.
    environment : str
        Name of the environment that the cell runs in (``"cupy13"``).
    packages : Mapping[str, str]
        Versions of the distributions that the environment declares, for conditions.
    device : str
        Name of the real device that the cells go on to load, launch and verify on; empty without one.
    host : HostCompiler
        The host compiler for nvcc; the machine's own by default.
    """

    backend: str
    library: str
    toolkit: ToolkitRef
    environment: str = ""
    device: str = ""
    packages: Mapping[str, str] = field(default_factory=dict, compare=False)
    host: HostCompiler = OWN_HOST

    @cached_property
    def name(self) -> str:
        """``cupy-jitify@13.6.0+cuda12.4``, as cell ids spell it."""
        library = f"@{self.library}" if self.library else ""
        return f"{self.backend}{library} {spelled_toolkit(str(self.toolkit))}"

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Values of the names that conditions may use, as far as all its cells have the same."""
        return toolchain_facts(
            backend=self.backend,
            library=self.library,
            release=self.toolkit.release,
            headers=self.toolkit.headers,
            device=bool(self.device),
            packages=self.packages,
            host=self.host,
        )


def cell_id(case: str, variant: str, backend: str, library: str, toolkit: str, target: str, rest: str = "") -> str:
    """`Cell.id`; ``rest`` is what follows the target."""
    return f"{case}{f'[{variant}]' if variant else ''} {backend}{f'@{library}' if library else ''} {spelled_toolkit(toolkit)} {target}{rest}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The unit of work."""

    case: Case
    variant: Variant
    toolchain: Toolchain
    target: Target

    @cached_property
    def id(self) -> str:
        """Unique and readable: ``wmma/fragments[fragment=tf32] cupy-jitify@13.6.0 cuda12.4 sm_80``.

        A program without a case is named after its file, with its options in place of the variant. A requested host compiler follows the target (``… sm_80 with gcc-13``). On a real device it ends
        with its name (``… sm_90 on NVIDIA H200``): what a virtual and a real device tell of one program are two results, and both are kept.
        """
        toolchain = self.toolchain
        host = f" with {toolchain.host.name}" if toolchain.host.name else ""
        device = f" on {toolchain.device}" if toolchain.device else ""
        place = toolchain.backend, toolchain.library, str(toolchain.toolkit), str(self.target)
        return cell_id(self.case.name, self.variant.name, *place, f"{host}{device}")

    def facts(self) -> dict[str, Any]:
        """Values of the names that conditions may use (`harness.model.condition.NAMES`)."""
        return cell_facts(self.toolchain.facts, self.target, self.variant.libraries, self.variant.labels)
