"""Verdicts: every status with every expectation."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from harness.model import (
    Case,
    Cell,
    Diagnostic,
    Expectation,
    Outcome,
    Stage,
    Status,
    Target,
    Toolchain,
    ToolkitRef,
    Variant,
    Verdict,
)
from harness.model.cell import host_named
from harness.model.condition import Condition
from harness.model.judge import expectation_of, judge

ALWAYS = Condition.always()
# Rows: the expectation, with "known" for a known fault (xfail = true). Columns: the outcome.
TABLE = """
                   built  rejected  crashed  timed_out  unsupported  unavailable  harness_error
built              pass   fail      fail     fail       unsupported  unresolved   unresolved
built known        xfail  fail      fail     fail       unsupported  unresolved   unresolved
rejected           fail   pass      fail     fail       unsupported  unresolved   unresolved
rejected known     xpass  xfail     fail     fail       unsupported  unresolved   unresolved
crashed            fail   fail      pass     fail       unsupported  unresolved   unresolved
crashed known      xpass  fail      xfail    fail       unsupported  unresolved   unresolved
timed_out          fail   fail      fail     pass       unsupported  unresolved   unresolved
timed_out known    xpass  fail      fail     xfail      unsupported  unresolved   unresolved
"""
COLUMNS, *ROWS = (re.split(r"\s{2,}", line.strip()) for line in TABLE.strip("\n").splitlines())


def test_the_table_has_every_status() -> None:
    assert sorted(COLUMNS) == sorted(Status)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_table(row: list[str]) -> None:
    status, _, known = row[0].partition(" ")
    expected = Expectation(when=ALWAYS, status=Status(status), xfail=known == "known")
    assert [judge(expected, Outcome(status=Status(column))) for column in COLUMNS] == row[1:]


@pytest.mark.parametrize("status", [Status.CRASHED, Status.TIMED_OUT])
@pytest.mark.parametrize("xfail", [False, True])
def test_a_crash_or_a_time_out_never_satisfies_a_refusal(status: Status, xfail: bool) -> None:
    expected = Expectation(when=ALWAYS, status=Status.REJECTED, diagnostic="out of memory", xfail=xfail)
    said = Diagnostic(severity="fatal", message="out of memory")
    assert judge(expected, Outcome(status=status, diagnostics=(said,))) is Verdict.FAIL


@pytest.mark.parametrize(
    ("stage", "pattern", "verdict"),
    [
        (None, None, Verdict.PASS),
        (Stage.ASSEMBLE, None, Verdict.PASS),
        (Stage.COMPILE, None, Verdict.FAIL),
        (None, r"too much shared data \(0xc004 bytes", Verdict.PASS),
        (None, "exception handling", Verdict.FAIL),
        (Stage.ASSEMBLE, "second", Verdict.PASS),
        (Stage.COMPILE, "second", Verdict.FAIL),
    ],
)
def test_stage_and_diagnostic_count(stage: Stage | None, pattern: str | None, verdict: Verdict) -> None:
    said = (
        Diagnostic(severity="error", message="uses too much shared data (0xc004 bytes, 0xc000 max)"),
        Diagnostic(severity="warning", message="the second one"),
    )
    outcome = Outcome(status=Status.REJECTED, stage=Stage.ASSEMBLE, diagnostics=said)
    assert judge(Expectation(when=ALWAYS, status=Status.REJECTED, stage=stage, diagnostic=pattern), outcome) is verdict


def test_a_known_fault_that_fails_otherwise_is_a_failure() -> None:
    expected = Expectation(when=ALWAYS, status=Status.REJECTED, diagnostic="incomplete type", xfail=True)
    other = Outcome(status=Status.REJECTED, diagnostics=(Diagnostic(severity="error", message="no such file"),))
    assert judge(expected, other) is Verdict.FAIL


def cell(*expectations: Expectation, target: str = "sm_80", release: str = "12.4", headers: str = "12.4", labels: dict[str, Any] | None = None,
         backend: str = "nvrtc", library: str = "", name: str = "a/b") -> Cell:  # fmt: skip
    variant = Variant(labels=labels or {}, definitions={})
    case = Case(name=name, path=Path("case.toml"), title="", variants=(variant,), expectations=expectations)
    toolchain = Toolchain(backend=backend, library=library, toolkit=ToolkitRef(release=release, headers=headers))
    return Cell(case=case, variant=variant, toolchain=toolchain, target=Target.parse(target))


def test_the_first_expectation_that_applies_counts() -> None:
    below = Expectation(when=Condition.parse('cc < "8.0"'), status=Status.REJECTED, line=1)
    at = Expectation(when=Condition.parse('cc <= "8.0"'), status=Status.TIMED_OUT, line=2)
    assert expectation_of(cell(below, at, target="sm_75")) is below
    assert expectation_of(cell(below, at, target="sm_80")) is at
    assert expectation_of(cell(below, at, target="sm_90")).status is Status.BUILT


def test_conditions_are_asked_of_given_facts() -> None:
    below = Expectation(when=Condition.parse('cc < "8.0"'), status=Status.REJECTED)
    old, new = cell(below, target="sm_75"), cell(below, target="sm_90")
    assert expectation_of(new, old.facts()) is below
    assert expectation_of(old, new.facts()).status is Status.BUILT


def test_ids_differ_where_anything_that_is_asked_for_differs() -> None:
    cells = [
        cell(name=name, labels=labels, backend=backend, library=library, release=release, headers=headers, target=target)
        for name, labels, backend, library, release, headers, target in product(
            ("a/b", "a/c"), ({}, {"x": 1}, {"x": 2}, {"x": 1, "y": True}), ("cupy-nvrtc", "cupy-jitify"), ("12.3.0", "13.0.0"),
            ("12.4", "13.0"), ("12.4", "13.0"), ("sm_90", "sm_90a", "compute_90"),
        )
    ]  # fmt: skip
    assert len({each.id for each in cells}) == len(cells)


def test_host_compilers_of_one_name_are_the_same() -> None:
    told = host_named("gcc-13", "gcc 13.3.0, glibc 2.39")
    assert told == host_named("gcc-13") == replace(told, program="/opt/gcc/bin/g++")
    assert told != host_named("gcc-12", "gcc 13.3.0, glibc 2.39")


def test_an_id_is_readable() -> None:
    made = cell(
        name="wmma/fragments",
        labels={"fragment": "tf32", "given": True},
        backend="cupy-jitify",
        library="13.6.0",
        headers="13.0",
    )
    assert made.id == "wmma/fragments[fragment=tf32,given=true] cupy-jitify@13.6.0 cuda12.4+headers13.0 sm_80"


def test_an_outcome_survives_json() -> None:
    import json

    said = Diagnostic(severity="error", message="no", file="kernel.cu", line=3, fingerprint="f")
    outcome = Outcome(
        status=Status.CRASHED,
        stage=Stage.LINK,
        stages=(Stage.COMPILE, Stage.LINK),
        signal=11,
        diagnostics=(said,),
        notes=("n",),
    )
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome
