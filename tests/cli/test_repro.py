"""``cumatrix repro``: choosing the cell, and errors if no folder can be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command
from record_builders import built, cell, record, rejected

from harness.model import Cell, Outcome, Status

from .test_errors import sentence

pytestmark = pytest.mark.called

THROW = "exceptions/throw"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return records of cells that were never run, as the reader returns them."""

    def throw(toolkit: str, target: str) -> Cell:
        return cell(THROW, backend="nvrtc", library="", toolkit=toolkit, target=target)

    records = [
        record(throw("12.9", "sm_75"), rejected()),
        record(throw("12.9", "sm_80"), rejected()),
        record(throw("13.0", "sm_90"), built("sm_90")),
        record(throw("13.0", "sm_50"), Outcome(status=Status.UNSUPPORTED, reason="knows no sm_50")),
        record(cell(case="gone/away", backend="nvrtc", library="", toolkit="12.9"), rejected()),
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


@pytest.mark.parametrize(
    ("named", "said"),
    [
        (
            "exceptions/throw nvrtc cuda11.8",
            "no cell of 5 has 'exceptions/throw nvrtc cuda11.8' in its id; ids look like ",
        ),
        ("throw", "4 cells have 'throw' in their ids, say more"),
        ("throw*sm_50", "is unsupported: no compiler was asked, so there is nothing to show (knows no sm_50)"),
        ("gone/away", 'no case is called "gone/away"'),
    ],
)
def test_what_cannot_be_shown_is_a_sentence(cumatrix: Command, results: Path, named: str, said: str) -> None:
    done = cumatrix("repro", named, "--results", results, "--out", "out")
    sentence(done, 2, said)
    assert not (cumatrix.folder / "out").exists()


@pytest.mark.parametrize("named", ["exceptions/throw nvrtc cuda12.9 sm_80", "throw*12.9*80", "cuda12.9 throw sm_80"])
def test_a_cell_by_its_id_by_a_pattern_and_by_words(cumatrix: Command, results: Path, named: str) -> None:
    done = cumatrix("repro", named, "--results", results, "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "out: what it shows, and how, is in out/README.md\n"
    kept = json.loads((cumatrix.folder / "out" / "record.json").read_text())
    assert kept["cell"] == "exceptions/throw nvrtc cuda12.9 sm_80"
    again = cumatrix("repro", named, "--results", results, "--out", "out")
    sentence(again, 2, "out already exists: name another folder with --out")


def test_without_records(cumatrix: Command) -> None:
    done = cumatrix("repro", "throw", "--out", "out")
    sentence(done, 2, "there is no folder reports to look for a cell in")


def test_damaged_records_are_no_reason_to_take_the_published_cell(cumatrix: Command) -> None:
    (cumatrix.folder / "reports").mkdir()
    (cumatrix.folder / "reports" / "mine.jsonl").write_text('{"schema": 1}\n')
    done = cumatrix("repro", "wmma/cupy-8146 nvrtc cuda12.4 sm_80", "--out", "out")
    assert done.returncode == 2
    assert "mine.jsonl" in done.stderr
    assert not (cumatrix.folder / "out").exists()


@pytest.mark.slow
def test_a_cell_of_the_published_matrix(cumatrix: Command) -> None:
    name = "wmma/cupy-8146 nvrtc cuda12.4 sm_80"
    done = cumatrix("repro", name, "--out", "out")
    assert (done.returncode, done.stderr) == (0, f"{name} is a cell of the published matrix\n")
    assert json.loads((cumatrix.folder / "out" / "record.json").read_text())["cell"] == name


def test_without_a_tool_that_reduces(cumatrix: Command, results: Path) -> None:
    done = cumatrix(
        "repro", "throw*12.9*80", "--results", results, "--out", "out", "--reduce", env={"PATH": "/nowhere"}
    )
    sentence(done, 4, "neither cvise nor creduce is on the path: apt install cvise")
    assert not (cumatrix.folder / "out").exists()


def test_what_was_built_is_not_reduced(cumatrix: Command, results: Path) -> None:
    done = cumatrix("repro", "throw*13.0*sm_90", "--results", results, "--out", "out", "--reduce")
    sentence(done, 2, "is built: --reduce makes programs smaller that a compiler refuses or dies on")
