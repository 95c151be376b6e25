"""The matrix in a terminal: programs and toolchains down, targets across; letters as well as colours, in any width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.backends import BACKENDS
from harness.cli.marks import MARKS, Mark, mark
from harness.diagnostics import one_line
from harness.model import Target
from harness.report.text import natural_key

_LEAST_NAME = 12


def show_matrix(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print the matrix; where not all targets fit beside each other, in several parts below each other."""
    targets = sorted({record["target"] for record in records}, key=lambda name: Target.parse(name).sort_key)
    rows: dict[tuple[str, str], dict[str, Mark]] = {}
    for record in sorted(records, key=_order):
        variant = f"[{record['variant']}]" if record["variant"] else ""
        rows.setdefault((one_line(record["case"] + variant), _toolchain(record)), {})[record["target"]] = mark(record)
    name = min(max((len(toolchain) for _, toolchain in rows), default=0), max(_LEAST_NAME, console.width // 2)) + 2
    for part in _parts([(target, _short(target)) for target in targets], console.width - name - 1):
        head = Text(" " * name)
        for _, short in part:
            head.append(" " + short.rjust(_width(short)), "bold")
        console.print(head, no_wrap=True, crop=True)
        shown = None
        for (case, toolchain), marks in rows.items():
            if case != shown:
                console.print(Text(_cut(case, console.width), "bold"), no_wrap=True)
                shown = case
            line = Text("  " + _cut(toolchain, name - 2).ljust(name - 2))
            for target, short in part:
                said = marks.get(target)
                line.append(" " * (1 + _width(short) - len(said.letter)) if said else " " * (1 + _width(short)))
                line.append(said.letter if said else "", said.style if said else "")
            console.print(line, no_wrap=True)
    used = {mark(record) for record in records}
    console.print(
        Text("  ").join(Text(f"{said.letter} {said.word}", said.style) for said in MARKS.values() if said in used)
    )


def _order(record: Mapping[str, Any]) -> tuple[Any, ...]:
    place = list(BACKENDS).index(record["backend"]) if record["backend"] in BACKENDS else len(BACKENDS)
    names = (record["case"], record["variant"])
    return (*map(natural_key, names), place, natural_key(record["library"]), natural_key(record["toolkit"]))


def _toolchain(record: Mapping[str, Any]) -> str:
    library = f" {record['library']}" if record["library"] else ""
    return one_line(f"{record['backend']}{library} cuda {record['toolkit']}")


def _short(target: str) -> str:
    return target.replace("compute_", "c").replace("sm_", "")


def _width(short: str) -> int:
    return max(len(short), *(len(said.letter) for said in MARKS.values()))


def _parts(columns: Iterable[tuple[str, str]], room: int) -> Iterable[list[tuple[str, str]]]:
    """As many columns beside each other as there is room for, one at least."""
    part: list[tuple[str, str]] = []
    taken = 0
    for target, short in columns:
        wide = _width(short) + 1
        if part and taken + wide > room:
            yield part
            part, taken = [], 0
        part.append((target, short))
        taken += wide
    if part:
        yield part


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(1, width - 1)] + "…"
