"""Concurrent writers, and damaged files."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from record_builders import artifact_of, built, cell, changed, plan, record, rejected

from harness.model import Outcome, Status
from harness.records import (
    Record,
    RecordError,
    RecordWriter,
    merge,
    plan_path,
    read_plans,
    read_records,
    schema,
    write_merged,
)
from harness.records.plan import Inputs, Plan, plans_json, read_inputs


def write(path: Path, *records: Record, of: Plan | None = None) -> Path:
    with RecordWriter(path, of if of is not None else plan(cell())) as writer:
        for item in records:
            writer.append(item)
    return path


def damaged(tmp_path: Path, change: str | dict[str, Any], of: Plan | None = None) -> Path:
    """Return a file whose second line is `change`."""
    path = write(tmp_path / "r.jsonl", record())
    text = change if isinstance(change, str) else json.dumps(change)
    with path.open("ab") as file:
        file.write(text.encode("utf-8", "surrogateescape") + b"\n")
    return path


def error_of(path: Path) -> str:
    with pytest.raises(RecordError) as caught:
        read_records([path])
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_reads_what_was_written(tmp_path: Path) -> None:
    first, second = record(), record(cell(target="sm_90a"), rejected())
    results = read_records([write(tmp_path / "deep" / "r.jsonl", first, second)])
    assert results.records == (first, second)
    assert results.warnings == ()
    assert [item["run"] for item in results.plans] == ["run-1"]


def test_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    path.write_bytes(b"PAR1\x15\x04\xb5")
    with pytest.raises(RecordError, match=r"results\.parquet: is Parquet; this command reads \.jsonl"):
        read_records([path])


def test_plan_lists_every_cell_before_the_first_is_done(tmp_path: Path) -> None:
    planned = plan(cell(), cell(target="sm_90"))
    write(tmp_path / "r.jsonl", of=planned)
    assert plan_path(tmp_path / "r.jsonl") == tmp_path / "r.plan.json"
    (read,) = read_plans(tmp_path / "r.plan.json")
    assert read == planned
    assert read["cells"][1] == {
        "cell": "wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_90",
        "case": "wmma/fragments",
        "variant": "",
        "backend": "cupy-nvrtc",
        "library": "13.6.0",
        "toolkit": "12.4",
        "host_compiler": "",
        "target": "sm_90",
        "environment": "cupy13",
        "title": "Fragments of every shape",
        "topic": "wmma",
    }


def test_one_line_one_write_even_with_ends_of_lines_in_the_log(tmp_path: Path) -> None:
    log = "a\nb\r\n\u2028c\x85d\x0c"
    path = write(tmp_path / "r.jsonl", record(outcome=rejected(log=log)))
    assert path.read_bytes().count(b"\n") == 1
    assert read_records([path]).records[0]["log"] == log


def test_cached_records_are_written_together_and_a_compiled_one_takes_them_along(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    cells = [cell(target=f"sm_{number}") for number in (75, 80, 86, 89)]
    with RecordWriter(path, plan(*cells)) as writer:
        for each in cells[:2]:
            writer.append(record(each), together=True)
        assert not path.read_bytes()
        writer.append(record(cells[2]))
        assert [json.loads(line)["target"] for line in path.read_bytes().splitlines()] == ["sm_75", "sm_80", "sm_86"]
        writer.append(record(cells[3]), together=True)
    assert len(path.read_bytes().splitlines()) == 4


def test_bytes_that_are_not_text_become_replacement_characters(tmp_path: Path) -> None:
    log = b"caf\xe9 \xf0\x9f\x98\x80".decode("utf-8", "surrogateescape")
    path = write(tmp_path / "r.jsonl", record(outcome=rejected(log=log)))
    assert read_records([path]).records[0]["log"] == "caf\ufffd \U0001f600"


def _append_many(path: Path, name: str, count: int) -> None:
    with RecordWriter(path, plan()) as writer:
        for number in range(count):
            writer.append(record(outcome=rejected(log=f"{name}-{number} " + "x" * 9000)))


def test_several_processes_append_whole_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_append_many, args=(path, name, 25)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    logs = {item["log"].split()[0] for item in read_records([path]).records}
    assert logs == {f"{name}-{number}" for name in "abc" for number in range(25)}


def _append_and_die(path: Path) -> None:
    with RecordWriter(path, plan()) as writer:
        writer.append(record())
        os.write(writer._file, b'{"schema": 1, "cell": "ha')
        os.kill(os.getpid(), signal.SIGKILL)


def test_killed_run_keeps_what_it_had_and_says_what_it_lost(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl")
    worker = multiprocessing.get_context("fork").Process(target=_append_and_die, args=(path,))
    worker.start()
    worker.join(60)
    results = read_records([path])
    assert len(results.records) == 1
    (warning,) = results.warnings
    assert warning == (
        f"{path}: line 2: cut off: the line is incomplete, probably because the run was interrupted or the disk was full; "
        "its record is left out, all before it are used; run the same command again to complete the file"
    )

    # Appending to the file does not join a record to the incomplete line.
    with RecordWriter(path, plan()) as writer:
        writer.append(record(cell(target="sm_90")))
    results = read_records([path])
    assert [item["target"] for item in results.records] == ["sm_80", "sm_90"]
    assert results.warnings == ()


HOSTILE = "wmma/é\u202e\x1b[31m"


@pytest.mark.parametrize("encoding", [False, True])
def test_a_file_that_is_cut_anywhere_in_its_last_line_keeps_the_others_and_says_so(
    tmp_path: Path, encoding: bool
) -> None:
    path = write(tmp_path / "r.jsonl", record())
    first = path.read_bytes()
    last = json.dumps({**record(), "cell": HOSTILE}, ensure_ascii=encoding, separators=(",", ":")).encode()
    named = len(last.partition(b',"case"')[0])
    for length in range(1, len(last)):
        path.write_bytes(first + last[:length])
        results = read_records([path])
        assert len(results.records) == 1
        (warning,) = results.incomplete
        assert warning.startswith(
            f"{path}: line 2: cut off: the line is incomplete, probably because the run was interrupted"
        )
        # Names of compilers and cases are escaped for the terminal.
        assert ("the record of wmma/é\N{REPLACEMENT CHARACTER} is left out" in warning) == (length >= named)
    for whole in (first, first + last, first + last + b"\n"):
        path.write_bytes(whole)
        assert read_records([path]).incomplete == ()


@pytest.mark.parametrize("rest", [b"\0" * 512, b'{"schema":1,"cel' + b"\0" * 512, b'{"schema":1,"cell":"\\u00'])
def test_what_file_systems_leave_after_a_crash_is_a_cut_line(tmp_path: Path, rest: bytes) -> None:
    path = write(tmp_path / "r.jsonl", record())
    path.write_bytes(path.read_bytes() + rest)
    results = read_records([path])
    assert len(results.records) == len(results.incomplete) == 1


def test_a_cut_line_that_is_not_the_last_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", record())
    line = path.read_bytes()
    path.write_bytes(line + line[:300] + line)
    assert "line 2: not JSON: " in error_of(path)


def test_whole_last_line_without_newline_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(record()))
    assert len(read_records([path]).records) == 1


def test_folder_is_read_recursively_and_nothing_twice(tmp_path: Path) -> None:
    write(tmp_path / "a" / "one.jsonl", record())
    write(tmp_path / "b" / "two.jsonl", record())
    (tmp_path / "a" / "other.txt").write_text("no record")
    results = read_records([tmp_path, tmp_path / "a" / "one.jsonl"])
    assert len(results.records) == len(results.plans) == 2


def test_missing_plan_is_a_warning(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", record())
    plan_path(path).unlink()
    (warning,) = read_records([path]).warnings
    assert "no r.plan.json next to it" in warning


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert error_of(tmp_path / "none.jsonl") == f"{tmp_path / 'none.jsonl'}: no such file or folder"
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", Path("/dev/zero")):
        assert (
            error_of(odd) == f"{odd}: is a pipe or a device, not a file of records: write the records to a file first"
        )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{not json", "line 2: not JSON: "),
        ("", "line 2: not JSON: "),
        ('{"schema": 1, "seconds": NaN}', "line 2: not JSON: NaN is not a number"),
        ("[" * 100_000, "line 2: not JSON: "),
        ('"\udcff"', "line 2: not UTF-8: "),
        ("[]", "line 2: must be a table"),
        ("{}", "line 2: schema: missing"),
        ({"schema": True}, "line 2: schema: must be a whole number from 1"),
        ({"schema": 1}, "line 2: cell: missing"),
        ({**record(), "status": "green"}, "line 2: status: 'green' is not one of built, rejected, "),
        ({**record(), "stage": "cook"}, "line 2: stage: 'cook' is not one of preprocess, "),
        ({**record(), "verdict": "maybe"}, "line 2: verdict: 'maybe' is not one of pass, "),
        ({**record(), "target": "sm_80b"}, "line 2: target: 'sm_80b' is not a target"),
        ({**record(), "cell": ""}, "line 2: cell: must not be empty"),
        ({**record(), "log": 3}, "line 2: log: must be text, not a number"),
        ({**record(), "log": None}, "line 2: log: must be text, not null"),
        ({**record(), "signal": True}, "line 2: signal: must be a whole number, not true or false"),
        ({**record(), "seconds": "1"}, "line 2: seconds: must be a number, not text"),
        ({**record(), "seconds": -1}, "line 2: seconds: must be a number of seconds, not -1"),
        ({**record(), "cached": 1}, "line 2: cached: must be true or false, not a number"),
        ({**record(), "command": ["a", 1]}, "line 2: command[1]: must be text, not a number"),
        ({**record(), "diagnostics": [{"severity": "error"}]}, "line 2: diagnostics[0].message: missing"),
        (
            {**record(), "others": [{"run": "r", "status": "fine"}]},
            "line 2: others[0].status: 'fine' is not one of built, ",
        ),
        ({**record(), "signal": 2**63}, "line 2: signal: must be a whole number that fits into 64 bits"),
        ({**record(), "seconds": 10**400}, "line 2: seconds: must be a number of seconds, not one that is greater"),
        ({**record(), "peak_bytes": True}, "line 2: peak_bytes: must be a whole number, not true or false"),
        ({**record(), "toolchain": {"requested": {}}}, "line 2: toolchain.observed: missing"),
        ({**record(), "expected": []}, "line 2: expected: must be a table, not a list"),
        (
            {
                **record(),
                "artifact": {**artifact_of(record()), "kernels": [{"name": "k", "num_regs": "many"}]},
            },
            "line 2: artifact.kernels[0].num_regs: must be a whole number, not text",
        ),
    ],
)
def test_damage_names_file_line_and_key(tmp_path: Path, line: str | dict[str, Any], message: str) -> None:
    path = damaged(tmp_path, line)
    assert error_of(path).startswith(f"{path}: {message}")


def test_infinite_seconds_are_damage(tmp_path: Path) -> None:
    line = json.dumps(record()).replace('"seconds": 0.12', '"seconds": 1e999')
    assert "seconds: must be a number of seconds, not inf" in error_of(damaged(tmp_path, line))


def test_keys_of_a_later_version_of_the_schema_are_let_through(tmp_path: Path) -> None:
    assert read_records([damaged(tmp_path, {**record(), "colour": "blue"})]).records[1].get("colour") == "blue"


def test_newer_schema_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = damaged(tmp_path, {"schema": 99, "shape": "unheard of"})
    assert error_of(path) == (
        f"{path}: line 2: schema: the record has version 99 and this cumatrix reads versions up to 1: update cumatrix"
    )


def test_an_older_schema_is_refused() -> None:
    with pytest.raises(RecordError, match="version 3 can no longer be read: run the cells again"):
        schema.check_schema({"schema": 3}, 4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("{", "not JSON"),
        ([], "not a plan"),
        ({"schema": 7}, "schema: the plan has version 7"),
        ({"schema": 1}, "run: missing"),
        ({**plan(), "started": "yesterday"}, "started: 'yesterday' is not a time"),
        ({**plan(), "cells": [{"cell": "x"}]}, "cells[0].case: missing"),
    ],
)
def test_damaged_plan_is_refused(tmp_path: Path, change: str | list[Any] | dict[str, Any], message: str) -> None:
    path = write(tmp_path / "r.jsonl", record())
    plan_path(path).write_text(change if isinstance(change, str) else json.dumps(change))
    assert error_of(path).startswith(f"{tmp_path / 'r.plan.json'}: {message}")


def test_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.jsonl"
    real = os.write
    with RecordWriter(path, plan(cell())) as writer:
        writer.append(record())
        monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:50]))
        with pytest.raises(OSError, match="only a part"):
            writer.append(record(outcome=built(registers=9)))
        monkeypatch.undo()
    results = read_records([path])
    assert (len(results.records), results.warnings) == (1, ())


def lines(path: Path) -> list[tuple[str, str, str]]:
    return [(item["target"], item["status"], item["run"]) for item in read_records([path]).records]


def test_cells_that_a_run_answers_anew_are_replaced_and_others_stay(tmp_path: Path) -> None:
    a, b = cell(target="sm_80"), cell(target="sm_90")
    path = write(tmp_path / "r.jsonl", record(a, run="one"), record(b, run="one"), of=plan(a, b, run="one"))
    with RecordWriter(path, plan(b, run="two", day=2)) as writer:
        writer.append(record(b, rejected(), run="two"))
    assert writer.kept == 1
    assert lines(path) == [("sm_80", "built", "one"), ("sm_90", "rejected", "two")]
    assert [(item["run"], len(item["cells"])) for item in read_plans(plan_path(path))] == [("one", 1), ("two", 1)]
    # A plan without records is removed, too.
    write(path, record(a, run="three"), of=plan(a, run="three", day=3))
    assert [item["run"] for item in read_plans(plan_path(path))] == ["two", "three"]


def test_what_another_process_writes_meanwhile_is_seen_at_the_end(tmp_path: Path) -> None:
    """The first writer keeps its own lines; the second writer's lines are added."""
    a, b = cell(target="sm_80"), cell(target="sm_90")
    path, both = tmp_path / "r.jsonl", plan(a, b, run="one")
    with RecordWriter(path, both) as first:
        first.append(record(a, run="one"))
        with RecordWriter(path, both) as second:
            second.append(record(a, Outcome(status=Status.UNAVAILABLE), run="one"))
            second.append(record(b, run="one"))
    assert lines(path) == [("sm_80", "built", "one"), ("sm_80", "unavailable", "one"), ("sm_90", "built", "one")]


def test_what_records_followed_from_that_are_no_more_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for number, fresh in ((1, False), (2, True), (3, False)):
        key = str(number) * 64
        with RecordWriter(path, plan(cell(target=f"sm_{number}0"), run=key), fresh=fresh) as writer:
            writer.append(changed(record(cell(target=f"sm_{number}0"), run=key), fingerprint=key))
            writer.inputs = Inputs(answers={key: (key, key, key)})
        wanted = {"1" * 64} if number == 1 else {str(each) * 64 for each in range(2, number + 1)}
        assert set(read_inputs([path]).answers) == wanted


def test_a_plan_has_a_line_for_each_cell(tmp_path: Path) -> None:
    plans = [plan(cell(target=f"sm_{cc}") if cc else cell(), run=str(cc)) for cc in (80, 90)]
    for some in (plans, plans[:1], [{**plans[0], "cells": []}]):
        path = tmp_path / "r.plan.json"
        path.write_bytes(plans_json(some))
        assert read_plans(path) == some
        assert path.read_text().count('\n{"cell": ') == sum(len(each["cells"]) for each in some)


def test_a_fresh_run_forgets(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", record(run="one"), of=plan(cell(), run="one"))
    other = cell(target="sm_90")
    with RecordWriter(path, plan(other, run="two"), fresh=True) as writer:
        writer.append(record(other, run="two"))
    assert lines(path) == [("sm_90", "built", "two")]
    assert [item["run"] for item in read_plans(plan_path(path))] == ["two"]


@pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.HARNESS_ERROR])
def test_a_run_without_an_answer_takes_none_away(tmp_path: Path, status: Status) -> None:
    path = write(tmp_path / "r.jsonl", record(run="one"), of=plan(cell(), run="one"))
    write(path, record(outcome=Outcome(status=status), run="two"), of=plan(cell(), run="two", day=2))
    assert lines(path) == [("sm_80", "built", "one"), ("sm_80", status, "two")]
    results = read_records([path])
    assert merge(results.records, results.plans).records[0]["status"] == "built"
    write(path, record(outcome=rejected(), run="three"), of=plan(cell(), run="three", day=3))
    assert lines(path) == [("sm_80", "rejected", "three")]


def test_an_interrupted_run_loses_no_answer(tmp_path: Path) -> None:
    a, b = cell(target="sm_80"), cell(target="sm_90")
    path = write(tmp_path / "r.jsonl", record(a, run="one"), record(b, run="one"), of=plan(a, b, run="one"))
    with contextlib.suppress(KeyboardInterrupt), RecordWriter(path, plan(a, b, run="two", day=2)) as writer:
        writer.append(record(a, rejected(), run="two"))
        raise KeyboardInterrupt
    assert lines(path) == [("sm_90", "built", "one"), ("sm_80", "rejected", "two")]


def test_another_run_may_not_write_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, plan(cell(), run="one")) as writer:
        for fresh in (False, True):
            with pytest.raises(RecordError, match="another run is writing to it"):
                RecordWriter(path, plan(cell(), run="two"), fresh=fresh).__enter__()
        writer.append(record(run="one"))
    write(path, record(run="two"), of=plan(cell(), run="two"))
    assert lines(path) == [("sm_80", "built", "two")]


def test_a_merged_file_does_not_take_the_place_of_one_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, plan(cell(), run="one")) as writer:
        with pytest.raises(RecordError, match="another run is writing to it"):
            write_merged(merge([record(run="other")], []), path)
        writer.append(record(run="one"))
    assert lines(path) == [("sm_80", "built", "one")]
    write_merged(merge([record(run="other")], []), path)
    assert lines(path) == [("sm_80", "built", "other")]


def test_a_file_that_is_removed_while_it_is_written_is_no_fault_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with RecordWriter(path, plan(cell())) as writer:
        path.unlink()
        writer.append(record())
    assert not path.exists()


def _begin_and_die(path: Path) -> None:
    RecordWriter(path, plan(cell(), run="dead")).__enter__().append(record(run="dead"))
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_was_killed_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    worker = multiprocessing.get_context("fork").Process(target=_begin_and_die, args=(path,))
    worker.start()
    worker.join(60)
    other = cell(target="sm_90")
    write(path, record(other, run="two"), of=plan(other, run="two", day=2))
    assert lines(path) == [("sm_80", "built", "dead"), ("sm_90", "built", "two")]


def _race(path: Path, name: str, barrier: Barrier, answers: Queue[str]) -> None:
    barrier.wait(60)
    try:
        with RecordWriter(path, plan(cell(), run=name)) as writer:
            writer.append(record(run=name))
            barrier.wait(60)  # hold the lock until the others have tried
        answers.put("wrote")
    except RecordError as error:
        barrier.wait(60)
        answers.put(str(error))


def test_of_several_runs_at_once_one_writes(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_race, args=(tmp_path / "r.jsonl", name, barrier, answers)) for name in "abcd"]
    for worker in workers:
        worker.start()
    said = sorted(answers.get(timeout=800) for _ in workers)
    for worker in workers:
        worker.join(60)
    assert ["another run is writing" in item for item in said] == [True, True, True, False]
    assert len(read_records([tmp_path / "r.jsonl"]).records) == 1


@pytest.mark.parametrize("text", ["my notes\n", "my notes", '{"schema": 1}\n', '{"schema": 99}\n'])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(RecordError, match=r"line 1: .*; remove .*notes.txt to start again, or name another file"):
        RecordWriter(path, plan(cell())).__enter__()
    assert path.read_text() == text
    assert [item.name for item in tmp_path.iterdir()] == ["notes.txt"]


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", record(run="one"), of=plan(cell(), run="one"))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    other = cell(target="sm_90")
    write(path, record(other, run="two"), of=plan(other, run="two", day=2))
    assert [item[0] for item in lines(path)] == ["sm_80", "sm_90"]
