"""Content of a record."""

from __future__ import annotations

import json
import marshal
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from record_builders import artifact_of, built, cell, record, rejected

from harness import __version__
from harness.cases.discovery import load_cases
from harness.model import Expectation, Outcome, Stage, Status, Verdict
from harness.model.condition import Condition
from harness.model.judge import expectation_of
from harness.records import make_record
from harness.records.schema import check_record

KEYS = [
    *("schema", "cell", "case", "title", "topic", "features", "links", "variant", "backend", "library", "target"),
    *(
        "toolkit",
        "host_compiler",
        "environment",
        "toolchain",
        "status",
        "stage",
        "stages",
        "verdict",
        "expected",
        "reason",
    ),
    *(
        "diagnostics",
        "artifact",
        "device",
        "signal",
        "seconds",
        "peak_bytes",
        "cached",
        "shared_steps",
        "command",
        "log",
        "notes",
        "fingerprint",
    ),
    *("run", "cumatrix"),
]


def test_has_exactly_the_documented_keys() -> None:
    assert list(record()) == KEYS


def test_records_are_plain_and_those_of_cached_outcomes_the_same() -> None:
    """The written records equal the records that a reader returns, including types: for every case of the library."""
    for case in load_cases(Path(__file__).parents[2] / "cases"):
        one = replace(cell(), case=case, variant=case.variants[0])
        for outcome in (built(), rejected()):
            again = Outcome.from_json(json.loads(json.dumps(outcome.to_json())))
            for expected in (expectation_of(one), *case.expectations):
                told = {"run": "r", "fingerprint": "f"}
                fresh = make_record(one, outcome, expected, Verdict.PASS, cached=False, **told)
                kept = make_record(one, again, expected, Verdict.PASS, cached=True, **told)
                # marshal accepts no subclass of a type, and distinguishes types.
                same: list[Any] = [{**kept, "cached": False}, fresh]
                assert marshal.dumps(same[0], 2) == marshal.dumps(same[1], 2)
                assert marshal.dumps(json.loads(json.dumps(fresh)), 2) == marshal.dumps(same[1], 2)


def test_tables_of_other_kinds_become_plain() -> None:
    observed = MappingProxyType({"libraries": MappingProxyType({"cutlass": ("3.5.1", ("a",))})})
    made = record(outcome=built(observed=observed))
    assert marshal.dumps(made["toolchain"]["observed"], 2) == marshal.dumps(
        {"libraries": {"cutlass": ["3.5.1", ["a"]]}}, 2
    )


def test_tells_what_was_asked_for_and_what_was_found() -> None:
    made = record(cell(variant={"fragment": "tf32"}, toolkit="12.4", headers="12.6"))
    assert made["cell"] == "wmma/fragments[fragment=tf32] cupy-nvrtc@13.6.0 cuda12.4+headers12.6 sm_80"
    assert (made["topic"], made["case"], made["variant"]) == ("wmma", "wmma/fragments", "fragment=tf32")
    assert made["toolkit"] == "12.4+headers12.6"
    assert made["toolchain"] == {
        "requested": {
            "packages": {"cupy": "13.6.0"},
            "library": "13.6.0",
            "toolkit": "12.4",
            "headers": "12.6",
        },
        "observed": {"nvrtc": "12.4.127", "python": "3.11.9"},
    }
    assert (made["status"], made["stage"], made["stages"]) == (
        "built",
        "assemble",
        ["preprocess", "compile", "assemble"],
    )
    assert artifact_of(made)["kernels"][0]["num_regs"] == 40
    assert made["cumatrix"] == __version__


def test_keeps_the_expectation_and_the_verdict() -> None:
    expected = Expectation(
        when=Condition.always(),
        status=Status.REJECTED,
        stage=Stage.COMPILE,
        diagnostic="incomplete",
        xfail=True,
        reason="CuPy ships no crt",
        link="https://github.com/cupy/cupy/issues/1",
    )
    made = record(outcome=rejected(), expected=expected)
    assert made["verdict"] == "xfail"
    assert made["expected"] == {
        "status": "rejected",
        "stage": "compile",
        "diagnostic": "incomplete",
        "xfail": True,
        "reason": "CuPy ships no crt",
        "link": "https://github.com/cupy/cupy/issues/1",
    }
    assert made["diagnostics"][0] == {
        "severity": "error",
        "message": "incomplete type is not allowed",
        "code": "70",
        "file": "kernel.cu",
        "line": 12,
        "fingerprint": "incomple",
    }


def test_same_outcome_differs_only_in_run_seconds_and_cached() -> None:
    first = record(outcome=built(seconds=0.1), run="a", cached=False)
    second = record(outcome=built(seconds=0.9), run="b", cached=True)
    assert {key for key, value in first.items() if value != dict(second)[key]} == {"run", "seconds", "cached"}


def test_is_plain_json() -> None:
    made = record(outcome=rejected())
    assert json.loads(json.dumps(made)) == made
    assert type(made["status"]) is str
    check_record(made)


@pytest.mark.parametrize("status", Status)
def test_every_status_passes_the_check(status: Status) -> None:
    check_record(record(outcome=Outcome(status=status, reason="so")))


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        make_record(
            cell(),
            built(seconds=float("nan")),
            Expectation(when=Condition.always(), status=Status.BUILT),
            Verdict.PASS,
            run="r",
            cached=False,
            fingerprint="",
        )
