"""Samples of a published matrix, and contradictions."""

from __future__ import annotations

from typing import Any

from check_matrix import contradictions, sample_of
from record_builders import built, cell, record, rejected

from harness.model import Outcome, Stage, Status
from harness.records import Record


def made(**of: Any) -> Record:
    return record(cell(**{"backend": "nvrtc", "library": "", **of}))


def test_a_sample_is_of_some_toolchains_and_the_same_for_the_same_seed() -> None:
    records = [
        made(case=f"topic/case-{case}", toolkit=toolkit, target=target)
        for case in range(8)
        for toolkit in ("12.4", "12.9", "13.0")
        for target in ("sm_75", "sm_80", "sm_90")
    ]
    slow: Record = {**made(case="topic/slow"), "seconds": 9.0}
    parts = sample_of([*records, slow], 12, parts=2, seed="a")
    assert len(parts) == 2
    assert sum(len(part.cells) for part in parts) >= 12
    assert not any("topic/slow" in part.cases for part in parts)
    assert parts == sample_of([slow, *records], 12, parts=2, seed="a")
    assert parts != sample_of(records, 12, parts=2, seed="b")
    for part in parts:
        words = part.words
        assert words[words.index("-t") + 1] == part.toolkit
        assert {item["target"] for item in part.cells} <= set(words[words.index("-a") + 1].split(","))
    (only,) = sample_of(records, 5, parts=3, seed="a", toolkits=["12.9"])
    assert only.toolkit == "12.9"


def test_what_a_toolchain_lacks_another_has() -> None:
    few = [made(case=f"topic/case-{case}", toolkit="12.4") for case in range(2)]
    many = [made(case=f"topic/case-{case}", toolkit="12.9") for case in range(40)]
    assert sum(len(part.cells) for part in sample_of([*few, *many], 30, parts=2, seed="a")) == 30


def test_host_compilers_are_the_machines_own() -> None:
    asked: Record = {**made(backend="nvcc", case="host/named"), "host_compiler": "gcc-13"}
    (part,) = sample_of([asked, made(backend="nvcc", case="host/own")], 5, parts=1, seed="a")
    assert part.cases == ("host/own",)
    of = cell(backend="nvcc", library="")
    published, fresh = (record(of, outcome) for outcome in (built(), rejected()))
    published["toolchain"]["requested"]["host_compiler"] = "gcc 12.2.0, glibc 2.36"
    fresh["toolchain"]["requested"]["host_compiler"] = "gcc 12.3.0, glibc 2.36"
    assert len(contradictions([published], {of.id: fresh})) == 1
    fresh["toolchain"]["requested"]["host_compiler"] = "gcc 13.3.0, glibc 2.39"
    assert contradictions([published], {of.id: fresh}) == []


def test_a_library_is_asked_for_by_its_version() -> None:
    (part,) = sample_of([made(backend="cupy-jitify", library="13.6.0")], 1, parts=1, seed="a")
    assert part.words[4:6] == ["--with", "cupy=13.6.0"]


def test_another_outcome_contradicts_and_a_slow_machine_does_not() -> None:
    of = [cell(target=target) for target in ("sm_75", "sm_80", "sm_90", "sm_100")]
    slow = Outcome(status=Status.TIMED_OUT, stage=Stage.COMPILE)
    fresh = {item.id: record(item, outcome) for item, outcome in zip(of, (rejected(), None, slow), strict=False)}
    said = contradictions([record(item) for item in of], fresh)
    assert [sentence.partition(": ")[0] for sentence in said] == [of[0].id, of[3].id]
    assert "published as built" in said[0]
    assert "now rejected" in said[0]
    assert "not compiled again" in said[1]
