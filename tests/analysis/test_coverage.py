"""Untried features appear in the table."""

from __future__ import annotations

from record_builders import cell, plan, record

from harness.analysis import cells_frame, coverage
from harness.backends import BACKENDS
from harness.model import KNOWN_TARGETS, Outcome, Status
from harness.records import merge
from harness.toolkits import RELEASES


def test_coverage() -> None:
    cells = [
        cell(target="sm_80"),
        cell(target="sm_90"),
        cell(target="sm_50", toolkit="13.0"),
        cell(backend="nvrtc", library="", toolkit="13.5"),
    ]
    records = [
        record(cells[0]),
        record(cells[2], Outcome(status=Status.UNSUPPORTED, reason="no")),
        record(cells[3]),
    ]
    found = coverage(cells_frame(merge(records, [plan(*cells)])), features=["wmma", "fp8"])
    values = {axis: {item.value: item for item in items} for axis, items in found.values.items()}
    assert list(values["target"]) == [str(target) for target in KNOWN_TARGETS]
    assert list(values["toolkit"]) == list(RELEASES)
    assert list(values["backend"])[: len(BACKENDS)] == list(BACKENDS)
    assert list(values["library"]) == ["cupy-nvrtc 13.6.0"]
    assert values["target"]["sm_80"].exercised
    assert (values["target"]["sm_80"].planned, values["target"]["sm_80"].built, values["target"]["sm_80"].cases) == (
        2,
        2,
        1,
    )
    assert values["target"]["sm_90"].why == "never arrived"
    assert values["target"]["sm_50"].why == "unsupported wherever tried"
    assert values["target"]["sm_121"].why == "never planned"
    assert values["feature"]["fp8"].why == "never planned"
    assert values["feature"]["wmma"].exercised
    assert "sm_80" not in [item.value for item in found.holes["target"]]
    assert found.missing == (cells[1].id,)
    assert found.pairs == (("nvrtc", "12.4"), ("cupy-nvrtc", "13.5"))


def test_of_nothing() -> None:
    found = coverage(cells_frame(merge([], [])))
    assert not any(item.exercised for items in found.values.values() for item in items)
    assert found.missing == ()
