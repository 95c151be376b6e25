"""Several runs as one: one record a cell, what contradicts itself, and what never arrived."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.records.atomic import replace_files
from harness.records.plan import Plan, plan_path, plans_json, started_at
from harness.records.record import Record


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """One cell of which two runs tell different things.

    Parameters
    ----------
    cell : str
        Id of the cell.
    kept : dict
        The record of the later run.
    dropped : tuple of dict
        The others whose facts differ from it.
    """

    cell: str
    kept: Record
    dropped: tuple[Record, ...]

    def __str__(self) -> str:
        others = ", ".join(f"{record['status']} in run {record['run']}" for record in self.dropped)
        return f"{self.cell}: {self.kept['status']} in run {self.kept['run']} counts; {others}"


@dataclass(frozen=True, kw_only=True)
class Merged:
    """One set of records.

    Parameters
    ----------
    records : tuple of dict
        One a cell, by cell id.
    plans : tuple of dict
        One a run, oldest first.
    missing : tuple of dict
        Planned cells, as their plans have them, of which there is no record.
    conflicts : tuple of Conflict
        Cells whose runs disagree.
    """

    records: tuple[Record, ...]
    plans: tuple[Plan, ...]
    missing: tuple[dict[str, Any], ...]
    conflicts: tuple[Conflict, ...]


def facts(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two runs must agree on: status, stage, signal and diagnostics (by fingerprint)."""
    diagnostics = {item.get("fingerprint") or item["message"] for item in record["diagnostics"]}
    return (record["status"], record["stage"], record["signal"], tuple(sorted(diagnostics)))


def merge(records: Iterable[Record], plans: Iterable[Plan]) -> Merged:
    """Make one set of records out of several runs.

    Where runs tell different things of one cell, the one that started last wins and the conflict is
    listed. A run without a plan counts as older than all that have one; between runs that started
    together, the one whose plan comes later.
    """
    runs = _one_a_run(plans)
    order = {plan["run"]: place for place, plan in enumerate(runs)}
    by_cell: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: order.get(record["run"], -1)):
        by_cell.setdefault(record["cell"], []).append(record)

    conflicts = []
    for cell, found in sorted(by_cell.items()):
        dropped = tuple(record for record in found if facts(record) != facts(found[-1]))
        if dropped:
            conflicts.append(Conflict(cell=cell, kept=found[-1], dropped=dropped))
    planned = {cell["cell"]: cell for plan in runs for cell in plan["cells"]}
    return Merged(
        records=tuple(by_cell[cell][-1] for cell in sorted(by_cell)),
        plans=tuple(runs),
        missing=tuple(planned[cell] for cell in sorted(planned) if cell not in by_cell),
        conflicts=tuple(conflicts),
    )


def write_merged(merged: Merged, path: Path) -> None:
    """Write the merged records and their plans beside them; on an error nothing changes."""
    lines = [
        json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace") + b"\n"
        for record in merged.records
    ]
    replace_files({path: b"".join(lines), plan_path(path): plans_json(merged.plans)})


def _one_a_run(plans: Iterable[Plan]) -> list[Plan]:
    """Plans by start; several of the same run (a file and a merged copy of it) become one."""
    runs: dict[str, Plan] = {}
    for plan in plans:
        known = runs.setdefault(plan["run"], plan)
        if known is not plan and known["cells"] != plan["cells"]:
            cells = {cell["cell"]: cell for cell in (*known["cells"], *plan["cells"])}
            runs[plan["run"]] = {**known, "cells": list(cells.values())}
    return sorted(runs.values(), key=started_at)
