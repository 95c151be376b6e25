"""``cumatrix history``, over nights with handmade records."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from history_builders import CELLS, night
from record_builders import built, cell, plan, record, rejected

from harness.records import RecordWriter

pytestmark = pytest.mark.called

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights: sm_75 breaks in the second, sm_80 was never good, sm_90 alternates."""
    folder = tmp_path_factory.mktemp("nights")
    night(folder, 1, built("sm_75"), rejected(), built("sm_90"), commit="c0ffee")
    night(folder, 2, rejected(), rejected(), rejected())
    night(folder, 3, rejected(), rejected(), built("sm_90"))
    return folder


@pytest.fixture
def history(cumatrix: Command, nights: Path) -> Run:
    """Run a command of ``cumatrix history`` on these nights."""
    shutil.copytree(nights, cumatrix.folder / "history")
    return lambda *arguments: cumatrix("history", *arguments)


def written(folder: Path, run: str, *outcomes: Any, day: int = 1) -> str:
    """Write a file of records, with its plan."""
    with RecordWriter(folder / f"{run}.jsonl", plan(*CELLS, run=run, day=day)) as writer:
        for of, outcome in zip(CELLS, outcomes, strict=False):
            writer.append(record(of, outcome, run=run))
    return f"{run}.jsonl"


def test_list_has_a_row_for_each_night_oldest_first(history: Run) -> None:
    rows = json.loads(history("list", "--json").stdout)
    assert [(row["run"], row["cells"], row["built"], row["bad"], row["missing"]) for row in rows] == [
        ("run-1", 3, 2, 1, 0),
        ("run-2", 3, 0, 3, 0),
        ("run-3", 3, 1, 2, 0),
    ]
    text = history("list").stdout
    assert [line.split()[0] for line in text.splitlines()] == ["run", "run-1", "run-2", "run-3"]
    assert "c0ffee" in text


def test_cell_tells_where_it_changed(history: Run) -> None:
    done = history("cell", "sm_75", "--json")
    told = json.loads(done.stdout)
    assert told["cell"] == CELLS[0].id
    assert [(event["run"], event["outcome"], event["changed"]) for event in told["events"]] == [
        ("run-1", "built", False),
        ("run-2", "rejected at compile", True),
        ("run-3", "rejected at compile", False),
    ]
    lines = history("cell", "sm_75").stdout.splitlines()
    assert lines[0] == CELLS[0].id
    assert [line.startswith("->") for line in lines[1:]] == [False, True, False]


def test_broken_names_the_last_good_and_the_first_bad_run(history: Run) -> None:
    told = json.loads(history("broken", "--json").stdout)
    assert [(item["cell"], item["last_good"], item["first_bad"], item["runs"]) for item in told["broken"]] == [
        (CELLS[0].id, "run-1", "run-2", 2),
        (CELLS[1].id, None, "run-1", 3),
    ]
    # Both outcomes changed under one content key.
    assert {item["cell"]: item["flaky"] for item in told["unsteady"]} == {CELLS[0].id: True, CELLS[2].id: True}
    text = history("broken").stdout
    assert "good in run-1, bad since run-2" in text
    assert "never good, bad since run-1" in text
    assert text.splitlines()[-1] == "2 cells broken, 2 flaky"


@pytest.mark.slow
def test_add_appends_and_replaces(cumatrix: Command) -> None:
    for run, day, targets, rows in (
        ("mine", 1, ["sm_75"], [("mine", 1)]),
        ("later", 2, ["sm_75", "sm_80"], [("mine", 1), ("later", 2)]),
        ("mine", 1, ["sm_75", "sm_80", "sm_90"], [("mine", 3), ("later", 2)]),
    ):
        name = written(cumatrix.folder, run, *map(built, targets), day=day)
        done = cumatrix("history", "add", name, "--commit", "abc")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        listed = json.loads(cumatrix("history", "list", "--json").stdout)
        assert [(row["run"], row["built"]) for row in listed] == rows
        assert {row["commit"] for row in listed} == {"abc"}


def test_the_folder_can_be_another_one(cumatrix: Command, nights: Path) -> None:
    for done in (
        cumatrix("history", "list", "--json", "--history", nights),
        cumatrix("history", "list", "--json", env={"CUMATRIX_HISTORY": str(nights)}),
    ):
        assert len(json.loads(done.stdout)) == 3
    assert not (cumatrix.folder / "history").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("cell", "sm_"), 2, "3 cells"),
        (("cell", "sm_1234"), 2, "no cell of 3 has 'sm_1234' in its id"),
        (("list", "--history", "nowhere"), 2, "there is no history"),
        (("list", "--history", "empty"), 3, "there are no runs in empty"),
    ],
)
def test_what_cannot_be_told_is_one_sentence(
    history: Run, cumatrix: Command, arguments: tuple[str, ...], code: int, words: str
) -> None:
    (cumatrix.folder / "empty").mkdir()
    done = history(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_without_records_and_without_a_plan_adds_nothing(history: Run, cumatrix: Command) -> None:
    (cumatrix.folder / "empty.jsonl").touch()
    done = history("add", "empty.jsonl")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1] == "cumatrix: there are no records in these files"


def test_names_in_a_history_do_nothing_to_the_terminal(cumatrix: Command) -> None:
    of = cell(environment="\x1b[31mred")
    night(cumatrix.folder / "history", 1, rejected("\x1b]0;title\x07"), cells=[of], run="\x1b[2Jrun", commit="\x1b[1m")
    for command in (("list",), ("broken",), ("cell", of.id)):
        done = cumatrix("history", *command)
        assert done.returncode == 0, done.stderr
        assert "\x1b" not in done.stdout
        assert "\x07" not in done.stdout
