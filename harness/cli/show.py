"""What the terminal shows of records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.failures import show_failures
from harness.cli.grid import show_matrix
from harness.cli.remarks import show_remarks
from harness.diagnostics import one_line
from harness.matrix.axes import PROGRAM, TOOLCHAIN, place_of
from harness.matrix.kinds import KINDS, kind_of
from harness.records.remarks import REMARK

_MAX_LISTED = 20
TELLING = (REMARK, "not linked")
"""How notes begin that are shown with the matrix."""


def show_summary(console: Console, records: Sequence[Mapping[str, Any]], *, planned: int, table: bool) -> None:
    """Counts, everything that is not as expected, and the matrix where it is small or asked for."""
    rows: set[tuple[str, ...]] = set()
    counts: Counter[str] = Counter()
    targets: set[str] = set()
    strange, telling, cached = [], [], 0
    # Once over all of them: a run keeps its records packed.
    for record in records:
        kind = kind_of(record)
        rows.add(place_of(record, (*PROGRAM, *TOOLCHAIN)))
        targets.add(record["target"])
        counts[kind.key] += 1
        cached += record["cached"]
        if not kind.as_expected:
            strange.append(record)
        if record["status"] == "built" and any(note.startswith(TELLING) for note in record["notes"]):
            telling.append(record)
    if records and (table or len(rows) <= 40):
        show_matrix(console, records)
    if table:
        show_remarks(console, records)
    show_failures(console, strange, targets)
    _show_notes(console, telling)
    line = Text(f"{len(records)} of {planned} cells: ")
    for key, kind in KINDS.items():
        if counts[key]:
            line.append(f"{counts[key]} {kind.word}  ", kind.style)
    line.append(f"({cached} from earlier runs)" if cached else "", "dim")
    console.print(line, soft_wrap=True)


def _show_notes(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """What a `built` does not say by itself, once for all targets of a program and toolchain."""
    rows: dict[tuple[Any, ...], list[tuple[str, str]]] = defaultdict(list)
    for record in records:
        for note in record["notes"]:
            if note.startswith(TELLING):
                subject = note.partition(" for ")[0] if note.startswith(REMARK) else note
                rows[*place_of(record, (*PROGRAM, *TOOLCHAIN)), subject].append((record["cell"], note))
    for row in list(rows.values())[:_MAX_LISTED]:
        more = f" (and {len(row) - 1} more of its targets)" if len(row) > 1 else ""
        console.print(Text(one_line(f"{row[0][0]}: {row[0][1]}{more}", 400), "yellow"), soft_wrap=True)
    if len(rows) > _MAX_LISTED:
        console.print(f"… and {len(rows) - _MAX_LISTED} more such notes", markup=False)
