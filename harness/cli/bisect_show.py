"""What ``bisect`` shows: progress while it goes on, then a table, a sentence for each border, and the command that repeats it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from harness.bisection.notes import release_notes
from harness.bisection.seen import Seen
from harness.bisection.tell import Group, Told
from harness.bisection.tries import Bisection
from harness.diagnostics import clean, one_line
from harness.matrix.kinds import KINDS
from harness.model import Status
from harness.records import Record

_MOST_COLUMNS = 6


class Progressing:
    """Says how a bisection comes on: a bar on a terminal, a line for each release elsewhere.

    Parameters
    ----------
    console : Console
        Of stderr.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._began = time.monotonic()
        self._tried = 0
        self._kinds: list[str] = []
        self._bar = Progress(
            BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.stop()

    def round(self, versions: Sequence[str], left: int, *, sweeping: bool) -> None:
        """Some releases are to be tried."""
        what = "a first sweep over" if sweeping else "closing in on what differs:"
        more = f", then about {left - len(versions)} more" if left > len(versions) else ""
        self.console.print(one_line(f"{what} {', '.join(versions)}{more}{self._estimate(left)}", 400), soft_wrap=True)
        self._bar.update(self._task, total=self._tried + left)

    def preparing(self, version: str) -> None:
        """A release is being installed, unless it is there."""
        self._bar.update(self._task, description=f"{version}: installing what is missing")

    def cell(self, record: Record) -> None:
        """A cell has come to its end."""
        self._bar.update(self._task, description=clean(record["cell"])[:90])

    def tried(self, version: str, left: int) -> None:
        """A release was tried, or could not be."""
        self._tried += 1
        self._bar.update(self._task, completed=self._tried, total=self._tried + left)
        if not self.console.is_terminal:
            self.console.print(f"  {one_line(version)} tried{self._estimate(left)}", soft_wrap=True)

    def _estimate(self, left: int) -> str:
        """Time that is left, as the releases so far took."""
        if not self._tried or not left:
            return ""
        seconds = (time.monotonic() - self._began) / self._tried * left
        return f"; about {_spelled(seconds)} left"


def _spelled(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def show_table(console: Console, bisection: Bisection, groups: Sequence[Group]) -> None:
    """Every release that was tried, with what each group of cells showed; what compilers said stands below, once each."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("release", no_wrap=True)
    shown = groups[:_MOST_COLUMNS]
    for group in shown:
        table.add_column(Text(one_line(group.name, 60) or "outcome"))
    versions, notes = bisection.search.versions, _Notes(console)
    for place in sorted(bisection.search.tried):
        name = Text(one_line(versions[place]))
        if place in bisection.reasons:
            table.add_row(name, *([Text(f"not tried {notes.of(bisection.reasons[place])}", "dim")] if shown else []))
        else:
            table.add_row(name, *(_cell(notes, group.history.get(place)) for group in shown))
    console.print(table)
    notes.show()
    if len(groups) > len(shown):
        console.print(f"… and {len(groups) - len(shown)} more groups of cells: --json has them all", markup=False)


class _Notes:
    """What was said, numbered."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._numbers: dict[str, int] = {}

    def of(self, words: str) -> str:
        return f"({self._numbers.setdefault(one_line(words, 300), len(self._numbers) + 1)})" if words else ""

    def show(self) -> None:
        for words, number in self._numbers.items():
            self.console.print(Text(f"  ({number}) {words}", "dim"), soft_wrap=True)


def _cell(notes: _Notes, seen: Seen | None) -> Text:
    if seen is None:
        return Text("not tried", "dim")
    kind = KINDS[seen.kind]
    # That a release knows no such target differs in the release's number only.
    note = notes.of(seen.words) if seen.status != Status.UNSUPPORTED else ""
    return Text(f"{kind.letter_in(notes.console.encoding)} {seen.brief} {note}".rstrip(), kind.style)


def show_found(
    console: Console, over: str, bisection: Bisection, groups: Sequence[Group], told: Sequence[Told]
) -> None:
    """A sentence for each border, with its release notes; and that nothing changes where there is none."""
    versions = bisection.search.versions
    for each in told:
        style = {"broke": "bold red", "mended": "bold green"}.get(each.kind, "bold")
        console.print(Text(f"{_prefix(each.name)}{one_line(each.sentence, 600)}", style), soft_wrap=True)
        if notes := release_notes(over, versions[each.border.after]):
            console.print(Text(f"    release notes: {notes}", "dim"), soft_wrap=True)
    changing = {lane for each in told for lane in each.lanes}
    for group in groups:
        if not changing & set(group.lanes):
            console.print(Text(f"{_prefix(group.name)}{_same(bisection, group)}"), soft_wrap=True)


def _same(bisection: Bisection, group: Group) -> str:
    versions = [bisection.search.versions[place] for place, seen in group.history.items() if seen]
    seen = next(seen for seen in group.history.values() if seen)
    if len(versions) == 1:
        return f"{bisection.axis.called(versions[0])} is all that could be tried: {seen.told}"
    return f"nothing changes from {bisection.axis.called(versions[0])} to {versions[-1]}: {seen.told}"


def _prefix(name: str) -> str:
    return f"{one_line(name, 200)}: " if name else ""


def to_json(
    over: str, bisection: Bisection, groups: Sequence[Group], told: Sequence[Told], command: str, **more: Any
) -> dict[str, Any]:
    """Everything that was found, for machines."""
    versions = bisection.search.versions
    return {
        "schema": 1,
        "over": over,
        "releases": [
            {"version": version, "tried": place in bisection.search.tried and place not in bisection.reasons, "skipped": bisection.reasons.get(place, "")}
            for place, version in enumerate(versions)
        ],
        "histories": [
            {
                "name": group.name,
                "cells": [vars(lane) for lane in group.lanes],
                "outcomes": {versions[place]: _outcome(seen) for place, seen in group.history.items()},
            }
            for group in groups
        ],
        "borders": [
            {
                "before": versions[each.border.before],
                "after": versions[each.border.after],
                "between": [versions[place] for place in each.border.between],
                "name": each.name,
                "cells": [vars(lane) for lane in each.lanes],
                "kind": each.kind,
                "sentence": each.sentence,
                "notes": release_notes(over, versions[each.border.after]),
            }
            for each in told
        ],
        "command": command,
        **more,
    }  # fmt: skip


def _outcome(seen: Seen | None) -> dict[str, Any] | None:
    keys = ("status", "stage", "verdict", "words", "fingerprint", "signal")
    return {key: getattr(seen, key) for key in keys} if seen else None
