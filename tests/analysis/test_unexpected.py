"""Cells that are not as expected now, and whether they were before."""

from __future__ import annotations

import pytest
from record_builders import BUILT, built, cell, plan, record, rejected

from harness.analysis import cells_frame, make_frame
from harness.analysis.diff import unexpected
from harness.model import Expectation, Outcome, Stage, Status
from harness.model.condition import Condition
from harness.records import merge

KNOWN = Expectation(when=Condition.always(), status=Status.REJECTED, xfail=True, reason="told upstream")
CRASH = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, stages=(Stage.COMPILE,), signal=11)
GONE = Outcome(status=Status.UNAVAILABLE, reason="not installed")


@pytest.mark.parametrize(
    ("old", "new", "news"),
    [
        ((built(), BUILT), (built(), BUILT), None),
        ((built(), BUILT), (rejected(), KNOWN), None),
        ((built(), BUILT), (rejected(), BUILT), True),
        ((rejected(), BUILT), (rejected("other words"), BUILT), False),
        ((rejected(), BUILT), (CRASH, BUILT), True),
        ((CRASH, BUILT), (rejected(), BUILT), False),
        ((GONE, BUILT), (rejected(), BUILT), True),
        ((GONE, BUILT), (GONE, BUILT), False),
        ((rejected(), BUILT), (GONE, BUILT), False),
        ((built(), BUILT), (GONE, BUILT), True),
        ((rejected(), KNOWN), (built(), KNOWN), True),
    ],
)
def test_news(old: tuple[Outcome, Expectation], new: tuple[Outcome, Expectation], news: bool | None) -> None:
    tables = [make_frame([record(None, *side)]) for side in (old, new)]
    found = unexpected(*tables)
    assert [item.new for item in found] == ([] if news is None else [news])


def test_cells_that_appeared_or_never_arrived() -> None:
    cells = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90")]
    old = cells_frame(merge([record(cells[0])], [plan(cells[0])]))
    new = cells_frame(merge([record(cells[1], rejected())], [plan(*cells[:2])]))
    found = unexpected(old, new)
    assert [(item.cell, item.mark, item.before, item.new) for item in found] == [
        (cells[0].id, "missing", "built", True),
        (cells[1].id, "fail", None, True),
    ]


def test_what_is_unavailable_tells_why() -> None:
    table = make_frame([record(None, GONE)])
    (item,) = unexpected(table, table)
    assert item.message == "not installed"
    assert item.to_json()["page"].startswith("matrix.html#cell=wmma/fragments;")


def test_across_versions_of_a_library() -> None:
    old = make_frame([record(cell(library="13.0.0"), rejected())])
    new = make_frame([record(cell(library="14.0.0"), rejected())])
    assert unexpected(old, new)[0].new
    assert not unexpected(old, new, across=["library"])[0].new
