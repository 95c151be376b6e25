"""What the terminal shows of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.diagnostics import one_line
from harness.model import Target, Verdict

_MAX_LISTED = 20


@dataclass(frozen=True)
class Mark:
    """A letter, a word and a colour for what happened to a cell."""

    letter: str
    word: str
    style: str
    as_expected: bool


_MARKS = {
    "built": Mark("B", "built", "green", True),
    "rejected": Mark("R", "rejected, as expected", "cyan", True),
    "crashed": Mark("C", "crashed, as expected", "cyan", True),
    "timed_out": Mark("T", "timed out, as expected", "cyan", True),
    "xfail": Mark("x", "fails, a known fault", "yellow", True),
    "unsupported": Mark("-", "means nothing here", "dim", True),
    "xpass": Mark("P", "a known fault is gone", "bold magenta", False),
    "fail built": Mark("B!", "built, not as expected", "bold red", False),
    "fail rejected": Mark("R!", "rejected, not as expected", "bold red", False),
    "fail crashed": Mark("C!", "crashed", "bold red", False),
    "fail timed_out": Mark("T!", "timed out", "bold red", False),
    "unavailable": Mark("U", "a part is unavailable", "bold yellow", False),
    "harness_error": Mark("E", "cumatrix's own fault", "bold red", False),
}


def mark(record: Mapping[str, Any]) -> Mark:
    """The mark of a record: by its verdict where that is not a plain pass, by its status else."""
    verdict, status = record["verdict"], record["status"]
    if verdict == Verdict.FAIL:
        return _MARKS[f"fail {status}"]
    return _MARKS[verdict if verdict in (Verdict.XFAIL, Verdict.XPASS) else status]


def show_summary(console: Console, records: Sequence[Mapping[str, Any]], *, planned: int, table: bool) -> None:
    """Counts, everything that is not as expected, and the matrix where it is small or asked for."""
    rows = {(record["case"], record["variant"], _toolchain(record)) for record in records}
    if records and (table or len(rows) <= 40):
        show_matrix(console, records)
    strange = [record for record in records if not mark(record).as_expected]
    for record in strange[:_MAX_LISTED]:
        said = mark(record)
        console.print(Text.assemble((f"{said.letter} {said.word}: ", said.style), record["cell"]), soft_wrap=True)
        console.print(Text(f"    {_why(record)}"), soft_wrap=True)
    if len(strange) > _MAX_LISTED:
        console.print(f"… and {len(strange) - _MAX_LISTED} more", markup=False)
    counts = Counter(mark(record) for record in records)
    line = Text(f"{len(records)} of {planned} cells: ")
    for said in _MARKS.values():
        if counts[said]:
            line.append(f"{counts[said]} {said.word}  ", said.style)
    cached = sum(record["cached"] for record in records)
    line.append(f"({cached} from earlier runs)" if cached else "", "dim")
    console.print(line, soft_wrap=True)


def show_matrix(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Programs and toolchains down, targets across."""
    targets = sorted({record["target"] for record in records}, key=lambda name: Target.parse(name).sort_key)
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("case", overflow="fold")
    table.add_column("toolchain", no_wrap=True)
    for target in targets:
        table.add_column(target.replace("compute_", "c").replace("sm_", ""), justify="center", no_wrap=True)
    rows: dict[tuple[str, str], dict[str, Mark]] = {}
    for record in records:
        variant = f"[{record['variant']}]" if record["variant"] else ""
        rows.setdefault((record["case"] + variant, _toolchain(record)), {})[record["target"]] = mark(record)
    shown = None
    for (case, toolchain), marks in sorted(rows.items()):
        cells = [Text(marks[target].letter, marks[target].style) if target in marks else Text("") for target in targets]
        table.add_row(Text(case if case != shown else ""), Text(toolchain), *cells)
        shown = case
    console.print(table)
    used = dict.fromkeys(mark(record) for record in records)
    console.print(
        Text("  ").join(Text(f"{said.letter} {said.word}", said.style) for said in _MARKS.values() if said in used)
    )


def _toolchain(record: Mapping[str, Any]) -> str:
    library = f" {record['library']}" if record["library"] else ""
    return f"{record['backend']}{library} cuda {record['toolkit']}"


def _why(record: Mapping[str, Any]) -> str:
    diagnostics = record["diagnostics"]
    words = record["reason"] or (diagnostics[0]["message"] if diagnostics else "")
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
