"""The matrix in a terminal: programs and toolchains down, targets across; letters as well as colours, in any width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.terminal import printable
from harness.diagnostics import one_line
from harness.matrix.axes import rows_of, short_target, targets_of
from harness.matrix.marks import KINDS, Mark, kind_of

_LEAST_NAME = 12


def show_matrix(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print the matrix; targets that do not fit next to each other continue below."""
    rows = [(one_line(row.program), one_line(row.toolchain), row.cells) for row in rows_of(records)]
    name = min(max((len(toolchain) for _, toolchain, _ in rows), default=0), max(_LEAST_NAME, console.width // 2)) + 2
    columns = [(target, short_target(target)) for target in targets_of(records)]
    for part in _parts(columns, console.width - name - 1):
        head = Text(" " * name)
        for _, short in part:
            head.append(f" {short}", "bold")
        console.print(head, no_wrap=True, crop=True)
        shown = None
        for case, toolchain, cells in rows:
            if case != shown:
                console.print(Text(_cut(case, console.width), "bold"), no_wrap=True)
                shown = case
            line = Text("  " + _cut(toolchain, name - 2).ljust(name - 2))
            for target, short in part:
                kind = kind_of(cells[target]) if target in cells else None
                line.append(" " * len(short))
                line.append(letter(kind, console) if kind else " ", kind.style if kind else "")
            console.print(line, no_wrap=True)
    used = {kind_of(record) for record in records}
    console.print(Text("  ").join(named(console, kind) for kind in KINDS.values() if kind in used))


def letter(kind: Mark, console: Console) -> str:
    """The letter of a kind, as the console's stream has it."""
    return printable(kind.letter, kind.plain, console.encoding)


def named(console: Console, kind: Mark) -> Text:
    """Letter and word of a kind in its style."""
    return Text(f"{letter(kind, console)} {kind.word}", kind.style)


def _parts(columns: Iterable[tuple[str, str]], room: int) -> Iterable[list[tuple[str, str]]]:
    """As many columns as fit, at least one."""
    part: list[tuple[str, str]] = []
    taken = 0
    for target, short in columns:
        wide = len(short) + 1
        if part and taken + wide > room:
            yield part
            part, taken = [], 0
        part.append((target, short))
        taken += wide
    if part:
        yield part


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
