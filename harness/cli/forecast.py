"""``cumatrix run --dry-run``: what a run would do, and how long it may take; nothing is compiled."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from harness.cli.terminal import console_for, say_json
from harness.engine.context import RunContext
from harness.engine.cores import usable_cores
from harness.engine.install import missing
from harness.engine.memory import available
from harness.engine.result import PreparedCell
from harness.engine.run import Run
from harness.engine.shards import cost_of
from harness.model import Cell


@dataclass(frozen=True)
class Forecast:
    """What a run would do.

    Parameters
    ----------
    cells : int
        All of them.
    cached : int
        Answered by earlier runs.
    compile : int
        Left for compilers.
    to_install : list of str
        What the run would install first, for some of those: ``CUDA 12.4``.
    known : int
        Those of them whose time and memory were seen before, with any architecture.
    unsupported, unavailable : int
        Not applicable; without a part that was asked for.
    jobs : int
        How many at a time.
    processor_seconds : float
        What all compilers together may take.
    seconds : float
        What that makes on the wall.
    memory_bytes, memory_available_bytes : int
        What the largest cells that run together may need, and what there is.
    backends : dict of str to int
        Cells to compile by backend.
    missing : dict of str to int
        What is not there, in words, and for how many cells.
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


def forecast(cells: Sequence[Cell], context: RunContext, *, jobs: int | None, as_json: bool) -> int:
    """Say what a run of these cells would do; returns the exit code, 4 where a part that was asked for is not there."""
    with Run(context, 1) as run:
        found = _of(cells, run, jobs or usable_cores())
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
        # What earlier runs know of it, is known once its parts are there.
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
    seconds = [need.seconds or cost_of(cell, {}) for cell, need in needs]
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
        memory_available_bytes=run.context.memory or available(),
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
        ("not applicable", f"{found.unsupported}"),
        ("not available", f"{found.unavailable}"),
        ("to compile", f"{found.compile}" + (f" ({by_backend})" if by_backend else "")),
        ("to install first", ", ".join(found.to_install) or "nothing"),
        ("seen before", f"{found.known} of these, with this or another architecture; the others are guessed"),
        ("compilers' time", _span(found.processor_seconds)),
        (f"time, {found.jobs} at a time", f"about {_span(found.seconds)}"),
        ("memory", f"{found.memory_bytes / 2**30:.1f} GiB of {found.memory_available_bytes / 2**30:.1f} GiB"),
    ]
    for name, value in rows:
        table.add_row(name, Text(value))
    console.print(table)
    for reason, count in found.missing.items():
        console.print(Text(f"{count} cells: {reason}"), soft_wrap=True)
    if found.unsupported == 0 and found.compile:
        console.print(
            Text(
                "Which architectures a compiler knows, and so which cells are not applicable, is asked when it first runs."
            ),
            soft_wrap=True,
        )


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
