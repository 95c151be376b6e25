"""Exit codes reflect all cells of a run, regardless of order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from in_process import Called, call
from record_builders import cell, plan, record, rejected

from harness.cli.execute import exit_code
from harness.engine.proof import without_answer
from harness.model import Cell, Status
from harness.records import Record, RecordWriter
from harness.toolkits import Installed

GOOD = "__global__ void k(int *a) { *a = 1; }\n"
BAD = "__global__ void k(int *a) { *a = missing; }\n"
TARGETS = ("sm_75", "sm_80", "sm_90")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, records: Sequence[Record], cells: Sequence[Cell] = ()) -> str:
    """Write records as a run does, with the plan of `cells`."""
    with RecordWriter(path, plan(*cells)) as writer:
        for each in records:
            writer.append(each)
    return str(path)


@pytest.mark.parametrize(
    ("status", "unexpected", "answered"), [*product(("built", "unavailable"), (0, 1, 3), (True, False))]
)
def test_a_part_that_is_missing_comes_first_and_silence_last(status: str, unexpected: int, answered: bool) -> None:
    wanted = 4 if status == "unavailable" else 1 if unexpected else 0 if answered else 3
    assert exit_code({"built", status}, unexpected=unexpected, answered=answered) == wanted


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("place", range(3))
def test_one_answer_among_cells_that_have_none_is_enough(status: Status, place: int) -> None:
    records: list[dict[str, Any]] = [{"status": "unsupported", "reason": "no such target"} for _ in TARGETS]
    records[place] = {"status": status, "reason": "as it is", "artifact": {"kernels": [{"name": "k"}]}}
    said = without_answer(records)
    if status in ("unsupported", "unavailable", "harness_error"):
        assert "any of the 3 cells" in said
        assert "no such target" in said
    else:
        assert said == ""
    assert without_answer([]) == ""
    assert "any of the 2 cells" in without_answer([{"status": "unavailable", "reason": "none"}] * 2)
    assert without_answer(records[:1]) in ("", f"no compiler answered the one cell: {records[0]['reason']}")


def test_programs_without_a_kernel_are_no_answer() -> None:
    empty: dict[str, Any] = {"status": "built", "reason": "", "artifact": {"kernels": []}}
    assert "no kernel came out of any of the 2 cells that were built" in without_answer([empty, empty])
    assert "no kernel came out of the one cell" in without_answer([empty, {"status": "unsupported", "reason": ""}])
    assert without_answer([empty, {**empty, "artifact": {"kernels": [{"name": "k"}]}}]) == ""
    assert without_answer([empty, {"status": "rejected", "reason": "", "artifact": None}]) == ""


@pytest.mark.parametrize("lost", [None, 0, 1, 2])
def test_merge(folder: Path, lost: int | None) -> None:
    cells = [cell(target=target) for target in TARGETS]
    there = [record(each) for place, each in enumerate(cells) if place != lost]
    done = call("merge", write(folder / "r.jsonl", there, cells), "--out", "all.jsonl")
    assert done.code == (0 if lost is None else 1), done.err
    assert (lost is None) == ("0 never arrived" in done.err)


def compared(folder: Path, old: Sequence[bool], new: Sequence[bool]) -> Called:
    """Run ``cumatrix diff`` on built and failed cells."""
    files = []
    for name, built in (("old", old), ("new", new)):
        records = [
            record(cell(target=target)) if good else record(cell(target=target), rejected())
            for target, good in zip(TARGETS, built, strict=True)
        ]
        files.append(write(folder / f"{name}.jsonl", records))
    return call("diff", *files)


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_diff(folder: Path, bad: int) -> None:
    broken = [place != bad for place in range(3)]
    assert compared(folder, [True] * 3, broken).code == 1
    assert compared(folder, broken, [True] * 3).code == 0  # a fix
    assert compared(folder, broken, broken).code == 0  # as before
    elsewhere = [*broken[1:], broken[0]]
    assert compared(folder, broken, elsewhere).code == 1  # a fix does not compensate for it


@pytest.mark.parametrize("form", ["github", "sarif", "gitlab"])
def test_annotate_leaves_the_verdict_to_the_run(folder: Path, form: str) -> None:
    for place in range(3):
        records = [
            record(cell(target=target), rejected() if number == place else None)
            for number, target in enumerate(TARGETS)
        ]
        path = write(folder / f"{place}.jsonl", records)
        done = call("annotate", path, "--format", form)
        assert done.code == 0, done.err
        assert "rejected" in done.out
        assert TARGETS[place] in done.out
    assert call("annotate", "missing.jsonl", "--format", form).code == 2


@pytest.mark.parametrize("command", [["run"], ["run", "--where", "cc > '1.0'"], ["try", "k.cu"], ["pytest"]])
def test_nothing_is_downloaded_for_records_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Without toolkits and without an index, an attempt to download changes the exit code."""
    monkeypatch.setenv("CUMATRIX_HOME", str(folder / "home"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    case = folder / "cases" / "made" / "k"
    case.mkdir(parents=True)
    for path in (folder / "k.cu", case / "k.cu"):
        path.write_text(GOOD)
    (case / "case.toml").write_text('title = "made"\n[source]\ncuda = "k.cu"\n')
    (folder / "file").touch()
    if command == ["pytest"]:
        axes = ["--cumatrix-backend=nvrtc", "--cumatrix-toolkit=12.4", "--cumatrix-target=sm_80"]
        argv = [sys.executable, "-m", "pytest", "cases", *axes, "--cumatrix-out=file/r.jsonl"]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=600)
        code, err = done.returncode, done.stdout + done.stderr
        assert code == pytest.ExitCode.USAGE_ERROR, err
    else:
        called = call(*command, "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--out", "file/r.jsonl")
        code, err = called.code, called.err
        assert code == 2, err
    assert "cannot write file/r.jsonl: " in err
    assert "installing" not in err


@pytest.mark.compilers
class TestOneOfThreeCells:
    """Three programs: one of them does not compile, or all do (None)."""

    @pytest.fixture(autouse=True)
    def _toolkit(self, toolkit: Callable[[str], Installed]) -> None:
        toolkit("12.4")

    @pytest.mark.parametrize("bad", [None, 0, 1, 2])
    def test_try(self, folder: Path, bad: int | None) -> None:
        files = [f"{name}.cu" for name in "abc"]
        for place, name in enumerate(files):
            (folder / name).write_text(BAD if place == bad else GOOD)
        done = call(
            "try", *files, "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "-j", "1", "--no-cache", "--out", "r.jsonl"
        )
        statuses = [json.loads(line)["status"] for line in (folder / "r.jsonl").read_text().splitlines()]
        assert statuses == ["rejected" if place == bad else "built" for place in range(3)], "they finish in this order"
        assert done.code == (0 if bad is None else 1), done.err

    def test_pytest(self, folder: Path) -> None:
        for place, name in enumerate("abc"):
            case = folder / "cases" / "made" / name
            case.mkdir(parents=True)
            (case / "k.cu").write_text(BAD if place == 1 else GOOD)
            (case / "case.toml").write_text('title = "made"\n[source]\ncuda = "k.cu"\n')
        axes = ["--cumatrix-backend=nvrtc", "--cumatrix-toolkit=12.4", "--cumatrix-target=sm_80"]
        argv = [sys.executable, "-m", "pytest", "-v", "-p", "no:randomly", "cases", *axes]
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=600)
        assert [done.stdout.count(word) for word in (" PASSED ", " FAILED ")] == [2, 1]
        assert done.returncode == 1, done.stdout
