"""Status and stage in words."""

from __future__ import annotations

import pytest
from record_builders import built, record, rejected

from harness.model import Outcome, Stage, Status
from harness.records import at_stage, failed_at


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
