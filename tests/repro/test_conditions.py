"""Conditions of an outcome, from records, and neighbours that differ."""

from __future__ import annotations

from typing import Any

from record_builders import built, cell, record, rejected

from harness.records import Record
from harness.repro.folder import find, spell

TARGETS = ("sm_70", "sm_75", "sm_80", "sm_90")


def some(toolkit: str, target: str, *, bad: bool, **more: Any) -> Record:
    return record(cell(toolkit=toolkit, target=target, **more), rejected() if bad else built(target))


def grid(bad: set[tuple[str, str]]) -> list[Record]:
    """Return cells of four CUDA releases and four targets."""
    return [some(t, a, bad=(t, a) in bad) for t in ("12.3", "12.4", "12.6", "12.8") for a in TARGETS]


def test_both_sides_of_a_border_are_named() -> None:
    records = grid({(toolkit, target) for toolkit in ("12.4", "12.6") for target in ("sm_70", "sm_75")})
    found = find(next(r for r in records if r["toolkit"] == "12.4" and r["target"] == "sm_75"), records)
    told = {condition.axis: condition.text for condition in found.conditions}
    assert told == {"toolkit": "CUDA 12.4 to 12.6", "target": "sm_75 and below"}
    assert all(condition.counts for condition in found.conditions)
    near = [(each["toolkit"], each["target"]) for each in found.neighbours]
    assert near == [("12.3", "sm_75"), ("12.8", "sm_75"), ("12.4", "sm_80")]
    assert (found.inside, found.inside_same, found.elsewhere) == (4, 4, 0)


def test_what_happens_outside_of_the_conditions_is_counted() -> None:
    records = grid({("12.4", "sm_75"), ("12.8", "sm_90")})
    found = find(next(r for r in records if r["status"] == "rejected"), records)
    assert (found.inside, found.inside_same, found.elsewhere) == (1, 1, 1)


def test_another_message_is_another_outcome() -> None:
    one, other = some("12.4", "sm_75", bad=True), record(cell(target="sm_80"), rejected("out of registers"))
    found = find(one, [one, other])
    assert [each["target"] for each in found.neighbours] == ["sm_80"]


def test_an_axis_on_which_nothing_differs_is_no_condition() -> None:
    records = grid({(toolkit, target) for toolkit in ("12.3", "12.4", "12.6", "12.8") for target in ("sm_70",)})
    found = find(records[0], records)
    assert {condition.axis: condition.counts for condition in found.conditions} == {"toolkit": False, "target": True}


def test_a_parameter_is_an_axis() -> None:
    records = [record(cell(variant={"bytes": size}), rejected() if size > 49152 else built()) for size in (1024, 49152, 49156, 65536)]  # fmt: skip
    (condition,) = find(records[-1], records).conditions
    assert (condition.text, condition.same) == ("bytes = 49156 and above", ("49156", "65536"))


def test_where_no_compiler_answered_nothing_is_told() -> None:
    from harness.model import Outcome, Status

    one = some("12.4", "sm_75", bad=True)
    silent = record(cell(target="sm_80"), Outcome(status=Status.UNSUPPORTED, reason="no such architecture"))
    assert find(one, [one, silent]).conditions == ()


def test_other_backends_that_end_otherwise_are_neighbours() -> None:
    one, other = some("12.4", "sm_80", bad=True), some("12.4", "sm_80", bad=False, backend="nvrtc", library="")
    assert [each["backend"] for each in find(one, [one, other]).neighbours] == ["nvrtc"]


def test_ranges_take_in_one_kind_only() -> None:
    tried = ("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100", "compute_80")
    assert spell("target", ("sm_80", "sm_90", "sm_90a", "sm_100"), tried) == "sm_80 and above, sm_90a"
    assert (
        spell("toolkit", ("12.4", "12.4+headers12.9"), ("12.3", "12.4", "12.4+headers12.9"))
        == "CUDA 12.4 and later, 12.4+headers12.9"
    )
