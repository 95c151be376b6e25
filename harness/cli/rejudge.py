"""Judging records again by the expectations that the cases have now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.cases import find_cases, load_case
from harness.model import Case, Cell, Outcome, Status, Target, Toolchain, ToolkitRef
from harness.model.enums import Stage
from harness.model.judge import expectation_of, judge
from harness.model.outcome import Diagnostic
from harness.records import Record, expected_json


def rejudger(root: Path) -> Callable[[Record], Record]:
    """A function that gives a record the verdict of today's case; one whose case or variant is gone keeps its own."""
    cases: dict[str, Case] = {}
    if root.is_dir():
        cases = {case.name: case for case in (load_case(path, root) for path in find_cases(root))}

    def rejudge(record: Record) -> Record:
        case = cases.get(record["case"])
        variant = next((v for v in case.variants if v.name == record["variant"]), None) if case else None
        if case is None or variant is None:
            return record
        asked = record["toolchain"]["requested"]
        toolchain = Toolchain(
            backend=record["backend"],
            library=asked["library"],
            toolkit=ToolkitRef(release=asked["toolkit"], headers=asked["headers"]),
            packages=asked["packages"],
            device=record["device"]["name"] if record["device"].get("virtual") is False else "",
        )
        cell = Cell(case=case, variant=variant, toolchain=toolchain, target=Target.parse(record["target"]))
        expected = expectation_of(cell)
        outcome = Outcome(
            status=Status(record["status"]),
            stage=Stage(record["stage"]) if record["stage"] else None,
            diagnostics=tuple(Diagnostic(**item) for item in record["diagnostics"]),
        )
        return {**record, "expected": expected_json(expected), "verdict": judge(expected, outcome), "title": case.title}

    return rejudge
