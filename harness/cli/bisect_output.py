"""Output of ``cumatrix bisect``: progress, a table, one sentence per border, and the command that repeats it."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from harness.bisection.search import LaneOutcome
from harness.bisection.sentences import Findings, LaneGroup, release_notes
from harness.cli.summary import letter
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import clean, one_line
from harness.errors import NothingToRun, PartUnavailable
from harness.matrix.marks import KINDS
from harness.matrix.ranges import spell
from harness.model import Status
from harness.records import Record

_MOST_COLUMNS = 6


class Progressing:
    """Progress of a bisection: a bar on a terminal, otherwise a line per release.

    Parameters
    ----------
    console : Console
        Console on stderr.
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
        """Print the releases of the next round and the estimate."""
        what = "a first sweep over" if sweeping else "closing in on what differs:"
        more = f", then about {left - len(versions)} more" if left > len(versions) else ""
        self.console.print(one_line(f"{what} {', '.join(versions)}{more}{self._estimate(left)}", 400), soft_wrap=True)
        self._bar.update(self._task, total=self._tried + left)

    def cell(self, record: Record) -> None:
        """Show the finished cell."""
        self._bar.update(self._task, description=clean(record["cell"])[:90])

    def tried(self, version: str, outcome: str, left: int) -> None:
        """Advance the bar, and print the release without a terminal."""
        self._tried += 1
        self._bar.update(self._task, completed=self._tried, total=self._tried + left)
        if not self.console.is_terminal:
            self.console.print(f"  {one_line(version)}: {one_line(outcome, 200)}", soft_wrap=True)

    def _estimate(self, left: int) -> str:
        """Return the estimated remaining time, from the mean time per release so far."""
        if not self._tried or not left:
            return ""
        seconds = (time.monotonic() - self._began) / self._tried * left
        return f"; about {_spelled(seconds)} left"


def _spelled(seconds: float) -> str:
    return f"{max(1, round(seconds))} s" if seconds < 90 else f"{round(seconds / 60)} min"


def show(found: Findings, command: str, *, as_json: bool) -> int:
    """Show the result on stdout, and return the exit code.

    Raises
    ------
    PartUnavailable, NothingToRun
        As `check_answered`.
    """
    console = console_for(sys.stdout)
    if as_json:
        say_json(_to_json(found, command))
    elif found.groups:
        _show_table(console, found)
        console.print()
        _show_sentences(console, found)
        if found.contradiction:
            console.print(Text(one_line(found.contradiction), "bold yellow"), soft_wrap=True)
        console.print(Text(f"again: {one_line(command, 2000)}", "dim"), soft_wrap=True)
    if found.interrupted:
        say("interrupted: the same command goes on from here", err=True)
        return 130
    check_answered(found)
    return 1 if found.contradiction else 0


def check_answered(found: Findings) -> None:
    """Raise `PartUnavailable` if no release was testable, `NothingToRun` if no compiler ran to a result."""
    if not found.groups:
        why = Counter(found.reasons.values()).most_common(1)
        raise PartUnavailable(
            f"none of the {len(found.versions)} releases could be tried: {why[0][0] if why else 'there are none'}"
        )
    if not found.answered:
        outcome = next(outcome for outcome in found.groups[0].history.values() if outcome)
        raise NothingToRun(f"no compiler answered with any of the {len(found.tried)} releases: {outcome.words}")


def _show_table(console: Console, found: Findings) -> None:
    """Print a row per tested release with the outcome of each group of cells, then each message once."""
    table = Table(box=None, padding=(0, 1), header_style="bold")
    table.add_column("commit" if found.of_commits else "release", no_wrap=True)
    shown = found.groups[:_MOST_COLUMNS]
    for group in shown:
        table.add_column(Text(one_line(group.name, 60) or "outcome"))
    notes = _Notes(console)
    for skipped, places in groupby(sorted(found.tried), found.reasons.__contains__):
        several = list(places)
        names = [one_line(found.names[place]) for place in several]
        if skipped:
            name = spell(names, to=" … ")
            why = f"{'' if len(names) == 1 else f'{len(names)} releases '}not tried {notes.of(found.reasons[several[-1]])}"
            table.add_row(Text(name), *([Text(why, "dim")] if shown else []))
            continue
        for place, name in zip(several, names, strict=True):
            table.add_row(Text(name), *(_cell(notes, found, group, place) for group in shown))
    console.print(table)
    notes.show()
    if len(found.groups) > len(shown):
        console.print(f"… and {len(found.groups) - len(shown)} more groups of cells: --json has them all", markup=False)


class _Notes:
    """Numbered messages, each printed once."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._numbers: dict[str, int] = {}

    def of(self, words: str) -> str:
        return f"({self._numbers.setdefault(one_line(words, 300), len(self._numbers) + 1)})" if words else ""

    def show(self) -> None:
        for words, number in self._numbers.items():
            self.console.print(Text(f"  ({number}) {words}", "dim"), soft_wrap=True)


def _cell(notes: _Notes, found: Findings, group: LaneGroup, place: int) -> Text:
    outcome = group.history.get(place)
    if outcome is None:
        return Text(f"not tried {notes.of(found.lacking.get((place, group.lanes[0]), ''))}".rstrip(), "dim")
    kind = KINDS[outcome.kind]
    # The message about an unknown target differs between releases only in the release's number.
    note = notes.of(outcome.words) if outcome.status != Status.UNSUPPORTED else ""
    return Text(f"{letter(kind, notes.console)} {outcome.brief} {note}".rstrip(), kind.style)


def _show_sentences(console: Console, found: Findings) -> None:
    """Print a sentence per border with its release notes, and one per group of cells without a border."""
    for each in found.borders:
        style = {"broke": "bold red", "fixed": "bold green"}.get(each.kind, "bold")
        console.print(Text(f"{_prefix(each.name)}{one_line(each.sentence, 600)}", style), soft_wrap=True)
        if notes := release_notes(found.over, found.versions[each.border.after]):
            console.print(Text(f"    release notes: {notes}", "dim"), soft_wrap=True)
    changing = {lane for each in found.borders for lane in each.lanes}
    for group in found.groups:
        if not changing & set(group.lanes):
            console.print(Text(f"{_prefix(group.name)}{_same(found, group)}"), soft_wrap=True)


def _same(found: Findings, group: LaneGroup) -> str:
    names = [found.names[place] for place, outcome in group.history.items() if outcome]
    several = [outcome for outcome in group.history.values() if outcome]
    if len(names) == 1:
        return f"{found.called(names[0])} is all that could be tried: {several[0].text}"
    if len({outcome.key for outcome in several}) > 1:  # commits that the search skipped may differ
        return f"{found.called(names[0])} and {names[-1]} show the same, {several[0].text}, but releases between them differ"
    return f"nothing changes from {found.called(names[0])} to {names[-1]}: {several[0].text}"


def _prefix(name: str) -> str:
    return f"{one_line(name, 200)}: " if name else ""


def _to_json(found: Findings, command: str) -> dict[str, Any]:
    """Return the whole result as a JSON value."""
    versions, tried = found.versions, set(found.tried) - set(found.reasons)
    return {
        "schema": 1,
        "over": found.over,
        "releases": [
            {"version": version, "tried": place in tried, "skipped": found.reasons.get(place, "")}
            for place, version in enumerate(versions)
        ],
        "histories": [
            {
                "name": group.name,
                "cells": [vars(lane) for lane in group.lanes],
                "outcomes": {versions[place]: _outcome(outcome) for place, outcome in group.history.items()},
            }
            for group in found.groups
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
                "notes": release_notes(found.over, versions[each.border.after]),
            }
            for each in found.borders
        ],
        "contradiction": found.contradiction,
        "interrupted": found.interrupted,
        "command": command,
    }  # fmt: skip


def _outcome(outcome: LaneOutcome | None) -> dict[str, Any] | None:
    keys = ("status", "stage", "verdict", "words", "fingerprint", "signal")
    return {key: getattr(outcome, key) for key in keys} if outcome else None
