"""Virtual and real devices: the comparison, and failures that only a device shows."""

from __future__ import annotations

from typing import Any

import pytest
from record_builders import built, cell, record, rejected

from harness.analysis.frame import cells_frame
from harness.model import Outcome, Stage, Status
from harness.records import Merged, Record, merge
from harness.records.merge import spell_other_result, tell_devices, virtual_against_real

H200 = {"virtual": False, "name": "NVIDIA H200", "compute_capability": "9.0"}


def real(outcome: Outcome, **where: Any) -> Record:
    """Return a record of the device."""
    return {**record(cell(target="sm_90", **where), outcome), "device": H200}


def virtual(outcome: Outcome, **where: Any) -> Record:
    """Return a record without a device."""
    found = record(cell(target="sm_90", **where), outcome)
    return {**found, "device": {"virtual": True, "compute_capability": "9.0"}}


def on_device(stage: Stage, status: Status = Status.REJECTED) -> Outcome:
    """Return an outcome that ended on the device."""
    return rejected("wrong result", stage=stage, status=status)


@pytest.mark.parametrize(
    ("without", "on", "words"),
    [
        (built("sm_90"), built("sm_90", stage=Stage.VERIFY), "built"),
        (rejected(), rejected("other words"), "rejected at compile"),
    ],
)
def test_the_same_outcome_is_no_difference(without: Outcome, on: Outcome, words: str) -> None:
    honesty = virtual_against_real([virtual(without), real(on)])
    assert [pair.sentence for pair in honesty.pairs] == [f"{words} with the virtual device and on NVIDIA H200"]
    assert not honesty.differences
    assert not honesty.shown_by_device


@pytest.mark.parametrize("stage", [Stage.LOAD, Stage.LAUNCH, Stage.VERIFY])
@pytest.mark.parametrize("status", [Status.REJECTED, Status.TIMED_OUT, Status.CRASHED])
def test_what_fails_on_the_device_was_built(stage: Stage, status: Status) -> None:
    honesty = virtual_against_real([virtual(built("sm_90")), real(on_device(stage, status))])
    assert not honesty.differences
    (pair,) = honesty.shown_by_device
    assert pair.sentence == f"built, and {status.value.replace('_', ' ')} at {stage} on NVIDIA H200"


@pytest.mark.parametrize(
    ("without", "on", "sentence"),
    [
        (built("sm_90"), rejected(), "built with the virtual device, rejected at compile on NVIDIA H200"),
        (rejected(), built("sm_90"), "rejected at compile with the virtual device, built on NVIDIA H200"),
        (
            rejected(stage=Stage.ASSEMBLE),
            rejected(stage=Stage.LINK),
            "rejected at assemble with the virtual device, rejected at link on NVIDIA H200",
        ),
        (
            rejected(),
            on_device(Stage.VERIFY),
            "rejected at compile with the virtual device, built on NVIDIA H200",
        ),
        (
            built("sm_90"),
            Outcome(status=Status.UNSUPPORTED, reason="no such target"),
            "built with the virtual device, unsupported on NVIDIA H200",
        ),
    ],
)
def test_a_difference_is_told(without: Outcome, on: Outcome, sentence: str) -> None:
    honesty = virtual_against_real([virtual(without), real(on)])
    (pair,) = honesty.differences
    assert pair.sentence == sentence
    assert not honesty.shown_by_device


@pytest.mark.parametrize("status", [Status.UNAVAILABLE, Status.HARNESS_ERROR])
def test_no_answer_is_no_difference(status: Status) -> None:
    silent = Outcome(status=status, reason="not installed")
    assert not virtual_against_real([virtual(built("sm_90")), real(silent)]).pairs
    assert not virtual_against_real([virtual(silent), real(built("sm_90"))]).pairs


def test_only_the_same_cell_is_compared() -> None:
    others = [
        virtual(rejected(), library="13.1.0"),
        virtual(rejected(), toolkit="12.9"),
        virtual(rejected(), backend="nvrtc"),
    ]
    assert not virtual_against_real([*others, real(built("sm_90"))]).pairs


def test_a_toolkit_of_the_machine_is_the_same_release() -> None:
    mine: Record = {**real(rejected(), toolkit="13.0"), "toolkit": "13.0@local"}
    (pair,) = virtual_against_real([virtual(built("sm_90"), toolkit="13.0"), mine]).differences
    assert pair.real is mine


def test_two_devices_are_two_pairs() -> None:
    other: Record = {**real(built("sm_90")), "device": {**H200, "name": "NVIDIA H100"}}
    pairs = virtual_against_real([virtual(built("sm_90")), real(rejected()), other]).pairs
    assert [(pair.device, pair.differs) for pair in pairs] == [("NVIDIA H100", False), ("NVIDIA H200", True)]


def both(*records: Record) -> Merged:
    """Merge records, each as a cell of its device, with the device in its id."""
    named: list[Record] = [
        {**item, "cell": item["cell"] + (f" on {item['device']['name']}" if "name" in item["device"] else "")}
        for item in records
    ]
    return tell_devices(merge(named, []))


@pytest.mark.parametrize(
    ("without", "on", "counts", "told"),
    [
        (built("sm_90"), rejected(), "rejected at compile", "built without a device in run run-1"),
        (rejected(), built("sm_90"), "built", "rejected at compile without a device in run run-1: incomplete type is not allowed"),
        (built("sm_90"), on_device(Stage.VERIFY), "rejected at verify", "built without a device in run run-1"),
        (
            built("sm_90"),
            Outcome(status=Status.UNAVAILABLE, reason="no driver"),
            "built",
            "unavailable on NVIDIA H200 in run run-1: no driver",
        ),
        (built("sm_90"), built("sm_90", stage=Stage.VERIFY), "built", ""),
        (rejected(), rejected(), "rejected at compile", ""),
    ],
)  # fmt: skip
def test_one_row_tells_both_answers(without: Outcome, on: Outcome, counts: str, told: str) -> None:
    table = cells_frame(both(virtual(without), real(on)))
    assert list(zip(table["outcome"], table["others"], strict=True)) == [(counts, told)]


def test_two_devices_and_another_run_are_told_beside_each_other() -> None:
    other: Record = {**real(on_device(Stage.LOAD)), "device": {**H200, "name": "NVIDIA H100"}}
    earlier: Record = {**virtual(rejected("no")), "run": "run-0"}
    merged = both(earlier, virtual(built("sm_90")), real(built("sm_90", stage=Stage.VERIFY)), other)
    found = {
        record["device"].get("name", ""): list(map(spell_other_result, record.get("others", ())))
        for record in merged.records
    }
    load = "rejected at load on NVIDIA H100 in run run-1: wrong result"
    assert found == {
        "": ["rejected at compile in run run-0: no", load],
        "NVIDIA H200": [load],
        "NVIDIA H100": ["built without a device in run run-1", "built on NVIDIA H200 in run run-1"],
    }
    # Merging again gives the same records, without new conflicts.
    again = merge(merged.records, [])
    assert tell_devices(again).records == merged.records
    assert [conflict.cell for conflict in again.conflicts] == [conflict.cell for conflict in merged.conflicts]
