"""Sets of cells are equal, whatever file they are read from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from record_builders import built, cell, plan, record, rejected

from harness.analysis.cell_sets import CellSet, load_set
from harness.records import merge, plan_path
from harness.records.parquet import results_parquet

ONCE, TWICE, LATE = cell(target="sm_75"), cell(target="sm_90"), cell(target="sm_100")
ON_DEVICE = {"virtual": False, "name": "NVIDIA H200", "compute_capability": "9.0"}
RECORDS = [
    record(ONCE),
    record(TWICE),
    record(TWICE, rejected(), run="run-2"),
    record(replace(TWICE, toolchain=replace(TWICE.toolchain, device="NVIDIA H200")), built(device=ON_DEVICE)),
]
PLANS = [plan(ONCE, TWICE, LATE, day=1), plan(TWICE, run="run-2", day=2)]


def both(folder: Path) -> tuple[CellSet, CellSet]:
    """Write the records as lines, and as the file of a report."""
    lines, table = folder / "lines.jsonl", folder / "results.parquet"
    lines.write_text("".join(json.dumps(item) + "\n" for item in RECORDS))
    plan_path(lines).write_text(json.dumps({"schema": 1, "plans": PLANS}))
    merged = merge(RECORDS, PLANS)
    table.write_bytes(results_parquet(merged.records, merged.plans))
    return load_set(str(lines)), load_set(str(table))


def test_lines_and_a_table_hold_the_same(tmp_path: Path) -> None:
    lines, table = both(tmp_path)
    assert table.known == lines.known
    assert table.table.equals(lines.table)


def test_both_say_what_was_told_elsewhere_and_what_never_arrived(tmp_path: Path) -> None:
    for found in both(tmp_path):
        others = {item["cell"]: [other["status"] for other in item.get("others", ())] for item in found.known}
        assert sorted(map(len, others.values())) == [0, 0, 1, 2]
        assert list(found.table["mark"]).count("missing") == 1
