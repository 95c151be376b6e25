"""Verdicts on outcomes, from a cell's facts and its expectation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.model.case import Expectation, tensor_cores_of
from harness.model.cell import Cell
from harness.model.condition import Condition
from harness.model.outcome import Diagnostic, Outcome, Stage, Status, Verdict
from harness.regex import pattern

_BUILT = Expectation(when=Condition.always(), status=Status.BUILT)


def expectation_of(cell: Cell, facts: Mapping[str, Any] | None = None) -> Expectation:
    """Return the first expectation or fault of the case that applies to the cell, or else an expected build.

    `facts` are the cell's, if already known.
    """
    expectations = cell.case.all_expectations
    facts = facts or (cell.facts() if expectations else {})
    found = next((item for item in expectations if item.when(facts)), _BUILT)
    if cell.case.kernels and found.status is Status.BUILT and found.kernels is None:
        return replace(found, kernels=cell.case.kernels)
    return found


def judge(expected: Expectation, outcome: Outcome) -> Verdict:
    """Derive the verdict of an outcome.

    A crash or a time-out matches only an expectation of exactly that status. An expected failure is ``xfail`` if the
    expectation is marked so, and ``pass`` otherwise. A build is ``xpass`` if the expectation is marked ``xfail``. Any
    other failure is a failure.
    """
    match outcome.status:
        case Status.UNSUPPORTED:
            return Verdict.UNSUPPORTED
        case Status.UNAVAILABLE | Status.HARNESS_ERROR:
            return Verdict.UNRESOLVED
    if matches(expected, outcome.status, outcome.stage, outcome.diagnostics) and not shortfall(expected, outcome):
        return Verdict.XFAIL if expected.xfail else Verdict.PASS
    if expected.xfail and outcome.status is Status.BUILT:
        return Verdict.XPASS
    return Verdict.FAIL


def shortfall(expected: Expectation, outcome: Outcome) -> str:
    """Return a sentence on a built program's missing kernels or wrong use of tensor cores; empty otherwise."""
    if outcome.status is not Status.BUILT or outcome.artifact is None:
        return ""
    kernels = outcome.artifact.kernels
    missing = expected.kernels.missing(kernel.name for kernel in kernels) if expected.kernels else ""
    if missing or expected.tensor_cores is None:
        return missing
    found = tensor_cores_of([kernel.tensor_cores for kernel in kernels])
    if found is None or expected.tensor_cores is bool(found):
        return ""
    return f"its kernels use tensor cores ({found})" if found else "no kernel uses tensor cores"


def matches(expected: Expectation, status: Status, stage: Stage | None, diagnostics: Iterable[Diagnostic]) -> bool:
    """Return whether status, stage and diagnostic match the expectation."""
    if status is not expected.status:
        return False
    if expected.stage is not None and stage is not expected.stage:
        return False
    if expected.diagnostic is None:
        return True
    wanted = pattern(expected.diagnostic)
    return any(wanted.found_in(item.message) for item in diagnostics)
