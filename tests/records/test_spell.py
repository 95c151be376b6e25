"""Status and stage in words."""

from __future__ import annotations

from typing import cast

import pytest
from record_builders import built, record, rejected

from harness.model import Outcome, Stage, Status
from harness.records import at_stage, failed_at, spell_other_result
from harness.records.merge import VIRTUAL
from harness.records.record import Other


@pytest.mark.parametrize(
    ("outcome", "whole", "failed"),
    [
        (rejected(), "rejected at compile", "rejected at compile"),
        (built(), "built at assemble", "built"),
        (Outcome(status=Status.UNAVAILABLE), "unavailable", "unavailable"),
        (Outcome(status=Status.TIMED_OUT, stage=Stage.LINK), "timed_out at link", "timed_out at link"),
    ],
)
def test_how_far_it_got(outcome: Outcome, whole: str, failed: str) -> None:
    made = record(outcome=outcome)
    assert at_stage(made["status"], made["stage"]) == whole
    assert failed_at(made) == failed


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"status": "built", "stage": "assemble"}, "built in run r1"),
        ({"status": "rejected", "stage": "compile", "diagnostic": "no type"}, "rejected at compile in run r1: no type"),
        ({"status": "unavailable", "reason": "no CUDA"}, "unavailable in run r1: no CUDA"),
        (
            {"status": "crashed", "stage": "link", "reason": "signal 11", "diagnostic": "it crashed"},
            "crashed at link in run r1: signal 11",
        ),
        ({"status": "built", "device": VIRTUAL}, "built without a device in run r1"),
        ({"status": "timed_out", "stage": "launch", "device": "H200"}, "timed_out at launch on H200 in run r1"),
    ],
)
def test_another_runs_outcome(other: dict[str, str], words: str) -> None:
    rest = {"run": "r1", "stage": None, "reason": "", "diagnostic": ""}
    assert spell_other_result(cast("Other", {**rest, **other})) == words
