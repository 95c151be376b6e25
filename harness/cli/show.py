"""What the terminal shows of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.grid import show_matrix
from harness.cli.marks import MARKS, mark
from harness.cli.remarks import show_remarks
from harness.diagnostics import one_line

_MAX_LISTED = 20


def show_summary(console: Console, records: Sequence[Mapping[str, Any]], *, planned: int, table: bool) -> None:
    """Counts, everything that is not as expected, and the matrix where it is small or asked for."""
    rows = {(record["case"], record["variant"], _toolchain(record)) for record in records}
    if records and (table or len(rows) <= 40):
        show_matrix(console, records)
    if table:
        show_remarks(console, records)
    strange = [record for record in records if not mark(record).as_expected]
    for record in strange[:_MAX_LISTED]:
        said = mark(record)
        console.print(
            Text.assemble((f"{said.letter} {said.word}: ", said.style), one_line(record["cell"])), soft_wrap=True
        )
        console.print(Text(f"    {_why(record)}"), soft_wrap=True)
    if len(strange) > _MAX_LISTED:
        console.print(f"… and {len(strange) - _MAX_LISTED} more", markup=False)
    counts = Counter(mark(record) for record in records)
    line = Text(f"{len(records)} of {planned} cells: ")
    for said in MARKS.values():
        if counts[said]:
            line.append(f"{counts[said]} {said.word}  ", said.style)
    cached = sum(record["cached"] for record in records)
    line.append(f"({cached} from earlier runs)" if cached else "", "dim")
    console.print(line, soft_wrap=True)


def _toolchain(record: Mapping[str, Any]) -> tuple[str, str, str]:
    return (record["backend"], record["library"], record["toolkit"])


def _why(record: Mapping[str, Any]) -> str:
    diagnostics = record["diagnostics"]
    words = record["reason"] or (diagnostics[0]["message"] if diagnostics else "; ".join(record["notes"]))
    got = f"{record['status']} at {record['stage']}" if record["stage"] else record["status"]
    wanted = record["expected"]
    expected = wanted["status"] + (f" at {wanted['stage']}" if wanted["stage"] else "")
    if wanted["diagnostic"]:
        expected += f" with /{wanted['diagnostic']}/"
    return (
        one_line(f"{got}, expected {expected}. {words}", 300)
        if record["status"] != "unavailable"
        else one_line(words, 300)
    )
