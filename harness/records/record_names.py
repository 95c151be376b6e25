"""Facts for conditions, from records, planned cells and rows of a history."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.backends import BACKENDS
from harness.matrix import axes
from harness.matrix.marks import KINDS, kind_of
from harness.model import Target
from harness.model.case import tensor_cores_of
from harness.model.cell import RESULTS, cell_facts, host_named, none_left, read_where, toolchain_facts
from harness.model.condition import VALUES, Spelled, Words
from harness.records.make import largest
from harness.records.merge import Merged, case_of

_TEXTS = ("cell", "topic", "variant", "environment", "backend", "target", "run", "title")
_OUTCOME = ("status", "stage", "verdict")

RESOURCES: Mapping[str, str] = {"registers": "num_regs", "shared": "shared_bytes", "spills": "spill_bytes"}
"""Keys of a kernel by the names that conditions and columns of tables have for them."""


def facts_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the names that conditions may use (`harness.model.cell.RESULTS`), as `harness.model.Cell.facts` has them.

    Unknown facts are missing: the outcome of a planned cell, versions other than the library's in a row of a history.

    Parameters
    ----------
    cell : Mapping
        A record; or a cell as plans and histories have it, with the same keys, but for what is within others.
    """
    target, library = Target.parse(cell["target"]), cell.get("library") or ""
    release, _, headers = cell["toolkit"].partition("+headers")
    requested = (cell.get("toolchain") or {}).get("requested") or {}
    info = BACKENDS.get(cell["backend"])
    own = info.library.replace("-", "_") if info else ""
    packages = requested.get("packages") or ({own: library.partition("+")[0]} if own else {})
    if isinstance(packages, Mapping):  # the table may hold anything
        packages = {name: version for name, version in packages.items() if isinstance(version, str)}
    else:
        packages = {}
    diagnostics = cell.get("diagnostics")
    message = diagnostics[0]["message"] if diagnostics and not isinstance(diagnostics, str) else cell.get("message")
    release = release.partition("@")[0]
    toolchain = toolchain_facts(
        backend=cell["backend"],
        library=library,
        release=release,
        headers=headers or release,
        device=_on_device(cell),
        packages=packages,
        host=host_named(cell.get("host_compiler") or "", _text(requested.get("host_compiler"))),
        lenient=True,
    )
    return {
        **parameters_of(cell),
        **cell_facts(toolchain, target, {}, lenient=True),  # header libraries stand among the parameters
        **{name: cell[name] for name in _TEXTS if name in cell},
        **({"case": case_of(cell)} if "case" in cell else {}),
        "project": cell.get("project") or "",
        "host_compiler": cell.get("host_compiler") or "",
        **{name: cell[name] for name in _OUTCOME if cell.get(name)},
        "message": message or cell.get("reason") or "",
        **_measured(cell),
    }


def _measured(cell: Mapping[str, Any]) -> dict[str, Any]:
    """The mark, the features and the numbers of a record; a planned cell has the mark alone."""
    if "artifact" not in cell:
        mark = KINDS["missing" if not cell.get("status") else cell["mark"]]
        return {"mark": mark.key, "expected": mark.as_expected}
    mark, artifact = kind_of(cell), cell["artifact"]
    kernels = artifact["kernels"] if artifact else ()
    cores = tensor_cores_of([kernel.get("tensor_cores") for kernel in kernels])
    return {
        "mark": mark.key,
        "expected": mark.as_expected,
        "features": " ".join(cell.get("features", ())),
        "seconds": cell.get("seconds"),
        "tensor_cores": Words(cores) if cores is not None else None,
        **{name: largest(kernels, key) for name, key in RESOURCES.items()},
    }


def parameters_of(cell: Mapping[str, Any]) -> dict[str, Spelled]:
    """The case's parameters, out of the variant's name; none for a program without a case, whose variant are its options."""
    if cell.get("program"):
        return {}
    return {name: Spelled(value) for name, value in axes.parameters_of(cell.get("variant") or "").items()}


def _on_device(cell: Mapping[str, Any]) -> bool:
    device = cell.get("device")
    if isinstance(device, Mapping):
        return device.get("virtual") is False
    return re.search(rf" {re.escape(cell['target'])}( with \S+)? on ", cell.get("cell", "")) is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def chooser(where: str, cells: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], bool]:
    """A function that says whether a condition holds for a record, a planned cell or a row of a history.

    Parameters
    ----------
    where : str
        The condition.
    cells : iterable of Mapping
        The cells that are there, whose cases' parameters it may use.

    Raises
    ------
    UsageError
        When the condition cannot be read.
    """
    parameters: dict[str, dict[Spelled, None]] = {}
    # Records may come from a cumatrix that knows more.
    known = known_values(cells := list(cells))
    for cell in cells:
        for name, value in parameters_of(cell).items():
            parameters.setdefault(name, {})[value] = None
    holds = read_where(where, RESULTS, {name: tuple(values) for name, values in parameters.items()}, known)
    return lambda cell: holds(facts_of(cell))


def known_values(cells: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """All values of ``backend``, ``target`` and ``mark``; records may come from a cumatrix that knows more."""
    known = {"backend": dict.fromkeys(BACKENDS), "target": dict.fromkeys(VALUES["target"])}
    for cell in cells:
        for name, values in known.items():
            values[cell[name]] = None
    return {**{name: tuple(values) for name, values in known.items()}, "mark": tuple(KINDS)}


def choose(merged: Merged, where: str) -> Merged:
    """Drop the records that a condition excludes; a planned cell that never arrived has no outcome.

    Raises
    ------
    UsageError
        When the condition cannot be read.
    NothingToRun
        When it holds for no cell.
    """
    holds = chooser(where, [*merged.records, *merged.missing])
    records = tuple(record for record in merged.records if holds(record))
    missing = tuple(cell for cell in merged.missing if holds(cell))
    kept = {cell["cell"] for cell in (*records, *missing)}
    if not kept:
        raise none_left(f"{len(merged.records) + len(merged.missing):,}", where)
    plans = [{**plan, "cells": [cell for cell in plan["cells"] if cell["cell"] in kept]} for plan in merged.plans]
    runs = {record["run"] for record in records}
    return replace(
        merged,
        records=records,
        missing=missing,
        plans=tuple(plan for plan in plans if plan["cells"] or plan["run"] in runs),
        conflicts=tuple(item for item in merged.conflicts if item.cell in kept),
        unanswered=tuple(item for item in merged.unanswered if item.cell in kept),
    )
