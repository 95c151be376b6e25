"""The summary that ``run`` and ``try`` print at the end, from top to bottom."""

from __future__ import annotations

import io

from record_builders import cell, record, rejected
from rich.console import Console

from harness.cli.summary import show_summary
from harness.model import Outcome, Status


def shown(*reasons: str) -> list[str]:
    records = [record(cell(target="sm_80"), rejected('identifier "missing" is undefined'))]
    for number, reason in enumerate(reasons):
        of = cell(target=f"sm_{100 + number}")
        records.append(record(of, Outcome(status=Status.UNSUPPORTED, reason=reason)))
    console = Console(file=io.StringIO(), width=200)
    show_summary(console, records, planned=len(records), table=True)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_failures_follow_the_grid_and_what_is_not_applicable_is_one_line() -> None:
    lines = shown("CUDA 12.4 knows no sm_100", "CUDA 12.4 knows no sm_101", "CUDA 12.4 knows no sm_102")
    grid = next(place for place, line in enumerate(lines) if line.startswith("F not as expected  "))
    failure = next(place for place, line in enumerate(lines) if line.startswith("F not as expected: "))
    (applicable,) = (place for place, line in enumerate(lines) if line.startswith("not applicable: "))
    assert grid < failure < applicable == len(lines) - 2
    assert lines[applicable] == ("not applicable: CUDA 12.4 knows no sm_100 (3 cells, 3 reasons: --json has all)")
    assert lines[-1].startswith("4 of 4 cells: ")


def test_one_reason_is_shown_with_its_cells() -> None:
    lines = shown("CUDA 12.4 knows no such target", "CUDA 12.4 knows no such target")
    assert "not applicable: CUDA 12.4 knows no such target (2 cells: sm_100, sm_101)" in lines
