"""Releases tried for real: what is missing is installed, cells are compiled, and the search goes on until every border is found."""

from __future__ import annotations

import contextlib
import os
import sys
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.bisection.kept import Kept
from harness.bisection.search import Search
from harness.bisection.seen import Lane, Seen, seen_of
from harness.engine.context import RunContext
from harness.engine.result import Result
from harness.engine.run import Run
from harness.engine.session import record_of
from harness.errors import NothingToRun, PartUnavailable
from harness.model import Cell
from harness.records import Record, RecordWriter, make_plan, this_commit


@dataclass(frozen=True)
class Made:
    """A release that is ready to be tried.

    Parameters
    ----------
    context : RunContext
        What its cells are run with.
    cells : tuple of Cell
        Its cells.
    """

    context: RunContext
    cells: tuple[Cell, ...]


class Axis(Protocol):
    """What is searched: releases, and how one of them is made ready."""

    @property
    def place(self) -> str:
        """Where releases stand in a cell: ``library``, ``toolkit``, or the name of a header library."""
        ...

    @property
    def versions(self) -> Sequence[str]:
        """Releases, oldest first."""
        ...

    def called(self, version: str) -> str:
        """What a release is called in a sentence: ``CUDA 12.4``."""
        ...

    def made(self, version: str) -> Made:
        """Install what is missing of a release, and plan its cells.

        Raises
        ------
        PartUnavailable, NothingToRun
            When it cannot be tried, with the reason.
        """
        ...


class Watch(Protocol):
    """Is told how a bisection comes on."""

    def round(self, versions: Sequence[str], left: int, *, sweeping: bool) -> None:
        """Some releases are to be tried, and about so many altogether from here on."""
        ...

    def preparing(self, version: str) -> None:
        """A release is being installed, unless it is there."""
        ...

    def cell(self, record: Record) -> None:
        """A cell has come to its end."""
        ...

    def tried(self, version: str, left: int) -> None:
        """A release was tried, or could not be."""
        ...


@dataclass
class Bisection:
    """One search over an axis, with all that came of it so far; it can be interrupted between any two cells.

    Parameters
    ----------
    axis : Axis
        What is searched.
    search : Search
        Over its versions.
    watch : Watch
        Is told how it comes on.
    kept : Kept
        What an earlier bisection of the same found.
    jobs : int
        Cells that are compiled at the same time.
    out : Path or None
        File of records to keep them in as well.
    seen, records, reasons : dict
        By place and lane what was seen; by place the records, and why a release could not be tried.
    """

    axis: Axis
    search: Search[Lane]
    watch: Watch
    kept: Kept
    jobs: int = 0
    out: Path | None = None
    seen: dict[tuple[int, Lane], Seen] = field(default_factory=dict)
    records: dict[int, list[Record]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Try releases until every border is found."""
        while places := self.search.next():
            names = [self.search.versions[place] for place in places]
            self.watch.round(names, self.search.left(), sweeping=self.search.sweeping)
            self._try(self._ready(places))

    def _ready(self, places: Sequence[int]) -> dict[int, Made]:
        ready = {}
        for place in places:
            version = self.search.versions[place]
            self.watch.preparing(version)
            try:
                ready[place] = self.axis.made(version)
            except (PartUnavailable, NothingToRun) as error:
                self.reasons[place] = str(error)
                self._add(place, {})
        return ready

    def _try(self, ready: dict[int, Made]) -> None:
        """Compile the cells of several releases, those with one context together."""
        alike: dict[int, dict[int, Made]] = defaultdict(dict)
        for place, made in ready.items():
            alike[id(made.context)][place] = made
        for several in alike.values():
            context = next(iter(several.values())).context
            cells = [cell for made in several.values() for cell in made.cells]
            places = {cell.id: place for place, made in several.items() for cell in made.cells}
            left = {place: {cell.id for cell in made.cells} for place, made in several.items()}
            found: dict[int, dict[Lane, Seen | None]] = {place: {} for place in several}
            with Run(context, self.jobs or os.cpu_count() or 1) as run, self._written(cells, context) as writer:
                for cell, record in self._results(run, cells):
                    place, lane = places[cell.id], Lane.of(record, self.axis.place)
                    found[place][lane] = seen_of(record)
                    self.records.setdefault(place, []).append(record)
                    if writer:
                        writer.append(record)
                    self.watch.cell(record)
                    left[place].discard(cell.id)
                    if not left[place]:
                        self._end(place, found[place])

    def _results(self, run: Run, cells: Sequence[Cell]) -> Iterator[tuple[Cell, Record]]:
        name = uuid.uuid4().hex[:12]
        asked = []
        for cell in cells:
            resolved = run.resolver.resolve(cell)
            if not isinstance(resolved, Result) and (record := self.kept.answer(cell)):
                yield cell, record
            else:
                asked.append(cell)
        for result in run.results(asked):
            record = record_of(result, name)
            self.kept.append(record)
            yield result.cell, record

    def _end(self, place: int, found: dict[Lane, Seen | None]) -> None:
        self.seen |= {(place, lane): seen for lane, seen in found.items() if seen is not None}
        if not any(found.values()):
            self.reasons[place] = next((each["reason"] for each in self.records[place]), "it has no cells")
        self._add(place, found)

    def _add(self, place: int, found: dict[Lane, Seen | None]) -> None:
        self.search.add(place, {lane: seen and seen.key for lane, seen in found.items()})
        self.watch.tried(self.search.versions[place], self.search.left())

    @contextlib.contextmanager
    def _written(self, cells: Sequence[Cell], context: RunContext) -> Iterator[RecordWriter | None]:
        """The user's file of records, which keeps those of earlier rounds."""
        if self.out is None:
            yield None
            return
        plan = make_plan(
            cells, run=uuid.uuid4().hex[:12], environment=context.environment.name, argv=sys.argv[1:], commit=this_commit()
        )  # fmt: skip
        with RecordWriter(self.out, plan) as writer:
            yield writer
