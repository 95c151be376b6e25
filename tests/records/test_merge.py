"""Merging several runs."""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from record_builders import built, cell, changed, plan, record, rejected

from harness.errors import UsageError
from harness.model import Diagnostic, Outcome, Stage, Status
from harness.records import RecordWriter, merge, plan_path, read_records, write_merged
from harness.records.merge import identity, is_of, weight
from harness.records.plan import Inputs, inputs_path, make_plan, read_inputs


def test_identical_facts_are_one_record_and_no_conflict() -> None:
    first = record(outcome=built(seconds=1), run="a")
    second = record(outcome=built(seconds=2), run="b", cached=True)
    merged = merge([first, second], [plan(cell(), run="b", day=1), plan(cell(), run="a", day=2)])
    assert merged.records == (first,)
    assert (merged.conflicts, merged.missing) == ((), ())
    assert [item["run"] for item in merged.plans] == ["b", "a"]


@pytest.mark.parametrize("flipped", [False, True])
def test_later_run_wins_whatever_the_order_of_files(flipped: bool) -> None:
    old, new = record(run="old"), record(outcome=rejected(), run="new")
    plans = [plan(cell(), run="new", day=2), plan(cell(), run="old", day=1)]
    merged = merge([new, old] if flipped else [old, new], plans[::-1] if flipped else plans)
    told = {"run": "old", "status": "built", "stage": "assemble", "reason": "", "diagnostic": ""}
    assert merged.records == ({**new, "others": [told]},)
    (conflict,) = merged.conflicts
    assert (conflict.cell, conflict.kept, conflict.dropped) == (cell().id, merged.records[0], (old,))
    assert str(conflict) == f"{cell().id}: rejected in run new counts; built in run old"


def test_start_is_compared_as_time_and_not_as_text() -> None:
    early = plan(cell(), run="early", started="2026-01-02T01:00:00+09:00")
    late = plan(cell(), run="late", started="2026-01-01T20:00:00+00:00")
    merged = merge([record(run="late"), record(outcome=rejected(), run="early")], [late, early])
    assert merged.records[0]["run"] == "late"


def test_the_later_of_two_runs_of_one_second_wins() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    early, late = (
        make_plan([cell()], run=run, environment="", argv=(), started=noon + timedelta(milliseconds=after))
        for run, after in (("zulu", 200), ("alpha", 700))
    )
    merged = merge([record(run="alpha"), record(outcome=rejected(), run="zulu")], [late, early])
    assert merged.records[0]["run"] == "alpha"
    assert [plan["run"] for plan in merged.plans] == ["zulu", "alpha"]


def test_run_without_plan_loses() -> None:
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
def test_what_counts_as_a_conflict(other: Outcome) -> None:
    assert len(merge([record(outcome=rejected()), record(outcome=other)], []).conflicts) == 1


def test_other_signal_is_a_conflict_and_other_log_is_not() -> None:
    crash = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11)
    abort = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=6)
    assert merge([record(outcome=crash), record(outcome=abort)], []).conflicts
    assert not merge([record(outcome=rejected(log="a")), record(outcome=rejected(log="b"))], []).conflicts


@pytest.mark.parametrize(
    ("fingerprints", "agree"), [(("same", "same"), True), (("one", "other"), False), (("", ""), False)]
)
def test_messages_agree_by_fingerprint_where_they_have_one(fingerprints: tuple[str, str], agree: bool) -> None:
    found = [
        record(outcome=rejected(diagnostics=(Diagnostic(severity="error", message=text, fingerprint=fingerprint),)))
        for text, fingerprint in zip(("type 'a'", "type 'b'"), fingerprints, strict=True)
    ]
    assert (not merge(found, []).conflicts) == agree


UNAVAILABLE = Outcome(status=Status.UNAVAILABLE, reason="CUDA 12.4 is not installed")
OURS = Outcome(status=Status.HARNESS_ERROR, reason="the worker process is gone")
MEANS_NOTHING = Outcome(status=Status.UNSUPPORTED, reason="CUDA 12.4 knows no sm_80")


def test_a_compilers_answer_weighs_most() -> None:
    outcomes = (built(), rejected(), MEANS_NOTHING, UNAVAILABLE, OURS)
    assert [weight(record(outcome=outcome)) for outcome in outcomes] == [2, 2, 1, 0, 0]


@pytest.mark.parametrize("silent", [UNAVAILABLE, OURS, MEANS_NOTHING], ids=["unavailable", "ours", "unsupported"])
@pytest.mark.parametrize("answer", [built(), rejected()], ids=["built", "rejected"])
@pytest.mark.parametrize("flipped", [False, True])
def test_an_answer_is_not_hidden_by_the_lack_of_one(answer: Outcome, silent: Outcome, flipped: bool) -> None:
    old, new = record(outcome=answer, run="old"), record(outcome=silent, run="new")
    plans = [plan(cell(), run="new", day=2), plan(cell(), run="old", day=1)]
    merged = merge([new, old] if flipped else [old, new], plans)
    assert [(item["status"], item["run"]) for item in merged.records] == [(answer.status, "old")]
    # An inapplicable cell counts as an answer, though not of a compiler.
    (said,) = merged.conflicts if silent is MEANS_NOTHING else merged.unanswered
    assert len(merged.conflicts) + len(merged.unanswered) == 1
    assert [(item["status"], item["run"]) for item in said.dropped] == [(silent.status, "new")]
    assert merged.records[0]["others"][0]["reason"] == silent.reason


def test_programs_of_one_name_are_told_apart_whatever_they_are_compiled_with() -> None:
    # k.cu of one folder with an include directory, k.cu of another folder without.
    one = changed(record(cell("k.cu", toolkit="12.9")), program="a" * 12, variant="-Iinc", cell="k.cu[-Iinc] nvrtc")
    two = changed(record(cell("k.cu", toolkit="12.9"), rejected(), run="run-2"), program="b" * 12, cell="k.cu nvrtc")
    merged = merge([one, two], [])
    assert [(item["case"], item["cell"]) for item in merged.records] == [
        ("k.cu@aaaaaa", "k.cu@aaaaaa[-Iinc] nvrtc"),
        ("k.cu@bbbbbb", "k.cu@bbbbbb nvrtc"),
    ]
    assert merged.conflicts == ()
    # A single program keeps its name, even with other options.
    other = changed(one, variant="-Iother", cell="k.cu[-Iother] nvrtc")
    assert [item["cell"] for item in merge([one, other], []).records] == ["k.cu[-Iinc] nvrtc", "k.cu[-Iother] nvrtc"]


def test_the_lack_of_an_answer_is_of_no_interest_once_there_is_one() -> None:
    old, new = record(outcome=UNAVAILABLE, run="old"), record(run="new")
    merged = merge([old, new], [plan(cell(), run="old", day=1), plan(cell(), run="new", day=2)])
    assert (merged.records, merged.conflicts, merged.unanswered) == ((new,), (), ())


def test_without_any_answer_the_last_word_counts() -> None:
    old, new = record(outcome=OURS, run="old"), record(outcome=UNAVAILABLE, run="new")
    merged = merge([old, new], [plan(cell(), run="old", day=1), plan(cell(), run="new", day=2)])
    assert merged.records[0]["status"] == "unavailable"


def test_a_merged_file_still_says_what_was_different(tmp_path: Path) -> None:
    runs = {"a": built(), "b": rejected("one"), "c": UNAVAILABLE, "d": rejected("two")}
    records = [record(outcome=outcome, run=run) for run, outcome in runs.items()]
    plans = [plan(cell(), run=run, day=day) for day, run in enumerate(runs, 1)]
    once = merge(records, plans)
    assert [(item["run"], item["status"]) for item in once.records[0]["others"]] == [("a", "built"), ("b", "rejected")]
    alone = merge(once.records, plans)
    assert (alone.records, [conflict.cell for conflict in alone.conflicts]) == (once.records, [cell().id])
    # In two steps, in any order.
    for first in (records[:2], records[2:], records[1:3]):
        write_merged(merge(first, plans), tmp_path / "first.jsonl")
        results = read_records([tmp_path / "first.jsonl"])
        rest = [item for item in records if item not in first]
        again = merge([*results.records, *rest], plans)
        assert [(item["run"], item["status"], item["diagnostic"]) for item in again.records[0]["others"]] == [
            ("a", "built", ""),
            ("b", "rejected", "one"),
        ]
        assert len(again.conflicts) == 1


def test_planned_cells_that_never_arrived() -> None:
    planned = [cell(target=target) for target in ("sm_80", "sm_90", "sm_100")]
    merged = merge([record(planned[0], run="a")], [plan(*planned[:2], run="a"), plan(*planned[2:], run="b")])
    assert [item["target"] for item in merged.missing] == ["sm_100", "sm_90"]
    # Another run can have the cells that one run omitted.
    assert not merge([record(item, run="c") for item in planned], [plan(*planned)]).missing


def test_is_pure() -> None:
    records, plans = [record(), record(outcome=rejected(), run="b")], [plan(cell())]
    before = copy.deepcopy((records, plans))
    merge(records, plans)
    assert (records, plans) == before


def test_written_file_merges_to_the_same(tmp_path: Path) -> None:
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
    # Merging the result with one of its sources changes nothing.
    twice = merge([*results.records, record(run="a")], [*results.plans, plan(cell(target="sm_50"), run="a")])
    assert [len(item["cells"]) for item in twice.plans] == [3, 1]


def test_failed_write_leaves_the_earlier_files(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    write_merged(merge([record()], [plan(cell())]), path)
    before = {item: item.read_bytes() for item in (path, plan_path(path))}
    bad = changed(record(), log={1, 2})
    with pytest.raises(TypeError):
        write_merged(merge([bad], [plan(cell())]), path)

    blocked = tmp_path / "blocked.jsonl"
    blocked.mkdir()
    with pytest.raises(IsADirectoryError):
        write_merged(merge([record()], [plan(cell())]), blocked)
    assert {item: item.read_bytes() for item in before} == before
    assert sorted(item.name for item in tmp_path.iterdir()) == ["all.jsonl", "all.plan.json", "blocked.jsonl"]


def test_cases_of_one_name_of_two_projects_are_two_cells_in_whatever_order() -> None:
    ours = cell()
    theirs, others = (replace(ours, case=replace(ours.case, project=name)) for name in ("left", "right"))
    records = [record(theirs, run="a"), record(others, rejected(), run="b"), record(ours, rejected(), run="c")]
    plans = [plan(theirs, run="a"), plan(others, run="b"), plan(ours, run="c")]
    whole = merge(records, plans)
    assert [each["case"] for each in whole.records] == ["wmma/fragments", "wmma/fragments@left", "wmma/fragments@right"]
    assert [each["cell"].partition(" ")[0] for each in whole.records] == [each["case"] for each in whole.records]
    assert ours.id == theirs.id == others.id
    assert (whole.conflicts, whole.missing) == ((), ())
    part = merge(records[1:], plans[1:])
    steps = merge([*part.records, records[0]], [*part.plans, plans[0]])
    assert steps.records == whole.records
    # A project that is alone keeps the plain name, before and after merging.
    assert merge(records[:1], plans[:1]).records == merge(whole.records[1:2], whole.plans[:1]).records == (records[0],)


def test_a_record_belongs_to_the_case_of_its_own_project() -> None:
    ours = cell()
    left, right = (replace(ours, case=replace(ours.case, project=name)) for name in ("left", "right"))
    merged = merge([record(left), record(right), record(ours)], []).records
    assert [[is_of(item, each.case) for each in (ours, left, right)] for item in merged] == [
        [True, False, False], [False, True, False], [False, False, True],
    ]  # fmt: skip
    assert not is_of(record(cell("wmma/other")), ours.case)
    program = changed(record(left), program="a" * 12)
    assert [identity(item) for item in (record(ours), record(left), program)] == [
        (ours.id, ""), (ours.id, "left"), (ours.id, "a" * 12),
    ]  # fmt: skip


@pytest.mark.parametrize("silent", [(UNAVAILABLE, OURS), (OURS, UNAVAILABLE)], ids=["ours last", "unavailable last"])
def test_two_lacks_of_an_answer_are_both_told(silent: tuple[Outcome, Outcome]) -> None:
    records = [record(outcome=outcome, run=run) for outcome, run in zip(silent, ("old", "new"), strict=True)]
    merged = merge(records, [plan(cell(), run="old", day=1), plan(cell(), run="new", day=2)])
    (best,) = merged.records
    assert (best["run"], [other["reason"] for other in best["others"]]) == ("new", [silent[0].reason])
    assert (len(merged.conflicts), merged.unanswered) == (1, ())


def test_a_text_is_written_as_it_is(tmp_path: Path) -> None:
    """A merged file has the lines that a run writes."""
    one = record(outcome=rejected("\u201ck\u201d is undefined"))
    with RecordWriter(tmp_path / "one.jsonl", plan(cell())) as writer:
        writer.append(one)
    write_merged(merge([one], [plan(cell())]), tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_text("utf-8") == (tmp_path / "one.jsonl").read_text("utf-8")


def test_inputs_of_the_records_that_count_are_kept(tmp_path: Path) -> None:
    one, other, first, files, worker, loaded, asked = (letter * 64 for letter in "abcdef0")
    inputs = Inputs(
        sets={files: (("/program/kernel.cu", False),), loaded: (("/usr/lib/libc.so.6", False),)},
        states={"/program/kernel.cu": "f:1", "/usr/lib/libc.so.6": "f:2"},
        workers={worker: (asked, loaded, {})},
        answers={one: (first, files, worker), other: (first, files, worker)},
    )
    path = tmp_path / "all.jsonl"
    merged = merge([changed(record(), fingerprint=one)], [plan(cell())], inputs)
    assert list(merged.inputs.answers) == [one]
    write_merged(replace(merged, inputs=inputs), path)
    assert read_inputs([path]) == merged.inputs
    # Records without inputs replace these records and remove their inputs.
    write_merged(merge([record()], [plan(cell())]), path)
    assert not inputs_path(path).exists()


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "all.jsonl")
    with pytest.raises(UsageError, match="is not a regular file"):
        write_merged(merge([record()], [plan(cell())]), tmp_path / "all.jsonl")


def test_others_of_runs_without_a_plan_stay_in_their_order() -> None:
    both = merge([record(run="a"), record(outcome=rejected("one"), run="b"), record(outcome=UNAVAILABLE, run="c")], [])
    again = merge([both.records[0], record(outcome=rejected("two"), run="d")], [])
    assert [(other["run"], other["diagnostic"]) for other in again.records[0]["others"]] == [("a", ""), ("b", "one")]
