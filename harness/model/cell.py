"""Cells (one variant of one case for one toolchain and one target), host compilers and the facts that conditions read."""

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
"""Names of installed host compilers, as in the package names of distributions."""

_HOST_PROGRAMS = {"gcc": "g++", "clang": "clang++"}
"""C++ program of each family: nvcc needs a C++ compiler."""


@dataclass(frozen=True, kw_only=True)
class HostCompiler:
    """A host compiler that a toolchain requests. Two with the same name are equal.

    Parameters
    ----------
    name : str
        Name: ``gcc-13``. Empty for the machine's default compiler.
    version : str
        Version that the compiler reports: ``gcc 12.2.0, glibc 2.36``. For a missing compiler, the version in its name,
        or empty.
    program : str
        Path, or a name to look up on the path.
    """

    name: str = ""
    version: str = field(default="", compare=False)
    program: str = field(default="", compare=False)

    @property
    def versions(self) -> dict[str, str]:
        """Version by each name of `HOST_VERSIONS`; empty if unknown."""
        return dict(_versions(self.version))


@lru_cache(maxsize=256)
def _versions(line: str) -> dict[str, str]:
    """Cached: every cell of nvcc needs the versions, and a machine has few host compilers."""
    pairs = (part.partition(" ") for part in line.split(", "))
    return {**dict.fromkeys(HOST_VERSIONS, ""), **{name: number for name, _, number in pairs if name in HOST_VERSIONS}}


def compiler_version(line: str) -> str:
    """Parse the first line of ``--version``: ``gcc 12.2.0``; empty for any compiler but gcc and clang."""
    clang = re.search(r"clang version (\d+(?:\.\d+)*)", line)
    gcc = re.search(r"(?:g\+\+|gcc|GCC|c\+\+|cc)\S*(?: \(.*\))? (\d+(?:\.\d+)+)", line)
    return f"clang {clang[1]}" if clang else f"gcc {gcc[1]}" if gcc else ""


OWN_HOST = HostCompiler()
"""The default host compiler."""


def host_named(name: str, version: str = "") -> HostCompiler:
    """Return the host compiler for a name in a record, a plan or a case; ``gcc-13`` runs the program g++-13."""
    found = re.fullmatch(HOST_COMPILER, name)
    if not found:
        return HostCompiler(name=name, version=version)
    program = f"{_HOST_PROGRAMS[found[1]]}-{found[2]}"
    return HostCompiler(name=name, version=version or f"{found[1]} {found[2]}", program=program)


def toolchain_facts(
    *, backend: str, library: str, release: str, headers: str, device: bool, packages: Mapping[str, str],
    host: HostCompiler = OWN_HOST, lenient: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """Return the facts that all cells of one toolchain share.

    Parameters
    ----------
    backend, library : str
        Backend, and version of its library; empty without a library.
    release, headers : str
        CUDA release, and the release of the headers.
    device : bool
        Whether the cell requests a real device.
    packages : Mapping[str, str]
        Versions of distributions.
    host : HostCompiler
        Host compiler that nvcc calls.
    lenient : bool
        Treat a text that is no PEP 440 version as missing, since files may contain any text.

    Returns
    -------
    dict
        Facts by name; None for a missing version.

    Raises
    ------
    InvalidVersion
        If a text is no version, unless `lenient`.
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
    """Return the facts of a cell: those of its toolchain (`toolchain_facts`), target, header libraries and parameters."""
    return {
        **toolchain,
        **_target_facts(target),
        **(labels or {}),
        **{name: _version(text, lenient) for name, text in libraries.items()},
    }


@lru_cache(maxsize=256)  # the cells of a run have few different targets
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
"""Names in conditions on cells that have not run, with their types."""

RESULTS: Mapping[str, type] = {
    **CELLS,
    **dict.fromkeys(("status", "stage", "verdict", "message", "mark", "run", "title", "features"), str),
    "expected": bool,
    "tensor_cores": Words,
    **dict.fromkeys(("registers", "shared", "spills", "seconds"), float),
}
"""Names in conditions on cells and their results, with their types."""

RESULT_VALUES: Mapping[str, tuple[str, ...]] = {
    "status": tuple(Status),
    "stage": tuple(Stage),
    "verdict": tuple(Verdict),
}
"""Possible values of names that accept only fixed values."""


def read_where(
    text: str,
    names: Mapping[str, type],
    parameters: Mapping[str, Collection[Any]],
    values: Mapping[str, Collection[str]] | None = None,
) -> Condition:
    """Read the condition of ``--where``.

    Parameters
    ----------
    text : str
        The condition.
    names : Mapping[str, type]
        `CELLS` or `RESULTS`.
    parameters : Mapping
        Parameters of the loaded cases, with their possible values.
    values : Mapping, optional
        Possible values of further `names`.

    Raises
    ------
    UsageError
        If the condition is invalid. The message is one sentence with the position of the error.
    """
    try:
        return Condition.parse(text, parameters, names=names, values={**RESULT_VALUES, **(values or {})})
    except ConditionError as error:
        where = f", character {error.position}" if error.position else ""
        raise UsageError(f"--where{where}: {error}") from None


def none_left(cells: str, where: str) -> NothingToRun:
    """Return the error for a condition that no cell fulfils; `cells` is ``"24"`` or ``"old.jsonl and new.jsonl"``."""
    return NothingToRun(f"no cell is left of {cells} --where {' '.join(where.split())}")


BUNDLED: Final = "@bundled"
"""Suffix of a toolkit that a library's wheel contains."""


ROCM: Final = "@rocm"
"""Suffix of a ROCm installed on the machine."""


def spelled_toolkit(toolkit: str) -> str:
    """Return a toolkit's name in cell ids: ``cuda12.4``, ``rocm5.2``."""
    return f"rocm{toolkit.removesuffix(ROCM)}" if toolkit.endswith(ROCM) else f"cuda{toolkit}"


def named_toolkit(toolkit: str) -> str:
    """Return a toolkit's name in sentences, or that of a list or range of toolkits: ``CUDA 12.9@bundled``, ``CUDA 12.4 to 13.0``, ``ROCm 5.2``."""
    return f"ROCm {toolkit.replace(ROCM, '')}" if ROCM in toolkit else f"CUDA {toolkit}"


def titled_toolkit(toolkit: str) -> str:
    """Return a toolkit's name in headings: ``CUDA 12.4, headers 12.6``, ``CUDA 12.9, bundled``, ``ROCm 5.2``."""
    return named_toolkit(toolkit).replace("+headers", ", headers ").replace(BUNDLED, ", bundled")


def cuda_of(toolkit: str) -> str:
    """Return the CUDA release in a toolkit's name; empty for a bundled one, since the library's version determines it."""
    return "" if toolkit.endswith(BUNDLED) else toolkit


@dataclass(frozen=True, kw_only=True, order=True)
class ToolkitRef:
    """A CUDA release with the release of its headers, or an installed ROCm.

    Parameters
    ----------
    release : str
        ``"12.4"``.
    headers : str
        Release of the headers; by default that of the compiler.
    home : str
        Folder of an installed toolkit; empty for a toolkit from wheels.
    local : bool
        Whether the toolkit is an installed one.
    bundled : bool
        Whether the toolkit is the part of that release in a library's own wheel, such as Triton's ptxas. Nothing else
        is installed for it.
    rocm : bool
        Whether it is a ROCm release, which is always local.
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
        """Key that sorts the oldest release first."""
        return (Version(self.release), Version(self.headers))


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """Backend, library version and toolkit that a cell requests.

    Parameters
    ----------
    backend : str
        Name of the backend.
    library : str
        Version of the backend's library that the environment declares (``"13.6.0"``); empty for a backend without a
        library.
    toolkit : ToolkitRef
        The CUDA release.
    environment : str
        Environment that runs the cell (``"cupy13"``).
    packages : Mapping[str, str]
        Versions of the distributions that the environment declares, for conditions.
    device : str
        Real device on which the cells also load, launch and verify; empty without one.
    host : HostCompiler
        Host compiler for nvcc; by default the machine's own.
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
        """Name in cell ids: ``cupy-jitify@13.6.0 cuda12.4``."""
        library = f"@{self.library}" if self.library else ""
        return f"{self.backend}{library} {spelled_toolkit(str(self.toolkit))}"

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Values for conditions that all cells of the toolchain share."""
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
    """Return the id of a cell (`Cell.id`); `rest` follows the target."""
    return f"{case}{f'[{variant}]' if variant else ''} {backend}{f'@{library}' if library else ''} {spelled_toolkit(toolkit)} {target}{rest}"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One variant of a case, compiled by one toolchain for one target."""

    case: Case
    variant: Variant
    toolchain: Toolchain
    target: Target

    @cached_property
    def id(self) -> str:
        """Unique and readable name: ``wmma/fragments[fragment=tf32] cupy-jitify@13.6.0 cuda12.4 sm_80``.

        A program without a case has its file's name, and its options in place of the variant. A requested host compiler
        follows the target (``… sm_80 with gcc-13``). The id ends with the name of a real device (``… sm_90 on NVIDIA
        H200``): results of a virtual and of a real device are separate, and both are kept.
        """
        toolchain = self.toolchain
        host = f" with {toolchain.host.name}" if toolchain.host.name else ""
        device = f" on {toolchain.device}" if toolchain.device else ""
        place = toolchain.backend, toolchain.library, str(toolchain.toolkit), str(self.target)
        return cell_id(self.case.name, self.variant.name, *place, f"{host}{device}")

    def facts(self) -> dict[str, Any]:
        """Return the values of the names in conditions (`harness.model.condition.NAMES`)."""
        return cell_facts(self.toolchain.facts, self.target, self.variant.libraries, self.variant.labels)
