"""Histories, built night by night, for tests of histories and trends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from record_builders import cell, plan, record

from harness.analysis.history import append
from harness.model import Cell, Outcome
from harness.records import Record

CELLS = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90")]


def night(
    folder: Path,
    day: int,
    *outcomes: Outcome | None,
    run: str | None = None,
    key: str = "k",
    cells: Sequence[Cell] = CELLS,
    **fields: Any,
) -> str:
    """Add the run of one night."""
    run = run or f"run-{day}"
    records: list[Record] = [
        {**record(of, outcome, run=run), "fingerprint": key}
        for of, outcome in zip(cells, outcomes, strict=False)
        if outcome is not None
    ]
    append(folder, records, [plan(*cells, run=run, day=day, **fields)])
    return run
