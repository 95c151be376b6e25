"""Trials of a bisection: install a release, compile the cells, and repeat until every border is found.

Most outcomes come from the result cache. The journal of a bisection keeps the others: a crash, a time-out, a cell on a
real device, and a cell with untraceable reads.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from harness.bisection.search import Lane, LaneOutcome, Search, outcome_of
from harness.engine.cache import ResultCache
from harness.engine.context import RunContext
from harness.engine.executor import Run
from harness.engine.fingerprints import Key
from harness.engine.machine import usable_cores
from harness.engine.prepared import Result
from harness.model import Case, Cell
from harness.records import Record, RecordError, RecordWriter, make_plan, this_commit
from harness.records.store import read_file

_DAYS = 30
_MOST_FILES = 20_000
_PRODUCTS = (".jsonl", ".json", ".log", ".html", ".parquet")


class Journal:
    """Journal of one bisection: the records that the cache does not keep.

    Parameters
    ----------
    path : Path or None
        Path of the journal; None keeps nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._records: dict[str, Record] = {}
        if path is not None:
            _repair(path)
            for record in read_file(path, []) if path.is_file() else ():
                self._records[record["cell"]] = record

    def __len__(self) -> int:
        return len(self._records)

    def answer(self, cell: Cell) -> Record | None:
        """Return the record of a cell that the cache does not keep."""
        record = self._records.get(cell.id)
        if (
            record is None
            or record["fingerprint"]
            or record["toolchain"]["requested"]["packages"] != dict(cell.toolchain.packages)
        ):
            return None
        return record if record["status"] not in ("unavailable", "harness_error") else None

    def append(self, record: Record) -> None:
        """Append a record with one write.

        A full disk costs the next bisection time, but not this one its results.
        """
        if self.path is None:
            return
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError), open(self.path, "ab", buffering=0) as file:
            file.write(line)


def journal_for(case: Case, context: RunContext, words: Iterable[str]) -> Journal:
    """Return the journal for a program and a search.

    Parameters
    ----------
    case : Case
        The program.
    context : RunContext
        The tools and options; without a cache there is no journal.
    words : iterable of str
        Further parts of the key: the axis of the search.
    """
    path = place_for(case, context, words)
    return Journal(path and path.with_suffix(".jsonl"))


def place_for(case: Case, context: RunContext, words: Iterable[str], outside: Path | None = None) -> Path | None:
    """Return the path of a journal without suffix, None without one, and delete files unused for a month.

    Parameters
    ----------
    case, context, words
        As for `journal_for`.
    outside : Path, optional
        Folder whose files do not count: the checkout that is searched.
    """
    stamp = _stamp(case, context, outside)
    if not isinstance(context.cache, ResultCache) or stamp is None:
        return None
    folder = context.cache.folder.parent / "bisect"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            if path.stat().st_mtime < time.time() - _DAYS * 86400:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    except OSError:
        return None
    key = Key("bisect").add("words", list(words)).add("limits", asdict(context.request.limits)).add("program", stamp)
    key.add("python", context.environment.python).add("sanitizer", context.sanitizer)
    return folder / key.hex()[:32]


def _repair(path: Path) -> None:
    """Remove the partial line of a killed process, or an unreadable file."""
    try:
        data = path.read_bytes()
        if data and not data.endswith(b"\n"):
            os.truncate(path, data.rfind(b"\n") + 1)
        read_file(path, [])
    except (OSError, RecordError):
        with contextlib.suppress(OSError):
            path.unlink()


def _stamp(case: Case, context: RunContext, outside: Path | None) -> list[Any] | None:
    """Return the state of every file in the program's folders and include directories; None if there are too many."""
    files = [path.absolute() for path in (case.path, *case.sources.values(), *case.together)]
    named = [case.path.parent / folder for rule in case.options for folder in rule.values.get("include", ())]
    folders = {folder.absolute() for folder in (*context.request.include, *named, *(path.parent for path in files))}
    found: list[Any] = [str(path) for path in files]
    for folder in sorted(folders):
        if outside and folder.is_relative_to(outside):
            continue
        for place, below, names in os.walk(folder):
            below[:] = [
                name for name in below if not name.startswith((".", "__pycache__")) and Path(place, name) != outside
            ]
            for name in names:
                if name.endswith(_PRODUCTS):
                    continue
                with contextlib.suppress(OSError):
                    stat = os.stat(os.path.join(place, name))
                    found.append(f"{place}/{name} {stat.st_size} {stat.st_mtime_ns}")
            if len(found) > _MOST_FILES:
                return None
    return [case.name, sorted(found)]


@dataclass(frozen=True)
class Planned:
    """Cells of releases to test together.

    Parameters
    ----------
    context : RunContext
        The tools and options for the cells.
    cells : Mapping[str, sequence of Cell]
        Cells by release; none for an untestable release.
    reasons : Mapping[str, str]
        Reasons why releases are untestable.
    """

    context: RunContext
    cells: Mapping[str, Sequence[Cell]]
    reasons: Mapping[str, str] = field(default_factory=dict)


class SearchAxis(Protocol):
    """An axis of a search: releases, and the cells of each."""

    @property
    def place(self) -> str:
        """Part of a cell with the release: ``library``, ``toolkit``, or the name of a header library."""
        ...

    @property
    def versions(self) -> Sequence[str]:
        """Releases, oldest first."""
        ...

    @property
    def hopeless(self) -> Mapping[str, str]:
        """Reasons why releases need no test, by release: no wheel."""
        ...

    def named(self, text: str | None) -> str | None:
        """Return the version that ``--good`` or ``--bad`` names; None without one."""
        ...

    def title(self, version: str) -> str:
        """Return a version's name in lists: ``12.4``, ``3f2a9c14 (Fix the cast)``."""
        ...

    def called(self, version: str) -> str:
        """Return a version's name in a sentence: ``CUDA 12.4``."""
        ...

    def plan(self, versions: Sequence[str]) -> Planned:
        """Plan the cells of several releases."""
        ...


Install = Callable[[Sequence[Cell], RunContext], RunContext]
"""Installs missing parts of cells. Cells with unavailable parts become ``unavailable``."""


class Watch(Protocol):
    """Receives the progress of a bisection."""

    def round(self, versions: Sequence[str], left: int, *, sweeping: bool) -> None:
        """Start testing releases; `left` estimates all remaining tests."""
        ...

    def cell(self, record: Record) -> None:
        """Receive the record of a finished cell."""
        ...

    def tried(self, version: str, outcome: str, left: int) -> None:
        """Receive the outcome of a release, or the reason why it was untestable."""
        ...


@dataclass
class Bisection:
    """A search over an axis, with its results so far. It can be interrupted between any two cells.

    Parameters
    ----------
    axis : SearchAxis
        Axis of the search.
    search : Search
        Search over its versions.
    watch : Watch
        Receiver of the progress.
    install : callable
        Installer of missing parts (`Install`).
    kept : Journal
        Journal of earlier bisections with the same key.
    jobs : int
        Number of cells that compile at the same time; 0 uses all cores.
    out : Path or None
        Further file for the records.
    outcomes, lacking : dict
        Outcomes, and reasons why cells were untestable, by place and lane.
    records, reasons : dict
        Records, and reasons why releases were untestable, by place.
    """

    axis: SearchAxis
    search: Search[Lane]
    watch: Watch
    install: Install
    kept: Journal
    jobs: int = 0
    out: Path | None = None
    outcomes: dict[tuple[int, Lane], LaneOutcome] = field(default_factory=dict)
    lacking: dict[tuple[int, Lane], str] = field(default_factory=dict)
    records: dict[int, list[Record]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)

    def run(self) -> None:
        """Test releases until every border is found."""
        while places := self.search.next():
            by_version = {self.search.versions[place]: place for place in places}
            self.watch.round(list(by_version), self.search.left(), sweeping=self.search.sweeping)
            self._try(by_version)

    def _try(self, places: Mapping[str, int]) -> None:
        """Test several releases together; `places` is by version."""
        planned = self.axis.plan(list(places))
        for version, place in places.items():
            if not planned.cells.get(version):
                self.reasons[place] = planned.reasons.get(version, "none of its cells was chosen")
                self._add(place, {})
        cells = [cell for of_it in planned.cells.values() for cell in of_it]
        place_of = {cell.id: places[version] for version, of_it in planned.cells.items() for cell in of_it}
        left = {places[version]: {cell.id for cell in of_it} for version, of_it in planned.cells.items()}
        found: dict[int, dict[Lane, LaneOutcome | None]] = {place: {} for place in left}
        context = self.install(cells, planned.context)
        with Run(context, self.jobs or usable_cores()) as run, self._written(cells, context) as writer:
            for cell, record in self._results(run, cells):
                place, lane = place_of[cell.id], Lane.of(record, self.axis.place)
                found[place][lane] = outcome_of(record)
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
        planned = []
        for cell in cells:
            resolved = run.resolver.resolve(cell)
            if not isinstance(resolved, Result) and (record := self.kept.answer(cell)):
                yield cell, record
            else:
                planned.append(cell)
        for result in run.results(planned):
            record = result.record(name)
            self.kept.append(record)
            yield result.cell, record

    def _end(self, place: int, found: dict[Lane, LaneOutcome | None]) -> None:
        self.outcomes |= {(place, lane): seen for lane, seen in found.items() if seen is not None}
        if not any(found.values()):
            self.reasons[place] = next((each["reason"] for each in self.records[place]), "it has no cells")
        self._add(place, found)

    def _add(self, place: int, found: dict[Lane, LaneOutcome | None]) -> None:
        self.search.add(place, {lane: outcome and outcome.key for lane, outcome in found.items()})
        text = ", ".join(dict.fromkeys(outcome.brief for outcome in found.values() if outcome))
        self.watch.tried(self.search.versions[place], text or f"not tried: {self.reasons[place]}", self.search.left())

    @contextlib.contextmanager
    def _written(self, cells: Sequence[Cell], context: RunContext) -> Iterator[RecordWriter | None]:
        """Open the user's file of records, which keeps those of earlier rounds."""
        if self.out is None:
            yield None
            return
        plan = make_plan(
            cells, run=uuid.uuid4().hex[:12], environment=context.environment.name, argv=sys.argv[1:], commit=this_commit()
        )  # fmt: skip
        with RecordWriter(self.out, plan) as writer:
            yield writer
