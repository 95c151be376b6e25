"""Execution of cells with progress, records and a summary, for ``run`` and ``try``."""

from __future__ import annotations

import contextlib
import marshal
import sys
import uuid
import zlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import overload

from rich.table import Table
from rich.text import Text

from harness.cli.progress import Compiling
from harness.cli.selection import Selection
from harness.cli.summary import letter, show_summary
from harness.cli.terminal import console_for, say_json
from harness.diagnostics import clean, one_line, telling_part
from harness.engine.executor import Run
from harness.engine.install import missing
from harness.engine.machine import available, usable_cores
from harness.engine.plan import cost_of
from harness.engine.prepared import PreparedCell, Result
from harness.engine.proof import unanswered, without_answer
from harness.matrix.marks import KINDS, kind_of
from harness.model import Cell, Status
from harness.protocol.text import counted
from harness.records import Record, RecordWriter, make_plan, this_commit
from harness.records.failures import Neighbours
from harness.records.merge import identity

_BLOCK = 64
"""Records per compressed block. Similar records together take a tenth of the space and the time."""


_UNREAD = ("title", "features", "links", "toolchain", "command", "device")
"""Most keys of an expected record: a summary does not read them."""


_LOG = 4000
"""Maximum characters of an unexpected record's log: a known cause may depend on the text around the message."""


def without_log(record: Record) -> Record:
    """Return a record with the part of its log that a summary reads."""
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else ""
    excerpt = telling_part(first, record["log"])
    return {**record, "log": excerpt if excerpt or kind_of(record).as_expected else record["log"][:_LOG]}


def _for_summary(record: Record) -> Record:
    short = without_log(record)
    if kind_of(record).as_expected:
        for key in _UNREAD:
            del short[key]  # type: ignore[misc]
    return short


class KeptRecords(Sequence[Record]):
    """Records in order of arrival, reduced to the keys that a summary reads.

    Unexpected records are complete except for the ends of their logs. Records are compressed in blocks: one takes a few
    hundred bytes instead of 8 KiB. Iterate once; random access decompresses a block each time.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._last: list[Record] = []

    def append(self, record: Record) -> None:
        """Add a record."""
        self._last.append(_for_summary(record))
        if len(self._last) == _BLOCK:
            self._packed.append(zlib.compress(marshal.dumps(self._last), level=1))
            self._last = []

    def __len__(self) -> int:
        return len(self._packed) * _BLOCK + len(self._last)

    def __iter__(self) -> Iterator[Record]:
        for number in range(len(self._packed)):
            yield from self._block(number)
        yield from self._last

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return list(self)[place]
        number = range(len(self))[place]
        return self._block(number // _BLOCK)[number % _BLOCK]

    def _block(self, number: int) -> list[Record]:
        """Return a block; the last block is not compressed yet."""
        if number == len(self._packed):
            return self._last
        # Only this process writes the blocks, and marshal is ten times as fast as JSON.
        block: list[Record] = marshal.loads(zlib.decompress(self._packed[number]))  # noqa: S302
        return block


def perform(
    selection: Selection, run: Run, *, out: Path | None, as_json: bool, fresh: bool = False, table: bool = False
) -> int:
    """Run the selected cells and return the exit code.

    Parameters
    ----------
    selection : Selection
        The cells, and the requested names that need a compiler's result.
    run : Run
        Executor of the cells, local or on a cluster.
    out : Path or None
        File that receives each record as its cell finishes.
    as_json : bool
        Print records to stdout; everything else goes to stderr.
    fresh : bool
        Drop earlier records from `out`.
    table : bool
        Show the matrix.
    """
    console, context, cells = console_for(sys.stderr), run.context, selection.cells
    run_id = uuid.uuid4().hex[:12]
    plan = make_plan(
        cells, run=run_id, environment=context.name, argv=sys.argv[1:], commit=this_commit(), shard=selection.shard
    )
    records = KeptRecords()
    count = 0
    taken, missed = Counter[str](), Counter[str]()
    neighbours = Neighbours(cells)
    statuses: set[str] = set()
    keys: list[str] = []
    unexpected, interrupted = 0, False
    terminal = console.is_terminal
    runners = context.request.jobs or usable_cores()
    with run, contextlib.ExitStack() as stack:
        writer = stack.enter_context(RecordWriter(out, plan, fresh=fresh)) if out else None
        needs = run.resolver.needs
        progress = stack.enter_context(
            Compiling(console, cells, lambda cell: needs.of(cell).seconds or cost_of(cell, {}), runners)
        )

        def complete(found: Iterable[Record]) -> None:
            for record in found:
                records.append(record)
                if as_json:
                    say_json(record)

        def finished(result: Result) -> None:
            nonlocal count, unexpected
            record = result.record(run_id)
            kind = kind_of(record)
            count += 1
            statuses.add(record["status"])
            keys.append(record["fingerprint"])
            unexpected += not kind.as_expected
            if context.cache and not result.cached and result.outcome.status.answered:
                missed[context.cache.why_not(*identity(record))] += 1
            taken[result.taken_from] += 1
            if writer:
                writer.append(record, together=result.cached)
            # In a run of many cells, logs take most of the memory.
            complete(neighbours.add(record if as_json else without_log(record)))
            if terminal:
                compiled = bool(record["seconds"]) and not result.cached
                progress.done(result.cell, f"{letter(kind, console)} {record['cell']}", compiled=compiled)
            elif count % 100 == 0:
                console.print(f"{count}/{len(cells)} cells", markup=False)

        try:
            for result in run.results(cells):
                with context.trace.span("record"):
                    finished(result)
        except KeyboardInterrupt:
            interrupted = True
        complete(neighbours.rest())
        if writer:
            writer.remarks = neighbours.found
            writer.inputs = run.inputs(keys)
    show_summary(console, records, planned=len(cells), table=table, again=selection.again)
    silence = "" if interrupted else without_answer(records)
    for sentence in [silence] if silence or interrupted else unanswered(selection.requested, records):
        if sentence:
            console.print(Text(one_line(sentence, 500), "bold yellow"), soft_wrap=True)
    for sentence in (*_notes(run, len(records), taken, missed), *beyond_builds(cells)):
        console.print(clean(sentence), markup=False, soft_wrap=True)
    if writer:
        kept = f", which keeps {writer.kept} of earlier runs" if writer.kept else ""
        console.print(f"records: {out}{kept}", markup=False, soft_wrap=True)
    if interrupted:
        console.print("interrupted: what finished is kept", markup=False)
        return 130
    if selection.left_out:
        statuses.add(Status.UNAVAILABLE)
    return exit_code(statuses, unexpected=unexpected, answered=not silence)


def _notes(run: Run, total: int, taken: Counter[str], missed: Counter[str]) -> Iterator[str]:
    """Yield sentences on cells whose results were not stored, or came from elsewhere."""
    yield from (f"cumatrix: {text}" for text in run.notes)
    for why, count in run.resolver.finisher.unkept.most_common(3):
        yield f"not kept for later runs ({count} of {total} cells): {why}"
    yield from run.context.artifacts.problems if run.context.artifacts else ()
    yield from (f"taken from {where}: {count} of {total} cells" for where, count in taken.items() if where)
    yield from (f"not taken ({count} of {total} cells): {why}" for why, count in missed.most_common() if why)


def exit_code(statuses: Container[str], *, unexpected: int, answered: bool) -> int:
    """Return the exit code of a completed run."""
    if Status.UNAVAILABLE in statuses:
        return 4
    if unexpected:
        return 1
    return 0 if answered else 3


def beyond_builds(cells: Iterable[Cell]) -> Iterator[str]:
    """Yield a sentence on targets that the projects' own builds do not ship, by the targets that they ship."""
    found: dict[tuple[str, ...], dict[str, None]] = {}
    for cell in cells:
        target = str(cell.target)
        if cell.case.ships and target not in cell.case.ships:
            found.setdefault(cell.case.ships, {})[target] = None
    for ships, targets in found.items():
        yield f"{', '.join(targets)}: not in the project's own build, which ships {', '.join(ships)}"


@dataclass(frozen=True)
class Forecast:
    """The estimate of a run.

    Parameters
    ----------
    cells : int
        Number of all cells.
    cached : int
        Cells with results of earlier runs.
    compile : int
        Cells to compile.
    to_install : list of str
        Parts to install first: ``CUDA 12.4``.
    known : int
        Cells to compile with measured time and memory, for this or another architecture.
    unsupported, unavailable : int
        Cells that are not applicable, and cells without a requested part.
    jobs : int
        Number of concurrent cells.
    processor_seconds : float
        Estimated total time of all compilers, in seconds.
    seconds : float
        Estimated elapsed time, in seconds.
    memory_bytes, memory_available_bytes : int
        Estimated memory of the largest concurrent cells, and the available memory, in bytes.
    backends : dict of str to int
        Cells to compile by backend.
    missing : dict of str to int
        Number of cells by reason of a missing part.
    """

    cells: int
    cached: int
    compile: int
    to_install: list[str]
    known: int
    unsupported: int
    unavailable: int
    jobs: int
    processor_seconds: float
    seconds: float
    memory_bytes: int
    memory_available_bytes: int
    backends: dict[str, int]
    missing: dict[str, int]


def forecast(selection: Selection, *, as_json: bool) -> int:
    """Print the estimate of a run and return the exit code: 4 if a requested part is missing."""
    with Run(selection.context, 1) as run:
        found = _of(selection.cells, run, selection.context.request.jobs or usable_cores())
    if as_json:
        say_json(asdict(found))
    else:
        _show(found)
    return 4 if found.unavailable else 0


def _of(cells: Sequence[Cell], run: Run, jobs: int) -> Forecast:
    absent = missing(cells, run.context)
    unknown: list[Cell] = []
    statuses: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    prepared: list[PreparedCell] = []
    cached = 0
    there: list[Cell] = []
    for cell in cells:
        # Results of earlier runs are known only after the installation of a cell's parts.
        (unknown if absent and missing([cell], run.context) else there).append(cell)
    for resolved in run.resolver.resolve_all(there):
        if isinstance(resolved, PreparedCell):
            prepared.append(resolved)
        elif resolved.cached:
            cached += 1
        else:
            statuses[resolved.outcome.status] += 1
            if resolved.outcome.status == "unavailable":
                reasons[resolved.outcome.reason] += 1
    needs = [(each.cell, each.need) for each in prepared] + [(cell, run.resolver.needs.of(cell)) for cell in unknown]
    seconds = [run.resolver.needs.seconds(cell) for cell, _ in needs]
    largest = sorted((need.memory for _, need in needs), reverse=True)[:jobs]
    return Forecast(
        cells=len(cells),
        cached=cached,
        compile=len(needs),
        to_install=str(absent).split(", ") if absent else [],
        known=sum(need.seconds > 0 for _, need in needs),
        unsupported=statuses["unsupported"],
        unavailable=statuses["unavailable"],
        jobs=jobs,
        processor_seconds=round(sum(seconds), 3),
        seconds=round(max(sum(seconds) / jobs, max(seconds, default=0.0)), 3),
        memory_bytes=sum(largest),
        memory_available_bytes=run.context.request.total_memory or available(),
        backends=dict(Counter(cell.toolchain.backend for cell, _ in needs)),
        missing=dict(reasons),
    )


def _show(found: Forecast) -> None:
    console = console_for(sys.stdout)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    by_backend = ", ".join(f"{name} {count}" for name, count in found.backends.items())
    rows = [
        ("cells", f"{found.cells}"),
        ("answered by earlier runs", f"{found.cached}"),
        (KINDS["unsupported"].word, f"{found.unsupported}"),
        (KINDS["unavailable"].word, f"{found.unavailable}"),
        ("to compile", f"{found.compile}" + (f" ({by_backend})" if by_backend else "")),
        ("to install first", ", ".join(found.to_install) or "nothing"),
        (
            "seen before",
            f"{found.known} of these, with this or another architecture; the others take the mean of their folder, or are guessed",
        ),
        ("compilers' time", _span(found.processor_seconds)),
        (f"time, {found.jobs} at a time", f"about {_span(found.seconds)}"),
        ("memory", f"{found.memory_bytes / 2**30:.1f} GiB of {found.memory_available_bytes / 2**30:.1f} GiB"),
    ]
    for name, value in rows:
        table.add_row(name, Text(value))
    console.print(table)
    for reason, count in found.missing.items():
        console.print(Text(f"{counted(count, 'cell')}: {reason}"), soft_wrap=True)
    if found.unsupported == 0 and found.compile:
        console.print(
            Text(
                "Each compiler lists its architectures when it first runs; only then are cells known to be not applicable."
            ),
            soft_wrap=True,
        )


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
