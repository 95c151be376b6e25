"""What is not as expected, in the terminal: equal failures once, the least expected first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.cli.grid import named
from harness.diagnostics import one_line
from harness.matrix.kinds import kind_of
from harness.matrix.order import target_key
from harness.records import again_command, at_stage
from harness.records.alike import Records, failures, places_of, said_of, words_of

_MOST_GROUPS = 20
_MOST_PLACES = 4


def show_failures(console: Console, records: Iterable[Mapping[str, Any]], among: Iterable[str]) -> None:
    """Print every failure once, with the cells that have it, the line that tells most, its place, known cause and remedy.

    Parameters
    ----------
    console : Console
        Where.
    records : iterable of Mapping
        Those that are not as expected; others are passed over.
    among : iterable of str
        The targets of all records.
    """
    ordered = failures(records)
    targets = sorted(among, key=target_key)
    for group in ordered[:_MOST_GROUPS]:
        _show(console, group, targets)
    if len(ordered) > _MOST_GROUPS:
        cells = sum(map(len, ordered[_MOST_GROUPS:]))
        console.print(f"… and {len(ordered) - _MOST_GROUPS} more failures, of {cells} cells", markup=False)


def _show(console: Console, group: Records, axis: Sequence[str]) -> None:
    from harness.causes import causes_of  # a catalogue, which a run loads where something failed

    first = group[0]
    count = f" {_times(console)}{len(group)}" if len(group) > 1 else ""
    console.print(Text.assemble(named(console, kind_of(first)), f"{count}: ", _cells(group, axis)), soft_wrap=True)
    console.print(Text(f"    {_against(first)}{words_of(group)}"), soft_wrap=True)
    if place := said_of(first)[1]:
        console.print(Text(f"    at {place}", "dim"), soft_wrap=True)
    if again := again_command(first):
        console.print(Text(f"    again: {one_line(again, 400)}", "dim"), soft_wrap=True)
    if cause := next((match.cause for match in causes_of(first) if not match.of_warning), None):
        console.print(Text.assemble("    ", ("cause: ", "bold"), cause.title), soft_wrap=True)
        console.print(Text.assemble("    ", ("remedy: ", "bold green"), cause.remedy), soft_wrap=True)


def _times(console: Console) -> str:
    try:
        "×".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return "x"
    return "×"


def _cells(group: Records, axis: Sequence[str]) -> str:
    """The cell's id, or the program, and where it fails: toolchains with their targets folded."""
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
    expected = at_stage(wanted["status"], wanted["stage"])
    if wanted["diagnostic"]:
        expected += f" with /{wanted['diagnostic']}/"
    return one_line(f"{at_stage(record['status'], record['stage'])}, expected {expected}: ", 300) + " "
