"""Judging records again by the expectations that the cases have now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from harness.cases.discovery import load_cases
from harness.diagnostics import one_line
from harness.model import (
    Artifact,
    Case,
    Cell,
    Diagnostic,
    Expectation,
    KernelResources,
    Outcome,
    Stage,
    Status,
    Target,
    Toolchain,
    ToolkitRef,
    Variant,
)
from harness.model.host_compiler import named
from harness.model.judge import expectation_of, judge, missing_kernels
from harness.records import Merged, Record, RecordError, Results, expected_json, merge
from harness.records.merge import case_of, is_of

Rejudge = Callable[[Record], Record]
"""Derive a record's verdict again."""


def merged_anew(results: Results, rejudge: Rejudge | None) -> Merged:
    """One set of records out of what was read; with `rejudge`, those that count have today's verdicts."""
    merged = merge(results.records, results.plans, results.inputs)
    return replace(merged, records=tuple(map(rejudge, merged.records))) if rejudge else merged


def rejudger(roots: Path | Sequence[Path], programs: Sequence[Case] = ()) -> Rejudge:
    """A function that gives a record the verdict of today's case; one whose case or variant is gone keeps its own.

    Parameters
    ----------
    roots : Path or sequence of Path
        Folders of the cases; where there is none, their records keep their verdicts.
    programs : sequence of Case
        Programs that the project's configuration names.

    Raises
    ------
    CaseError
        When a case cannot be read; the function raises `RecordError` for a record that lacks what was requested.
    """
    folders = [root for root in ([roots] if isinstance(roots, Path) else roots) if root.is_dir()]
    cases = {case.name: case for case in (*(load_cases(folders) if folders else ()), *programs)}

    variants = {name: {variant.name: variant for variant in case.variants} for name, case in cases.items()}

    def rejudge(record: Record) -> Record:
        case = cases.get(case_of(record))
        if case is None or not is_of(record, case):
            return record
        variant = variants[case.name].get(record["variant"])
        if variant is None:
            return record
        return _judged(record, case, expectation_of(cell_of(record, case, variant)))

    return rejudge


def cell_of(record: Record, case: Case, variant: Variant) -> Cell:
    """The cell of a record, as conditions of today's case see it.

    Raises
    ------
    RecordError
        When a record lacks what was requested.
    """
    try:
        cell = Cell(case=case, variant=variant, toolchain=_toolchain(record), target=Target.parse(record["target"]))
        cell.facts()
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"{one_line(record['cell'])}: toolchain or device does not tell what was asked for, and the cell cannot be judged again: "
            f"{one_line(repr(error), 100)}; run the cell again"
        ) from None
    return cell


def outcome_of(record: Record) -> Outcome:
    """The part of a record's outcome that is judged."""
    return Outcome(
        status=Status(record["status"]),
        stage=Stage(record["stage"]) if record["stage"] else None,
        diagnostics=tuple(
            Diagnostic(severity=item["severity"], message=item["message"], fingerprint=item.get("fingerprint", ""))
            for item in record["diagnostics"]
        ),
        artifact=_artifact(record),
    )


def _artifact(record: Record) -> Artifact | None:
    """The artifact, with nothing but the names of its kernels."""
    made = record["artifact"]
    return made and Artifact(
        format=made["format"], target=made["target"], bytes=made["bytes"], sha256=made["sha256"],
        kernels=tuple(KernelResources(name=kernel["name"]) for kernel in made["kernels"]),
    )  # fmt: skip


def _toolchain(record: Record) -> Toolchain:
    asked = record["toolchain"]["requested"]
    device = record["device"]["name"] if record["device"].get("virtual") is False else ""
    host = record.get("host_compiler", ""), asked.get("host_compiler", "")
    packages = tuple(sorted(asked["packages"].items()))
    return _toolchain_of(
        record["backend"], asked["library"], asked["toolkit"], asked["headers"], packages, device, host
    )


@lru_cache(maxsize=1024)  # records have few different ones, and what conditions see of each is found out once
def _toolchain_of(
    backend: str, library: str, toolkit: str, headers: str, packages: tuple[tuple[str, str], ...], device: str,
    host: tuple[str, str],
) -> Toolchain:  # fmt: skip
    return Toolchain(
        backend=backend, library=library, toolkit=ToolkitRef(release=toolkit, headers=headers),
        packages=dict(packages), device=device, host=named(*host),
    )  # fmt: skip


def _judged(record: Record, case: Case, expected: Expectation) -> Record:
    outcome = outcome_of(record)
    return {
        **record,
        "expected": expected_json(expected),
        "verdict": str(judge(expected, outcome)),
        "reason": missing_kernels(expected, outcome) if outcome.status is Status.BUILT else record["reason"],
        "title": case.title,
    }
