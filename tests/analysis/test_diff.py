"""Changes between two sets of cells, and regressions among them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from record_builders import BUILT, built, cell, plan, record, rejected

from harness.analysis import cells_frame, changes, is_regression, make_frame
from harness.analysis.diff import CHANGE_KINDS, MEANINGS, Changes
from harness.model import Expectation, Outcome, Status
from harness.records import merge

XFAIL = replace(BUILT, status=Status.REJECTED, xfail=True)
REJECTED = replace(BUILT, status=Status.REJECTED)
CRASH = Outcome(status=Status.CRASHED, signal=11)
UNAVAILABLE = Outcome(status=Status.UNAVAILABLE, reason="gone")

Side = tuple[Outcome] | tuple[Outcome, Expectation]


def one(old: Side, new: Side) -> Changes:
    """Return the only change between two outcomes (with expectations) of a cell."""
    tables = [make_frame([record(None, *side)]) for side in (old, new)]
    return changes(*tables)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ((built(),), (rejected(),), "regression"),
        ((rejected(), REJECTED), (built(), REJECTED), "regression"),
        ((rejected(), XFAIL), (CRASH, XFAIL), "regression"),
        ((rejected(),), (CRASH,), "regression"),
        ((built(),), (rejected(), REJECTED), "changed"),
        ((CRASH,), (rejected(),), "changed"),
        ((rejected(),), (rejected("something else"),), "diagnostics"),
        ((rejected(),), (built(),), "fix"),
        ((rejected(), XFAIL), (built(), XFAIL), "fix"),
        ((built(),), (UNAVAILABLE,), "lost"),
        ((UNAVAILABLE,), (rejected(),), "found"),
        ((built(registers=40),), (built(registers=48),), "resources"),
        ((built(seconds=1),), (built(seconds=2),), None),
        ((UNAVAILABLE,), (UNAVAILABLE,), None),
    ],
)
def test_kinds(old: Side, new: Side, kind: str | None) -> None:
    found = one(old, new)
    assert list(found.counts) == ([kind] if kind else [])
    assert bool(found.regressions) == (kind == "regression")
    assert found.same == (0 if kind else 1)


def test_every_kind_has_a_meaning() -> None:
    assert tuple(MEANINGS) == CHANGE_KINDS


def test_a_regression_needs_two_answers() -> None:
    assert not is_regression(
        {"outcome": "missing", "verdict": ""}, {"outcome": "rejected at compile", "verdict": "fail"}
    )
    assert not is_regression(
        {"outcome": "built", "verdict": "pass"}, {"outcome": "harness_error", "verdict": "unresolved"}
    )


def test_resources_are_told_by_kernel() -> None:
    (change,) = one((built(registers=40),), (built(registers=48),)).items
    assert [(item.kernel, item.resource, item.old, item.new) for item in change.resources] == [
        ("kernel", "registers", 40, 48)
    ]


def test_new_diagnostics_are_told_by_fingerprint() -> None:
    (change,) = one((rejected("old"),), (rejected("new words"),)).items
    assert change.diagnostics == ("new word",)
    assert change.old is not None and change.new is not None
    assert (change.old.message, change.new.message) == ("old", "new words")


def test_appeared_vanished_and_lost() -> None:
    cells = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90")]
    old = cells_frame(merge([record(cells[0]), record(cells[1])], [plan(*cells[:2])]))
    new = cells_frame(merge([record(cells[2], rejected())], [plan(*cells[1:])]))
    found = changes(old, new)
    assert [(item.kind, item.place["target"]) for item in found.items] == [
        ("lost", "sm_80"),
        ("appeared", "sm_90"),
        ("vanished", "sm_75"),
    ]
    assert found.items[1].old is None
    assert found.items[2].new is None


def test_across_versions_of_a_library() -> None:
    old = make_frame([record(cell(library="13.0.0"))])
    new = make_frame([record(cell(library="14.0.0"), rejected()), record(cell(library="13.9.0"))])
    assert list(changes(old, new).counts) == ["appeared", "vanished"]
    (change,) = changes(old, new, across=["library"]).items
    assert change.old is not None and change.new is not None
    assert (change.kind, change.old.cell, change.new.cell) == (
        "regression", cell(library="13.0.0").id, cell(library="14.0.0").id,
    )  # fmt: skip
    assert change.to_json()["new"]["outcome"] == "rejected at compile"


def test_the_same_set_has_no_changes() -> None:
    table = make_frame([record(), record(cell(target="sm_90"), rejected())])
    assert changes(table, table).items == ()
    assert changes(table, table).same == 2
    assert changes(table.iloc[:0], table.iloc[:0]).same == 0
