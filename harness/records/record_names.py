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
"""Keys of a kernel, by their names in conditions and columns of tables."""


def facts_of(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the names that conditions may use (`harness.model.cell.RESULTS`), as `harness.model.Cell.facts` does.

    Unknown facts are missing: the outcome of a planned cell, and the other versions than the library's in a row of a
    history.

    Parameters
    ----------
    cell : Mapping
        A record, or a cell of a plan or a history, which has the same keys except nested ones.
    """
    target, library = Target.parse(cell["target"]), cell.get("library") or ""
    release, _, headers = cell["toolkit"].partition("+headers")
    requested = (cell.get("toolchain") or {}).get("requested") or {}
    info = BACKENDS.get(cell["backend"])
    own = info.library.replace("-", "_") if info else ""
    packages = requested.get("packages") or ({own: library.partition("+")[0]} if own else {})
    if isinstance(packages, Mapping):  # the table is not validated
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
        **cell_facts(toolchain, target, {}, lenient=True),  # header libraries are among the parameters
        **{name: cell[name] for name in _TEXTS if name in cell},
        **({"case": case_of(cell)} if "case" in cell else {}),
        "project": cell.get("project") or "",
        "host_compiler": cell.get("host_compiler") or "",
        **{name: cell[name] for name in _OUTCOME if cell.get(name)},
        "message": message or cell.get("reason") or "",
        **_measured(cell),
    }


def _measured(cell: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mark, the features and the numbers of a record. A planned cell has only the mark."""
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
    """Return the case's parameters in the variant's name, or none for a program without a case, whose variant contains options."""
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
    """Return a function that evaluates a condition for a record, a planned cell or a row of a history.

    Parameters
    ----------
    where : str
        The condition.
    cells : iterable of Mapping
        The existing cells. The condition may use the parameters of their cases.

    Raises
    ------
    UsageError
        If the condition is invalid.
    """
    parameters: dict[str, dict[Spelled, None]] = {}
    # Records may be from a newer cumatrix with other values.
    known = known_values(cells := list(cells))
    for cell in cells:
        for name, value in parameters_of(cell).items():
            parameters.setdefault(name, {})[value] = None
    holds = read_where(where, RESULTS, {name: tuple(values) for name, values in parameters.items()}, known)
    return lambda cell: holds(facts_of(cell))


def known_values(cells: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """Return all values of ``backend``, ``target`` and ``mark``.

    Records may be from a newer cumatrix with other values.
    """
    known = {"backend": dict.fromkeys(BACKENDS), "target": dict.fromkeys(VALUES["target"])}
    for cell in cells:
        for name, values in known.items():
            values[cell[name]] = None
    return {**{name: tuple(values) for name, values in known.items()}, "mark": tuple(KINDS)}


def choose(merged: Merged, where: str) -> Merged:
    """Drop the records that a condition excludes. A planned cell without a record has no outcome.

    Raises
    ------
    UsageError
        If the condition is invalid.
    NothingToRun
        If the condition holds for no cell.
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
