"""What is to be said of cells beside their letters: why one is not applicable, and what a verdict leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.diagnostics import one_line
from harness.engine.unanswered import without_answer
from harness.matrix.kinds import KINDS
from harness.matrix.order import target_key

_MOST_LINES = 12


def show_remarks(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print why cells are not applicable, and the notes of all others, each text once."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    if len({record["reason"] for record in records}) == 1 and without_answer(records):
        return  # that sentence says it
    for record in records:
        for kind, text in _remarks(record):
            found.setdefault((kind, one_line(text, 400)), []).append(record)
    for (kind, text), cells in list(found.items())[:_MOST_LINES]:
        line = Text.assemble((kind, KINDS["unsupported"].style), f": {text}")
        if len(cells) < len(records):
            line.append(f" ({_where(cells)})", "dim")
        console.print(line, soft_wrap=True)
    if len(found) > _MOST_LINES:
        console.print(f"… and {len(found) - _MOST_LINES} more remarks: --json has all", markup=False)


def _remarks(record: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    if record["status"] == "unsupported" and record["reason"]:
        yield KINDS["unsupported"].word, record["reason"]
    for note in record.get("notes", ()):
        yield "note", note


def _where(cells: Sequence[Mapping[str, Any]]) -> str:
    """The only cell's name, or how many they are and for which targets."""
    if len(cells) == 1:
        return f"{cells[0]['backend']} {cells[0]['library']} cuda {cells[0]['toolkit']} {cells[0]['target']}".replace(
            "  ", " "
        )
    targets = sorted({str(cell["target"]) for cell in cells}, key=target_key)
    shown = ", ".join(targets[:4]) + (", …" if len(targets) > 4 else "")
    return f"{len(cells)} cells: {shown}"
