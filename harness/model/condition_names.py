"""Facts: the values of the names that conditions may use (`harness.model.condition.NAMES`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

from packaging.version import InvalidVersion

from harness.errors import NothingToRun, UsageError
from harness.libraries import names_in_conditions
from harness.model.condition import NAMES, Condition, ConditionError, Version, Words, read_version
from harness.model.host_compiler import UNASKED, HostCompiler
from harness.model.outcome import Stage, Status, Verdict
from harness.model.target import Target


def toolchain_facts(
    *, backend: str, library: str, release: str, headers: str, device: bool, packages: Mapping[str, str],
    host: HostCompiler = UNASKED, lenient: bool = False,
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
        **{family: _version(text, lenient) for family, text in host.versions.items()},
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
        "cc": read_version(target.capability),
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
