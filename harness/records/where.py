"""``--where`` on results: which cells of a set are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.backends import BACKENDS
from harness.model.condition import VALUES
from harness.model.predicate import Spelled
from harness.model.selection import RESULTS, none_left, read_where
from harness.records.facts import facts_of, parameters_of
from harness.records.merge import Merged


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
    known = {"backend": dict.fromkeys(BACKENDS), "target": dict.fromkeys(VALUES["target"])}
    for cell in cells:
        for name, values in known.items():
            values[cell[name]] = None
        for name, value in parameters_of(cell).items():
            parameters.setdefault(name, {})[value] = None
    holds = read_where(where, RESULTS, {name: tuple(values) for name, values in parameters.items()}, known)
    return lambda cell: holds(facts_of(cell))


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
