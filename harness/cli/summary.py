"""Terminal output for records: the matrix, failures, remarks and the summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cases.kernel_texts import NOTE
from harness.cli.terminal import printable
from harness.diagnostics import one_line
from harness.engine.proof import without_answer
from harness.matrix.axes import PROGRAM, TOOLCHAIN, place_of, rows_of, short_target, target_key, targets_of
from harness.matrix.marks import KINDS, Mark, kind_of
from harness.model.cell import named_toolkit
from harness.records import again_command, at_stage
from harness.records.failures import REMARK, Records, failures, grouped_message_of, places_of, words_of
from harness.records.make import SPILLS

Again = Callable[[Mapping[str, Any]], str]
"""Returns the command that compiles the cell of a record again."""

_LEAST_NAME = 12


def show_matrix(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print the matrix; targets that exceed the width continue below."""
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
    """Return the letter of a kind in the console's encoding."""
    return printable(kind.letter, kind.plain, console.encoding)


def named(console: Console, kind: Mark) -> Text:
    """Return the letter and the word of a kind in its style."""
    return Text(f"{letter(kind, console)} {kind.word}", kind.style)


def _parts(columns: Iterable[tuple[str, str]], room: int) -> Iterable[list[tuple[str, str]]]:
    """Yield groups of as many columns as fit, at least one."""
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


_MOST_GROUPS = 20
_MOST_PLACES = 4


def show_failures(
    console: Console,
    records: Iterable[Mapping[str, Any]],
    among: Iterable[str],
    again: Again = again_command,
) -> None:
    """Print every failure once, with its cells, its most informative line, its location, known cause and remedy.

    Parameters
    ----------
    console : Console
        Output.
    records : iterable of Mapping
        Records. Only unexpected ones are printed.
    among : iterable of str
        Targets of all records.
    again : callable
        Returns the command that compiles the cell of a record again.
    """
    ordered = failures(records)
    targets = sorted(among, key=target_key)
    for group in ordered[:_MOST_GROUPS]:
        _show(console, group, targets, again)
    if len(ordered) > _MOST_GROUPS:
        cells = sum(map(len, ordered[_MOST_GROUPS:]))
        console.print(f"… and {len(ordered) - _MOST_GROUPS} more failures, of {cells} cells", markup=False)


def _show(console: Console, group: Records, axis: Sequence[str], again: Again) -> None:
    from harness.causes import causes_of  # a catalogue, which a run loads only after a failure

    first = group[0]
    count = f" {printable('×', 'x', console.encoding)}{len(group)}" if len(group) > 1 else ""
    console.print(Text.assemble(named(console, kind_of(first)), f"{count}: ", _cells(group, axis)), soft_wrap=True)
    console.print(Text(f"    {_against(first)}{words_of(group)}"), soft_wrap=True)
    if place := grouped_message_of(first)[1]:
        console.print(Text(f"    at {place}", "dim"), soft_wrap=True)
    if command := again(first):
        console.print(Text(f"    again: {one_line(command, 2000)}", "dim"), soft_wrap=True)
    if cause := next((match.cause for match in causes_of(first) if not match.of_warning), None):
        console.print(Text.assemble("    ", ("cause: ", "bold"), cause.title), soft_wrap=True)
        console.print(Text.assemble("    ", ("remedy: ", "bold green"), cause.remedy), soft_wrap=True)


def _cells(group: Records, axis: Sequence[str]) -> str:
    """Return the cell's id; for several cells the program and the failing toolchains with folded targets."""
    if len(group) == 1:
        return one_line(group[0]["cell"])
    programs = list(dict.fromkeys(record["case"] for record in group))
    variants = list(dict.fromkeys(record["variant"] for record in group))
    variant = f"[{variants[0]}]" if len(variants) == 1 and variants[0] else ""
    more = f" ({len(variants)} variants)" if len(variants) > 1 else ""
    if len(programs) > 1:
        variant, more = "", f" and {len(programs) - 1} more program{'s' if len(programs) > 2 else ''}"
    places = places_of(group, axis)
    rest = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    return one_line(f"{programs[0]}{variant}{more}: {'; '.join(places[:_MOST_PLACES])}{rest}", 500)


def _against(record: Mapping[str, Any]) -> str:
    if record["status"] == "unavailable":
        return ""
    wanted = record["expected"]
    if record["status"] == wanted["status"] == "built":
        return "built, but "
    expected = at_stage(wanted["status"], wanted["stage"])
    if wanted["diagnostic"]:
        expected += f" with /{wanted['diagnostic']}/"
    return one_line(f"{at_stage(record['status'], record['stage'])}, expected {expected}: ", 300) + " "


_MOST_LINES = 12


def show_remarks(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print each note once, and one line about cells that are not applicable."""
    notes: dict[str, list[Mapping[str, Any]]] = {}
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for note in record.get("notes", ()):
            notes.setdefault(one_line(note, 400), []).append(record)
        if record["status"] == "unsupported" and record["reason"]:
            reasons.setdefault(one_line(record["reason"], 400), []).append(record)
    for text, cells in list(notes.items())[:_MOST_LINES]:
        _show_remark(console, "note", text, _where(cells) if len(cells) < len(records) else "")
    if len(notes) > _MOST_LINES:
        console.print(f"… and {len(notes) - _MOST_LINES} more notes: --json has all", markup=False)
    if not reasons or (len(reasons) == 1 and without_answer(records)):
        return  # the other sentence has the reason
    (first, cells), *others = reasons.items()
    where = _where(cells) if len(cells) < len(records) else ""
    if others:
        count = sum(map(len, reasons.values()))
        where = f"{count} cells, {len(reasons)} reasons: --json has all"
    _show_remark(console, KINDS["unsupported"].word, first, where)


def _show_remark(console: Console, kind: str, text: str, where: str) -> None:
    line = Text.assemble((kind, KINDS["unsupported"].style), f": {text}")
    if where:
        line.append(f" ({where})", "dim")
    console.print(line, soft_wrap=True)


def _where(cells: Sequence[Mapping[str, Any]]) -> str:
    """Return the only cell's name, or the number of cells and their targets."""
    if len(cells) == 1:
        return f"{cells[0]['backend']} {cells[0]['library']} {named_toolkit(cells[0]['toolkit']).replace('CUDA', 'cuda')} {cells[0]['target']}".replace(
            "  ", " "
        )
    targets = sorted({str(cell["target"]) for cell in cells}, key=target_key)
    shown = ", ".join(targets[:4]) + (", …" if len(targets) > 4 else "")
    return f"{len(cells)} cells: {shown}"


_MAX_LISTED = 20
TELLING = (REMARK, "not linked", NOTE, "cannot launch", "set for this cell", SPILLS)
"""Prefixes of notes that are shown with the matrix."""


def show_summary(
    console: Console, records: Sequence[Mapping[str, Any]], *, planned: int, table: bool, again: Again = again_command
) -> None:
    """Print counts, all unexpected cells, and the matrix if it is small or requested."""
    rows: set[tuple[str, ...]] = set()
    counts: Counter[str] = Counter()
    targets: set[str] = set()
    strange, telling, cached = [], [], 0
    # Iterate only once, since a run compresses its records.
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
    show_failures(console, strange, targets, again)
    _show_notes(console, telling)
    if table:
        show_remarks(console, records)
    line = Text(f"{len(records)} of {planned} cells: ")
    for key, kind in KINDS.items():
        if counts[key]:
            line.append(f"{counts[key]} {kind.word}  ", kind.style)
    line.append(f"({cached} from earlier runs)" if cached else "", "dim")
    console.print(line, soft_wrap=True)


def _show_notes(console: Console, records: Sequence[Mapping[str, Any]]) -> None:
    """Print remarks on `built` cells, once for all targets of a program and toolchain."""
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
