"""Several runs as one."""

from __future__ import annotations

import copy

import pytest
from record_builders import built, cell, plan, record, rejected

from harness.model import Outcome, Stage, Status
from harness.records import merge, plan_path, read_records, write_merged


def test_identical_facts_are_one_record_and_no_conflict():
    first = record(outcome=built(seconds=1), run="a")
    second = record(outcome=built(seconds=2), run="b", cached=True)
    merged = merge([first, second], [plan(cell(), run="b", day=1), plan(cell(), run="a", day=2)])
    assert merged.records == (first,)
    assert (merged.conflicts, merged.missing) == ((), ())
    assert [item["run"] for item in merged.plans] == ["b", "a"]


@pytest.mark.parametrize("flipped", [False, True])
def test_later_run_wins_whatever_the_order_of_files(flipped):
    old, new = record(run="old"), record(outcome=rejected(), run="new")
    plans = [plan(cell(), run="new", day=2), plan(cell(), run="old", day=1)]
    merged = merge([new, old] if flipped else [old, new], plans[::-1] if flipped else plans)
    assert merged.records == (new,)
    (conflict,) = merged.conflicts
    assert (conflict.cell, conflict.kept, conflict.dropped) == (cell().id, new, (old,))
    assert str(conflict) == f"{cell().id}: rejected in run new counts; built in run old"


def test_start_is_compared_as_time_and_not_as_text():
    early = plan(cell(), run="early", started="2026-01-02T01:00:00+09:00")
    late = plan(cell(), run="late", started="2026-01-01T20:00:00+00:00")
    merged = merge([record(run="late"), record(outcome=rejected(), run="early")], [late, early])
    assert merged.records[0]["run"] == "late"


def test_run_without_plan_loses():
    merged = merge([record(run="planned"), record(outcome=rejected(), run="other")], [plan(cell(), run="planned")])
    assert merged.records[0]["run"] == "planned"


@pytest.mark.parametrize(
    "other",
    [
        rejected("another message"),
        rejected(stage=Stage.ASSEMBLE),
        Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11),
    ],
    ids=["diagnostic", "stage", "status"],
)
def test_what_counts_as_a_conflict(other):
    assert len(merge([record(outcome=rejected()), record(outcome=other)], []).conflicts) == 1


def test_other_signal_is_a_conflict_and_other_log_is_not():
    crash = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11)
    abort = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=6)
    assert merge([record(outcome=crash), record(outcome=abort)], []).conflicts
    assert not merge([record(outcome=rejected(log="a")), record(outcome=rejected(log="b"))], []).conflicts


def test_planned_cells_that_never_arrived():
    planned = [cell(target=target) for target in ("sm_80", "sm_90", "sm_100")]
    merged = merge([record(planned[0], run="a")], [plan(*planned[:2], run="a"), plan(*planned[2:], run="b")])
    assert [item["target"] for item in merged.missing] == ["sm_100", "sm_90"]
    # What one run left out another may have brought.
    assert not merge([record(item, run="c") for item in planned], [plan(*planned)]).missing


def test_is_pure():
    records, plans = [record(), record(outcome=rejected(), run="b")], [plan(cell())]
    before = copy.deepcopy((records, plans))
    merge(records, plans)
    assert (records, plans) == before


def test_written_file_merges_to_the_same(tmp_path):
    planned = [cell(), cell(target="sm_90")]
    merged = merge(
        [record(run="a"), record(outcome=rejected(), run="b")],
        [plan(*planned, run="a"), plan(planned[0], run="b", day=2)],
    )
    write_merged(merged, tmp_path / "new" / "all.jsonl")
    results = read_records([tmp_path / "new" / "all.jsonl"])
    again = merge(results.records, results.plans)
    assert (again.records, again.plans, again.missing) == (merged.records, merged.plans, merged.missing)
    assert len(again.missing) == 1
    # And once more beside a file that it was made of.
    twice = merge([*results.records, record(run="a")], [*results.plans, plan(cell(target="sm_50"), run="a")])
    assert [len(item["cells"]) for item in twice.plans] == [3, 1]


def test_failed_write_leaves_the_earlier_files(tmp_path):
    path = tmp_path / "all.jsonl"
    write_merged(merge([record()], [plan(cell())]), path)
    before = {item: item.read_bytes() for item in (path, plan_path(path))}
    bad = {**record(), "log": {1, 2}}
    with pytest.raises(TypeError):
        write_merged(merge([bad], [plan(cell())]), path)

    blocked = tmp_path / "blocked.jsonl"
    blocked.mkdir()
    with pytest.raises(IsADirectoryError):
        write_merged(merge([record()], [plan(cell())]), blocked)
    assert {item: item.read_bytes() for item in before} == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["all.jsonl", "all.plan.json", "blocked.jsonl"]
