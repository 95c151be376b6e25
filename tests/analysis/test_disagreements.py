"""Disagreements: different outcomes of a program, toolkit and target."""

from __future__ import annotations

from typing import Any

from record_builders import built, cell, record, rejected

from harness.analysis import Disagreement, disagreements, make_frame
from harness.model import Outcome, Stage, Status
from harness.records import Record


def made(**fields: Any) -> Record:
    """Return a record of a cell, built unless an outcome is given."""
    outcome = fields.pop("outcome", None)
    return record(cell(**fields), outcome or built(fields.get("target", "sm_80")))


def found(*records: Record) -> list[Disagreement]:
    return disagreements(make_frame(records))


def test_the_same_everywhere_is_none() -> None:
    assert found(made(), made(backend="cupy-jitify"), made(toolkit="13.0", outcome=rejected())) == []


def test_backends_of_one_toolkit() -> None:
    targets = ("sm_80", "sm_86", "sm_90")
    records = [made(target=target) for target in targets]
    records += [made(backend="cupy-jitify", target=target, outcome=rejected()) for target in targets]
    (one,) = found(*records)
    assert (one.kind, one.toolkits, one.targets) == ("backend", ("12.4",), targets)
    assert [(side.outcome, side.toolchains) for side in one.sides] == [
        ("built", ("cupy-nvrtc 13.6.0",)),
        ("rejected at compile", ("cupy-jitify 13.6.0",)),
    ]
    assert one.sentence == (
        'CUDA 12.4, sm_80–sm_90: cupy-nvrtc 13.6.0: builds; cupy-jitify 13.6.0: rejected at compile ("incomplete type is not allowed")'
    )
    assert sorted(cell for side in one.sides for cell in side.cells) == sorted(item["cell"] for item in records)


def test_versions_of_one_library() -> None:
    (one,) = found(
        made(library="13.0.0", outcome=rejected()), made(library="13.1.0"), made(library="9.9.0", outcome=rejected())
    )
    assert one.kind == "library"
    assert one.sides[1].toolchains == ("cupy-nvrtc 9.9.0", "cupy-nvrtc 13.0.0")
    assert "cupy-nvrtc 9.9.0, 13.0.0: rejected" in one.sentence


def test_headers_of_another_release() -> None:
    (one,) = found(made(toolkit="13.5", outcome=rejected()), made(toolkit="13.5", headers="13.0"))
    assert one.kind == "headers"
    assert one.sides[0].toolchains == ("cupy-nvrtc 13.6.0 with headers of CUDA 13.0",)
    assert one.sides[1].toolchains == ("cupy-nvrtc 13.6.0 with headers of CUDA 13.5",)


def test_what_no_compiler_answered_disagrees_with_nothing() -> None:
    unsupported = Outcome(status=Status.UNSUPPORTED, reason="no such architecture")
    assert found(made(), made(backend="cupy-jitify", outcome=unsupported)) == []


def test_the_most_telling_first() -> None:
    crash = Outcome(status=Status.CRASHED, stage=Stage.COMPILE, signal=11)
    found_all = found(
        # Another program: Numba's is Python.
        made(case="e/language", backend="nvrtc", library="", outcome=rejected()),
        made(case="e/language", backend="numba", library="0.60.0"),
        # Both fail, at different stages.
        made(case="d/stage", outcome=rejected()),
        made(case="d/stage", backend="cupy-jitify", outcome=rejected(stage=Stage.LINK)),
        made(case="c/backend"),
        made(case="c/backend", backend="cupy-jitify", outcome=rejected()),
        made(case="b/library", library="13.0.0"),
        made(case="b/library", library="13.1.0", outcome=rejected()),
        made(case="a/crash"),
        made(case="a/crash", backend="cupy-jitify", outcome=crash),
    )
    assert [item.case[0] for item in found_all] == ["a", "b", "c", "e", "d"]
    assert [item.kind for item in found_all] == ["backend", "library", "backend", "language", "backend"]
