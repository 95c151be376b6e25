"""Equality of outcomes, and the key of a cell without its release."""

from __future__ import annotations

import record_builders as make
from bisection_builders import FAULT, GONE, NO, OTHER_WORDS, REFUSED, UNKNOWN, YES

from harness.bisection.search import Lane, LaneOutcome, outcome_of
from harness.model import Expectation, Outcome, Stage, Status


def seen(outcome: Outcome, expected: Expectation = make.BUILT) -> LaneOutcome:
    found = outcome_of(make.record(outcome=outcome, expected=expected))
    assert found is not None
    return found


def test_status_stage_and_message_make_an_outcome() -> None:
    assert seen(NO).key == seen(NO, FAULT).key
    assert len({seen(outcome).key for outcome in (YES, NO, OTHER_WORDS, UNKNOWN)}) == 4
    assert seen(make.built(stage=Stage.LINK)).key == seen(YES).key


def test_an_unknown_target_is_the_same_with_every_release() -> None:
    other = Outcome(status=Status.UNSUPPORTED, reason="CUDA 12.6 knows no sm_120 (ptxas --help)")
    assert seen(other).key == seen(UNKNOWN).key
    assert seen(Outcome(status=Status.UNSUPPORTED, reason="this CuPy loads CUDA 12")).key != seen(UNKNOWN).key


def test_what_could_not_be_tried_is_no_outcome() -> None:
    assert outcome_of(make.record(outcome=GONE)) is None
    assert outcome_of(make.record(outcome=Outcome(status=Status.HARNESS_ERROR, reason="a bug"))) is None


def test_good_goes_by_the_verdict() -> None:
    assert seen(YES).good is True
    assert seen(NO).good is False
    assert seen(NO, FAULT).good is False
    assert seen(NO, REFUSED).good is None
    assert seen(YES, REFUSED).good is False
    assert seen(UNKNOWN).good is None


def test_crashes_differ_by_signal() -> None:
    one, other = (
        seen(Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=number, reason="it died")) for number in (6, 11)
    )
    assert one.key != other.key
    assert other.text == "crashed at compile by signal 11: it died"


def test_a_lane_leaves_out_where_releases_stand() -> None:
    record = make.record(make.cell(variant={"cutlass": "3.5.1", "tile": 16}))
    assert Lane.of(record, "library").library == ""
    assert Lane.of(record, "toolkit").toolkit == ""
    assert Lane.of(record, "cutlass").variant == "tile=16"
    assert Lane.of(record, "").variant == "cutlass=3.5.1,tile=16"
