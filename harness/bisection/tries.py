"""Releases tried for real: what is missing is installed, cells are compiled, and the search goes on until every border is found."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.bisection.kept import Kept
from harness.bisection.search import Search
from harness.bisection.seen import Lane, Seen, seen_of
from harness.engine.context import RunContext
from harness.engine.cores import usable_cores
from harness.engine.result import Result
from harness.engine.run import Run
from harness.engine.session import record_of
from harness.model import Cell
from harness.records import Record, RecordWriter, make_plan, this_commit


@dataclass(frozen=True)
class Planned:
    """Releases that are to be tried at once.

    Parameters
    ----------
    context : RunContext
        What their cells are run with.
    cells : Mapping[str, sequence of Cell]
        By release; none for one that cannot be tried.
    reasons : Mapping[str, str]
        Why it cannot be.
    """

    context: RunContext
    cells: Mapping[str, Sequence[Cell]]
    reasons: Mapping[str, str] = field(default_factory=dict)


class SearchAxis(Protocol):
    """A search: releases, and the cells of each."""

    @property
    def place(self) -> str:
        """The part of a cell that holds the release: ``library``, ``toolkit``, or the name of a header library."""
        ...

    @property
    def versions(self) -> Sequence[str]:
        """Releases, oldest first."""
        ...

    @property
    def hopeless(self) -> Mapping[str, str]:
        """Those that need not be tried, and why: no wheel."""
        ...

    def called(self, version: str) -> str:
        """The name of a release in a sentence: ``CUDA 12.4``."""
        ...

    def plan(self, versions: Sequence[str]) -> Planned:
        """The cells of some releases."""
        ...


Install = Callable[[Sequence[Cell], RunContext], RunContext]
"""Installs missing parts of cells; unavailable parts make them ``unavailable``."""


class Watch(Protocol):
    """Receives the progress of a bisection."""

    def round(self, versions: Sequence[str], left: int, *, sweeping: bool) -> None:
        """Some releases are to be tried, and about so many altogether from here on."""
        ...

    def cell(self, record: Record) -> None:
        """A cell has come to its end."""
        ...

    def tried(self, version: str, told: str, left: int) -> None:
        """A release was tried, with what it showed, or could not be."""
        ...


@dataclass
class Bisection:
    """One search over an axis, with its results so far; it can be interrupted between any two cells.

    Parameters
    ----------
    axis : SearchAxis
        What is searched.
    search : Search
        Over its versions.
    watch : Watch
        Receives the progress.
    install : callable
        Installs what is missing (`Install`).
    kept : Kept
        What an earlier bisection of the same found.
    jobs : int
        Cells that are compiled at the same time.
    out : Path or None
        File of records to keep them in as well.
    seen, lacking : dict
        By place and lane what was seen, or why it could not be.
    records, reasons : dict
        By place the records, and why a release could not be tried at all.
    """

    axis: SearchAxis
    search: Search[Lane]
    watch: Watch
    install: Install
    kept: Kept
    jobs: int = 0
    out: Path | None = None
    seen: dict[tuple[int, Lane], Seen] = field(default_factory=dict)
    lacking: dict[tuple[int, Lane], str] = field(default_factory=dict)
    records: dict[int, list[Record]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Try releases until every border is found."""
        while places := self.search.next():
            by_version = {self.search.versions[place]: place for place in places}
            self.watch.round(list(by_version), self.search.left(), sweeping=self.search.sweeping)
            self._try(by_version)

    def _try(self, places: Mapping[str, int]) -> None:
        """Try some releases, by version, all at once."""
        planned = self.axis.plan(list(places))
        for version, place in places.items():
            if not planned.cells.get(version):
                self.reasons[place] = planned.reasons.get(version, "none of its cells was chosen")
                self._add(place, {})
        cells = [cell for of_it in planned.cells.values() for cell in of_it]
        place_of = {cell.id: places[version] for version, of_it in planned.cells.items() for cell in of_it}
        left = {places[version]: {cell.id for cell in of_it} for version, of_it in planned.cells.items()}
        found: dict[int, dict[Lane, Seen | None]] = {place: {} for place in left}
        context = self.install(cells, planned.context)
        with Run(context, self.jobs or usable_cores()) as run, self._written(cells, context) as writer:
            for cell, record in self._results(run, cells):
                place, lane = place_of[cell.id], Lane.of(record, self.axis.place)
                found[place][lane] = seen_of(record)
                if found[place][lane] is None:
                    self.lacking[place, lane] = record["reason"]
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
        told = ", ".join(dict.fromkeys(seen.brief for seen in found.values() if seen))
        self.watch.tried(self.search.versions[place], told or f"not tried: {self.reasons[place]}", self.search.left())

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
