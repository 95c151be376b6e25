"""Sets of cells and histories, filtered by a condition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from record_builders import cell, plan, record, rejected

from harness.analysis import changes
from harness.analysis.cell_sets import COLUMNS, CellSet, choose_in_history, choose_in_sets, load_set
from harness.analysis.diff import Changes
from harness.analysis.history import append, read_history
from harness.errors import NothingToRun, UsageError
from harness.records import Record, plan_path

OLD = [
    record(cell(variant={"shape": "a"}, target=target), rejected() if target == "sm_75" else None)
    for target in ("sm_75", "sm_80", "sm_90")
]
NEW = [
    record(cell(variant={"shape": "a"}, target=target), rejected(), run="run-2") for target in ("sm_80", "sm_90")
] + [record(cell(variant={"form": "late"}), run="run-2")]


def write(path: Path, records: list[Record], day: int) -> str:
    path.write_text("".join(json.dumps(item) + "\n" for item in records))
    planned = plan(cell(variant={"shape": "a"}, target="sm_100"), run=records[0]["run"], day=day)
    plan_path(path).write_text(json.dumps(planned))
    return str(path)


@pytest.fixture
def sets(tmp_path: Path) -> list[CellSet]:
    return [load_set(write(tmp_path / f"{name}.jsonl", records, day)) for day, (name, records) in enumerate((("old", OLD), ("new", NEW)), 1)]  # fmt: skip


@pytest.fixture
def history(tmp_path: Path) -> Path:
    append(tmp_path / "history", OLD, [plan(run="run-1", day=1)])
    append(tmp_path / "history", NEW, [plan(run="run-2", day=2)])
    return tmp_path / "history"


def targets(found: Changes) -> list[str]:
    return [item.place["target"] for item in found.items]


def test_a_cell_that_is_chosen_in_one_set_is_compared_with_itself(sets: list[CellSet]) -> None:
    found = changes(*(each.table for each in choose_in_sets(sets, 'status == "built" and shape == "a"')))
    assert (found.counts, targets(found)) == ({"regression": 2}, ["sm_80", "sm_90"])
    assert changes(*(each.table for each in choose_in_sets(sets, 'target == "sm_90"'))).counts == {"regression": 1}


def test_parameters_of_either_set_may_be_used(sets: list[CellSet]) -> None:
    assert changes(*(each.table for each in choose_in_sets(sets, 'form == "late"'))).counts == {"appeared": 1}
    with pytest.raises(UsageError, match=r"unknown name 'shap'"):
        choose_in_sets(sets, 'shap == "a"')
    with pytest.raises(NothingToRun, match=r"^no cell is left of \S+old\.jsonl and \S+new\.jsonl --where virtual$"):
        choose_in_sets(sets, "virtual")


def test_versions_beside_the_library_are_known_of_records(sets: list[CellSet]) -> None:
    assert len(choose_in_sets(sets, 'cupy == "13.*" and target == "sm_90"')[0].table) == 1


def test_runs_of_a_history_are_sets_too(history: Path) -> None:
    sets = [load_set(run, history) for run in ("run-1", "run-2")]
    found = changes(*(each.table for each in choose_in_sets(sets, 'cc >= "9.0" and cupy < "14"')))
    assert (found.counts, targets(found)) == ({"regression": 1}, ["sm_90"])


def test_across_an_axis_a_condition_on_it_keeps_both_sides(tmp_path: Path) -> None:
    old, new = (
        [record(cell(library=library, target=target), outcome) for target in ("sm_80", "sm_90")]
        for library, outcome in (("13.6.0", None), ("14.0.0", rejected()))
    )
    sets = [load_set(write(tmp_path / f"{name}.jsonl", records, 1)) for name, records in (("old", old), ("new", new))]
    chosen = choose_in_sets(sets, 'library < "14" and target == "sm_80"', ["library"])
    assert changes(*(each.table for each in chosen), across=["library"]).counts == {"regression": 1}


def test_the_last_run_that_has_a_cell_decides_about_its_history(history: Path) -> None:
    read = read_history(history, list(COLUMNS))
    chosen = choose_in_history(read, 'status == "rejected" and "incomplete" in message')
    assert sorted(set(chosen.table["target"])) == ["sm_75", "sm_80", "sm_90"]
    assert len(chosen.table) == 5  # their earlier state is listed, too
    assert set(choose_in_history(read, 'status == "built"').table["case"]) == {"wmma/fragments"}
    assert len(choose_in_history(read, 'status == "built"').table) == 1
    with pytest.raises(NothingToRun):
        choose_in_history(read, 'cc < "7.0"')
