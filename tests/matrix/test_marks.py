"""Kinds of cells: their records, expectation, and agreement of all displays."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from record_builders import BUILT, built, cell, record, rejected

from harness.analysis import cells_frame
from harness.analysis.diff import unexpected
from harness.cli.terminal import printable
from harness.matrix.marks import KINDS, LEAST_EXPECTED, as_expected, kind_of, unexpected_among
from harness.model import Artifact, Expectation, KernelResources, Outcome, Stage, Status
from harness.model.condition import Condition
from harness.records import merge
from harness.report.api import badges
from harness.report.exports import matrix_json, matrix_markdown
from harness.report.junit import junit_xml
from harness.report.overview import make_overview, totals
from harness.report.page_data import matrix_data


def expecting(status: Status, **more: Any) -> Expectation:
    return Expectation(when=Condition.always(), status=status, **more)


XFAIL, REJECTED = expecting(Status.REJECTED, xfail=True), expecting(Status.REJECTED)
CRASHED, TIMED_OUT = expecting(Status.CRASHED), expecting(Status.TIMED_OUT)
KNOWN_CRASH = expecting(Status.CRASHED, xfail=True)
ELSEWHERE = expecting(Status.REJECTED, stage=Stage.LINK)
EMPTY = Artifact(format="cubin", target="sm_80", bytes=10, sha256="")
PTX = replace(EMPTY, format="ptx", target="compute_80", kernels=(KernelResources(name="k"),))


def only(status: Status) -> Outcome:
    return Outcome(status=status)


# Outcome, expectation, kind, verdict, and whether a run of only this cell exits with 0.
TABLE = [
    (built(), BUILT, "built", "pass", True),
    (built(artifact=PTX, stage=Stage.COMPILE, stages=(Stage.COMPILE,)), BUILT, "partial", "pass", True),
    (built(artifact=PTX), BUILT, "built", "pass", True),
    (built(artifact=EMPTY), BUILT, "no_kernels", "pass", True),
    (rejected(), REJECTED, "rejected", "pass", True),
    (only(Status.CRASHED), CRASHED, "died", "pass", True),
    (only(Status.TIMED_OUT), TIMED_OUT, "died", "pass", True),
    (rejected(), XFAIL, "xfail", "xfail", True),
    (only(Status.CRASHED), KNOWN_CRASH, "xfail", "xfail", True),
    (built(), XFAIL, "xpass", "xpass", False),
    (built(), REJECTED, "fail", "fail", False),
    (rejected(), BUILT, "fail", "fail", False),
    (rejected(), ELSEWHERE, "fail", "fail", False),
    (rejected(), CRASHED, "fail", "fail", False),
    (only(Status.CRASHED), BUILT, "crashed", "fail", False),
    (only(Status.CRASHED), REJECTED, "crashed", "fail", False),
    (only(Status.CRASHED), XFAIL, "crashed", "fail", False),
    (only(Status.TIMED_OUT), XFAIL, "timed_out", "fail", False),
    (only(Status.TIMED_OUT), CRASHED, "timed_out", "fail", False),
    (only(Status.UNSUPPORTED), BUILT, "unsupported", "unsupported", True),
    (only(Status.UNSUPPORTED), XFAIL, "unsupported", "unsupported", True),
    (only(Status.UNAVAILABLE), BUILT, "unavailable", "unresolved", False),
    (only(Status.UNAVAILABLE), XFAIL, "unavailable", "unresolved", False),
    (only(Status.HARNESS_ERROR), BUILT, "harness_error", "unresolved", False),
    (only(Status.HARNESS_ERROR), REJECTED, "harness_error", "unresolved", False),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "expected", "key", "verdict", "good"), TABLE)
def test_kind_verdict_and_whether_it_is_as_expected(
    outcome: Outcome, expected: Expectation, key: str, verdict: str, good: bool
) -> None:
    made = record(outcome=outcome, expected=expected)
    assert (kind_of(made).key, made["verdict"], as_expected(made)) == (key, verdict, good)


def test_the_table_has_every_kind_that_a_record_can_be_of() -> None:
    assert {key for _, _, key, *_ in TABLE} | {"missing"} == set(KINDS)


@pytest.mark.parametrize(("outcome", "expected", "key", "verdict", "good"), TABLE)
def test_all_that_shows_cells_agrees(
    outcome: Outcome, expected: Expectation, key: str, verdict: str, good: bool
) -> None:
    merged = merge([record(outcome=outcome, expected=expected)], [])
    table = cells_frame(merged)
    bad = int(not good)
    assert len(unexpected(table[:0], table)) == bad
    assert unexpected_among(totals(table)) == make_overview(table).total.bad == bad
    said = "not available" if key == "unavailable" else "not as expected"
    assert (said in badges(table)["all.svg"].decode()) is not good
    assert ("## Not as expected" in matrix_markdown(table)) is not good
    suite = ET.fromstring(junit_xml(merged))
    assert int(suite.get("failures", 0)) + int(suite.get("errors", 0)) == bad


def test_a_cell_that_never_arrived_is_not_as_expected() -> None:
    assert not KINDS["missing"].as_expected


def test_ptx_for_a_virtual_target_is_all_there_is() -> None:
    made = record(cell(target="compute_80"), built(artifact=PTX, stages=(Stage.COMPILE,)))
    assert kind_of(made).key == "built"


def test_failures_come_in_the_order_of_their_severity() -> None:
    unexpected = [key for key in LEAST_EXPECTED if not KINDS[key].as_expected]
    assert unexpected == ["crashed", "timed_out", "harness_error", "fail", "missing", "xpass", "unavailable"]


def test_no_two_kinds_share_a_letter_or_a_word() -> None:
    for name in ("letter", "plain", "word"):
        assert len({getattr(kind, name) for kind in KINDS.values()}) == len(KINDS)
    assert all(len(kind.letter) == 1 and kind.plain.isascii() for kind in KINDS.values())


@pytest.mark.parametrize(
    ("encoding", "letters"), [("utf-8", "✓◐–F"), ("ascii", "BP-F"), ("latin-1", "BP-F"), ("cp1252", "BP–F"), ("no-such", "BP-F")]
)  # fmt: skip
def test_letters_that_a_stream_does_not_have_are_replaced(encoding: str, letters: str) -> None:
    kinds = (KINDS[key] for key in ("built", "partial", "unsupported", "fail"))
    assert "".join(printable(kind.letter, kind.plain, encoding) for kind in kinds) == letters


def test_page_and_exports_have_this_legend() -> None:
    merged = merge([record()], [])
    table = cells_frame(merged)
    files = {case: f"{case}.html" for case in table["case"]}
    words = [(kind.key, kind.letter, kind.word, kind.meaning, kind.as_expected) for kind in KINDS.values()]
    shown = matrix_data(table, {}, files)
    assert [
        tuple(item[key] for key in ("key", "letter", "word", "meaning", "good")) for item in shown["marks"]
    ] == words
    assert [item["style"] for item in shown["marks"]] == [kind.css for kind in KINDS.values()]
    exported = json.loads(matrix_json(merged, table, files, []))["marks"]
    assert [(key, *item.values()) for key, item in exported.items()] == words
