"""Runs cells with progress, records and a summary: what ``run`` and ``try`` have in common."""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from harness.cli.kept import KeptRecords, without_log
from harness.cli.progress import Compiling
from harness.cli.show import show_summary
from harness.cli.terminal import console_for, say_json
from harness.diagnostics import clean, one_line
from harness.engine.away import AwayRun
from harness.engine.cluster import Cluster
from harness.engine.context import RunContext
from harness.engine.cores import usable_cores
from harness.engine.earlier import Earlier
from harness.engine.result import Result
from harness.engine.run import Run
from harness.engine.session import record_of
from harness.engine.shards import cost_of
from harness.engine.unanswered import RequestedName, unanswered, without_answer
from harness.matrix.kinds import kind_of
from harness.model import Cell, Status
from harness.records import Record, RecordWriter, make_plan, this_commit
from harness.records.programs import identity
from harness.records.remarks import Neighbours


def perform(
    cells: Sequence[Cell],
    context: RunContext,
    *,
    out: Path | None,
    as_json: bool,
    jobs: int | None,
    fresh: bool = False,
    table: bool = False,
    asked: Sequence[RequestedName] = (),
    shard: Mapping[str, Any] | None = None,
    cluster: Cluster | None = None,
) -> int:
    """Run cells; returns the exit code.

    Records go to `out` as cells finish, and to stdout where `as_json` asks for that. Everything else goes to stderr, and with it
    what was `asked` for by name and got no answer. Cells are compiled on this machine, or by a `cluster`.
    """
    console = console_for(sys.stderr)
    run_id = uuid.uuid4().hex[:12]
    plan = make_plan(cells, run=run_id, environment=context.name, argv=sys.argv[1:], commit=this_commit(), shard=shard)
    records = KeptRecords()
    count = 0
    taken, missed = Counter[str](), Counter[str]()
    neighbours = Neighbours(cells)
    statuses: set[str] = set()
    keys: list[str] = []
    unexpected, interrupted = 0, False
    terminal = console.is_terminal
    runners = jobs or usable_cores()
    begun = AwayRun(context, cluster) if cluster else Run(context, runners)
    with begun as run, contextlib.ExitStack() as stack:
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
            record = record_of(result, run_id)
            kind = kind_of(record)
            count += 1
            statuses.add(record["status"])
            keys.append(record["fingerprint"])
            unexpected += not kind.as_expected
            if isinstance(context.cache, Earlier) and not result.cached and result.outcome.status.answered:
                missed[context.cache.why_not(*identity(record))] += 1
            taken[result.taken_from] += 1
            if writer:
                writer.append(record)
            # Of a run of many cells, logs are most of what there is to hold back.
            complete(neighbours.add(record if as_json else without_log(record)))
            if terminal:
                letter = kind.letter_in(console.encoding)
                compiled = bool(record["seconds"]) and not result.cached
                progress.done(result.cell, f"{letter} {record['cell']}", compiled=compiled)
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
    show_summary(console, records, planned=len(cells), table=table)
    silence = "" if interrupted else without_answer(records)
    for sentence in [silence] if silence or interrupted else unanswered(asked, records):
        if sentence:
            console.print(Text(one_line(sentence, 500), "bold yellow"), soft_wrap=True)
    for text in cluster.told if cluster else ():
        console.print(clean(f"cumatrix: {text}"), markup=False, soft_wrap=True)
    for why, count in run.resolver.finisher.unkept.most_common(3):
        console.print(
            clean(f"not kept for later runs ({count} of {len(records)} cells): {why}"), markup=False, soft_wrap=True
        )
    for sentence in context.artifacts.problems if context.artifacts else ():
        console.print(clean(sentence), markup=False, soft_wrap=True)
    for where, count in taken.items():
        if where:
            console.print(clean(f"taken from {where}: {count} of {len(records)} cells"), markup=False, soft_wrap=True)
    for why, count in missed.most_common():
        if why:
            console.print(clean(f"not taken ({count} of {len(records)} cells): {why}"), markup=False, soft_wrap=True)
    if writer:
        kept = f", which keeps {writer.kept} of earlier runs" if writer.kept else ""
        console.print(f"records: {out}{kept}", markup=False, soft_wrap=True)
    if interrupted:
        console.print("interrupted: what finished is kept", markup=False)
        return 130
    return exit_code(statuses, unexpected=unexpected, answered=not silence)


def exit_code(statuses: Container[str], *, unexpected: int, answered: bool) -> int:
    """The exit code of a run that came to its end.

    Parameters
    ----------
    statuses : container of str
        Statuses that its cells have.
    unexpected : int
        Number of cells that are not as expected.
    answered : bool
        A compiler answered at least one cell.
    """
    if Status.UNAVAILABLE in statuses:
        return 4
    if unexpected:
        return 1
    return 0 if answered else 3
