"""The statement about a parameter holds for each of its values, and appears only if nothing else differs."""

from __future__ import annotations

from typing import Any

import pytest
from record_builders import built, cell, record, rejected

from harness.analysis import make_frame, statements
from harness.model import Outcome, Stage, Status
from harness.records import Record
from harness.report.sections import parameter_effects

CASE = "shared-memory/static"


def tried(variant: dict[str, Any], works: bool, target: str = "sm_80", **place: Any) -> Record:
    of = cell(CASE, variant, **{"backend": "nvrtc", "library": "", "target": target, **place})
    message = f"uses too much shared data ({variant})"
    return record(of, built(target) if works else rejected(message, stage=Stage.ASSEMBLE))


def said(records: list[Record]) -> list[tuple[str, str]]:
    return [(item.rest, item.sentence) for item in parameter_effects(statements(make_frame(records)))]


WHY = "rejected at assemble"


def test_a_number_from_which_on_something_else_happens() -> None:
    records = [
        tried({"bytes": size}, size <= 49152, target)
        for size in (1024, 49152, 49156, 100_000)
        for target in ("sm_80", "sm_90")
    ]
    assert said(records) == [("", f"builds up to bytes=49152; from bytes=49156 {WHY}")]


def test_numbers_are_in_the_order_of_numbers() -> None:
    records = [tried({"minimum": size}, size >= 800) for size in (90, 1000, 800)]
    assert said(records) == [("", f"up to minimum=90 {WHY}; builds from minimum=800")]


def test_what_works_on_some_architectures_only_is_said_so() -> None:
    records = [tried({"n": n}, n < 3 or target == "sm_90", target) for n in (1, 2, 3) for target in ("sm_80", "sm_90")]
    assert said(records) == [("", f"builds up to n=2; from n=3 needs sm_90, below it {WHY}")]


def test_what_has_parts_itself_is_a_sentence_of_its_own() -> None:
    records = [
        tried({"n": n}, n == 1 or toolkit == "13.0", toolkit=toolkit) for n in (1, 2, 3) for toolkit in ("12.4", "13.0")
    ]
    assert said(records) == [("", f"Builds up to n=1. From n=2: CUDA 12.4: {WHY}; from CUDA 13.0: builds")]


def test_the_name_of_a_parameter_stays_as_it_is() -> None:
    records = [
        tried({"n": n}, n == 1 or (n == 2 and toolkit == "13.0"), toolkit=toolkit)
        for n in (1, 2, 3)
        for toolkit in ("12.4", "13.0")
    ]
    text = f"Builds up to n=1. n=2: CUDA 12.4: {WHY}; from CUDA 13.0: builds. From n=3 {WHY}"
    assert said(records) == [("", text)]


def test_the_other_parameters_stay_apart() -> None:
    records = [
        tried({"bytes": size, "form": form}, works=form == "dynamic" or size == 1)
        for size in (1, 2)
        for form in ("static", "dynamic")
    ]
    assert said(records) == [("form=static", f"builds up to bytes=1; from bytes=2 {WHY}")]


def test_releases_of_a_header_library_with_those_that_nobody_tried() -> None:
    records = [tried({"cutlass": release}, release >= "4") for release in ("3.5.1", "4.2.0")]
    ((_, sentence),) = said(records)
    assert sentence.startswith(f"up to cutlass 3.5.1 {WHY}; builds from cutlass 4.2.0 (cutlass 3.")
    assert sentence.endswith(" untried)")
    assert "4.2.0," not in sentence.partition("(cutlass")[2]


@pytest.mark.parametrize(
    "records",
    [
        [tried({"bytes": 1}, works=True), tried({"bytes": 2}, works=True)],
        [tried({"form": "a"}, works=True), tried({"form": "b"}, works=False)],
        # Never tried together: the cause is unknown.
        [tried({"bytes": 1}, works=True, target="sm_80"), tried({"bytes": 2}, works=False, target="sm_90")],
        # An outcome that changes back and forth.
        [tried({"bytes": n}, works=n % 2 == 0) for n in range(6)],
        [
            tried({"bytes": 1}, works=True),
            record(cell(CASE, {"bytes": 2}, backend="nvrtc"), Outcome(status=Status.UNAVAILABLE, reason="no")),
        ],
    ],
)
def test_nothing_is_said_where_nothing_is_known(records: list[Record]) -> None:
    assert said(records) == []
