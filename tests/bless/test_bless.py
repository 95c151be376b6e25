"""``cumatrix bless``, on a case and results of its own."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from in_process import Called, call
from record_builders import built, rejected

from harness.cases.load import load_case
from harness.model import Cell, Outcome, Stage, Status

from .demo import HEAD, too_old, write_case, write_results

OLD = """
# Known since the first version.
[[expect]]
when = 'cc < "7.5"'   # by hand
status = "rejected"
stage = "compile"
diagnostic = "incomplete type"
reason = "because it is so"
link = "https://example.com/why"
"""


class Place:
    """A folder of cases and results."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "cases"
        self.results = folder / "r.jsonl"
        self.case = write_case(self.root)

    def bless(self, *options: str) -> Called:
        return call("bless", self.results, "--cases", self.root, *options)

    def text(self) -> str:
        return self.case.read_bytes().decode()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_what_was_observed_is_written(place: Place) -> None:
    write_results(place.results, place.case, too_old)
    done = place.bless("--yes")
    assert done.code == 0, done.err
    assert place.text().startswith(HEAD)
    (rule,) = load_case(place.case, place.root).expectations
    assert (rule.when.text, rule.status, rule.stage, rule.diagnostic) == (
        'cc < "8.0"',
        Status.REJECTED,
        Stage.COMPILE,
        "incomplete type is not allowed",
    )
    assert rule.reason.startswith("observed on 2026-01-01 with nvrtc, CUDA 12.4 to 13.0, sm_70; ")
    assert "+when = 'cc < \"8.0\"'" in done.out
    assert "6 of 18 cells not as expected; expectations: 1 new" in done.err
    assert "not tried: cupy-nvrtc" in done.err
    again = place.bless("--yes")
    assert (again.code, again.out) == (0, "")
    assert "all of 18 cells are as expected" in again.err


def test_an_expectation_that_is_wrong_keeps_its_reason(place: Place) -> None:
    write_case(place.root, OLD)
    write_results(
        place.results,
        place.case,
        lambda cell: built(str(cell.target)) if cell.toolchain.toolkit.release == "13.0" else too_old(cell),
    )
    assert place.bless("--yes").code == 0
    assert place.text() == HEAD + OLD.replace('cc < "7.5"', 'cc < "8.0" and toolkit < "13.0"')


def test_right_ones_are_learned_anew_when_asked(place: Place) -> None:
    write_case(place.root, OLD)
    write_results(
        place.results, place.case, lambda cell: rejected() if cell.target.cc < 90 else built(str(cell.target))
    )
    assert place.bless("--diff").code == 1
    assert place.bless("--yes", "--anew").code == 0
    assert place.text() == HEAD + OLD.replace('cc < "7.5"', 'cc < "9.0"')


def test_what_is_right_stays_as_it_is(place: Place) -> None:
    write_case(place.root, OLD)
    write_results(
        place.results,
        place.case,
        lambda cell: (
            rejected("no such function")
            if cell.toolchain.toolkit.release == "13.0" and cell.target.cc >= 80
            else too_old(cell)
        ),
    )
    done = place.bless("--yes")
    assert done.code == 0, done.err
    assert place.text().startswith(HEAD + OLD)
    _, new = load_case(place.case, place.root).expectations
    assert (new.when.text, new.diagnostic) == ('toolkit >= "13.0"', "no such function")


def test_a_fault_that_is_gone_goes(place: Place) -> None:
    write_case(place.root, OLD + "\n# ---- other things ----\n\n[[unsupported]]\nwhen = 'virtual'\nreason = \"no\"\n")
    write_results(place.results, place.case, lambda cell: built(str(cell.target)))
    done = place.bless("--yes")
    assert "expectations: 1 dropped" in done.err
    assert place.text() == HEAD + "\n# ---- other things ----\n\n[[unsupported]]\nwhen = 'virtual'\nreason = \"no\"\n"


def test_expectations_of_what_nobody_tried_stay(place: Place) -> None:
    numba = OLD.replace('cc < "7.5"', "virtual")
    write_case(place.root, numba)
    write_results(place.results, place.case, too_old)
    done = place.bless("--yes")
    assert place.text().startswith(HEAD + numba)
    assert "the expectation in line 11 holds first for no cell that was tried" in done.err


def test_line_ends_and_marks_stay(place: Place) -> None:
    place.case.write_bytes(b"\xef\xbb\xbf" + (HEAD + OLD).replace("\n", "\r\n").encode())
    os.chmod(place.case, 0o640)
    write_results(place.results, place.case, lambda cell: built(str(cell.target)))
    assert place.bless("--yes").code == 0
    assert place.case.read_bytes() == b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode()
    assert place.case.stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_without_a_yes(place: Place) -> None:
    write_results(place.results, place.case, too_old)
    done = place.bless()
    assert (done.code, "--yes writes" in done.err) == (2, True)
    shown = place.bless("--diff")
    assert (shown.code, '+status = "rejected"' in shown.out) == (1, True)
    assert place.text() == HEAD


def _silent(cell: Cell) -> Outcome:
    return (
        replace(too_old(cell), status=Status.UNAVAILABLE, reason="no headers")
        if cell.target.cc == 90
        else too_old(cell)
    )


def test_a_wrong_matrix_is_refused(place: Place, tmp_path: Path) -> None:
    write_results(place.results, place.case, _silent)
    done = place.bless("--yes")
    assert done.code == 2
    assert (
        "demo/sum: 6 cells without an answer (6 unavailable), the first demo/sum[bytes=48] nvrtc cuda12.4 sm_90: no headers"
        in done.err
    )
    assert done.err.count("\n") == 1
    assert place.bless("--yes", "--where", 'cc < "9.0"').code == 0
    place.case.write_text(HEAD)
    write_results(place.results, place.case, too_old)
    other = tmp_path / "other.jsonl"
    lines = place.results.read_text().splitlines()
    flaky = {**json.loads(lines[0]), "run": "run-2", "status": "crashed", "verdict": "fail"}
    other.write_text(json.dumps(flaky) + "\n")
    done = call("bless", place.results, other, "--cases", place.root, "--yes")
    assert done.code == 2
    assert "1 cell with two results that differ, the first demo/sum[bytes=48] nvrtc cuda12.4 sm_70" in done.err
    assert place.text() == HEAD


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--yes", "demo/nothing"), 'no case is called "demo/nothing"'),
        (("--yes", "gone.jsonl"), "gone.jsonl: no such file"),
        (("--yes", "r.parquet"), "bless reads .jsonl files"),
        (("--yes", "--where", "sise > 3"), "unknown name 'sise'"),
    ],
)
def test_bad_usage(place: Place, options: tuple[str, ...], words: str) -> None:
    write_results(place.results, place.case, too_old)
    done = place.bless(*options)
    assert (done.code, words in done.err) == (2, True), done.err
    assert place.text() == HEAD


def test_expectations_in_one_line_are_refused(place: Place) -> None:
    write_case(place.root, head="expect = [{ when = 'virtual', status = \"rejected\" }]\n" + HEAD)
    write_results(place.results, place.case, too_old)
    done = place.bless("--yes")
    assert (done.code, "case.toml:1: expect: write [[expect]] tables" in done.err) == (2, True)


def test_crashes_and_deadlines_are_told_by_their_status(place: Place) -> None:
    def told(cell: Cell) -> Outcome:
        status = {70: Status.CRASHED, 80: Status.TIMED_OUT}.get(cell.target.cc)
        return rejected(status=status, signal=11) if status else built(str(cell.target))

    write_results(place.results, place.case, told)
    assert place.bless("--yes").code == 0
    rules = {rule.status: rule for rule in load_case(place.case, place.root).expectations}
    assert set(rules) == {Status.CRASHED, Status.TIMED_OUT}
    assert all(rule.diagnostic is None for rule in rules.values())


def test_hostile_messages(place: Place) -> None:
    message = "a \\'\"'''\" [x](y){3} $z ^ | * + ? \\d \x1b]0;t\x07 é"
    write_results(
        place.results, place.case, lambda cell: rejected(message) if cell.target.cc < 80 else built(str(cell.target))
    )
    done = place.bless("--yes")
    assert not done.problem() and done.code == 0, done.err


def test_missing_kernels_are_no_reason_for_an_expectation(place: Place) -> None:
    write_results(place.results, place.case, too_old)
    place.case.write_text('kernels = ["sum"]\n' + HEAD)
    done = place.bless("--yes")
    assert done.code == 2
    assert "is built, but kernel sum is missing (kernels there: kernel): bless writes no requirements" in done.err
    assert place.text() == 'kernels = ["sum"]\n' + HEAD
