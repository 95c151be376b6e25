"""Measure the cost of a cell without its compiler, for 100 to 100,000 cells, on threads of a process and on local Dask workers.

The compiler is a fake that answers in 0 ms. Everything else is the real run: cells become tasks, go to runners or workers, return, are
judged, and become records. The benchmark measures the overhead that limits the number of cells of a run, not compilers.

growth.py --json growth.json --chart docs/growth.svg
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from harness.cluster.client import Cluster
from harness.cluster.worker import EnginePlugin, WorkerResults
from harness.engine.executor import ThreadExecutor
from harness.engine.machine import Need
from harness.engine.prepared import PreparedCell, Result
from harness.model import Case, Cell, Outcome, Stage, Status, Target, Toolchain, ToolkitRef, Variant
from harness.records import RecordWriter, make_plan

_TARGETS = [Target.parse(f"sm_{number}") for number in (75, 80, 86, 89, 90, 100, 103, 110, 120, 121)]
_RELEASES = [f"12.{minor}" for minor in range(10)]
MADE_UP = Outcome(
    status=Status.BUILT, stage=Stage.ASSEMBLE, stages=(Stage.COMPILE, Stage.ASSEMBLE), seconds=0.0, log="made up\n" * 20,
    notes=("made up: no compiler was asked",),
)  # fmt: skip


class MadeUpEngine:
    """An engine that answers immediately."""

    def run(self, cells: Sequence[Cell]) -> WorkerResults:
        return WorkerResults(results=[(MADE_UP, False, f"{hash(cell.id):064x}") for cell in cells])

    def close(self) -> None:
        """Do nothing: the engine has no processes."""


class MadeUpPlugin(EnginePlugin):
    """A plugin that gives workers a `MadeUpEngine`."""

    def setup(self, worker: Any) -> None:
        self.engine = cast("Any", MadeUpEngine())


def cells_of(count: int) -> list[Cell]:
    """Return this number of cells: 100 per variant, over ten releases and ten targets, and 10,000 per case."""
    found: list[Cell] = []
    while len(found) < count:
        name = f"made-up/case-{len(found) // 10_000}"
        case = Case(name=name, path=Path(name), title=name, sources={"cuda": Path("kernel.cu")}, variants=())
        for number in range(100):
            variant = Variant(labels={"n": number}, definitions={"n": number})
            for release in _RELEASES:
                toolkit = ToolkitRef(release=release, headers=release)
                toolchain = Toolchain(backend="nvrtc", library="", toolkit=toolkit, environment="made-up")
                found += [Cell(case=case, variant=variant, toolchain=toolchain, target=target) for target in _TARGETS]
    return found[:count]


def on_threads(cells: Sequence[Cell], threads: int) -> Iterator[Result]:
    """Run the cells through the queue of a run on one machine."""
    resolver: Any = argparse.Namespace(
        context=argparse.Namespace(
            request=argparse.Namespace(total_memory=1 << 40), devices=argparse.Namespace(items=()), trace=None
        )
    )
    executor = ThreadExecutor(resolver, threads)
    for runner in executor.runners:
        done = runner.done
        runner.run = lambda prepared, done=done: done(
            Result(prepared.cell, MADE_UP, key=f"{hash(prepared.cell.id):064x}")
        )  # type: ignore[method-assign, misc]
    nothing: Any = None
    try:
        yield from executor.run([PreparedCell(cell, nothing, nothing, nothing, "", Need(1 << 28)) for cell in cells])
    finally:
        executor.close()


def on_workers(cells: Sequence[Cell], cluster: Cluster) -> Iterator[Result]:
    """Run the cells through Dask."""
    for done in cluster.run([(cell, Need(1 << 28)) for cell in cells]):
        assert done.answer is not None
        for cell, (outcome, cached, key) in zip(done.task.cells, done.answer.results, strict=True):
            yield Result(cell, outcome, cached, key)


def measure(results: Iterator[Result], cells: Sequence[Cell], folder: Path) -> dict[str, float]:
    """Return the milliseconds per cell from the first cell to the last record: wall time, and processor time of the scheduler (this process)."""
    wall, processor = time.perf_counter(), time.process_time()
    plan = make_plan(cells, run="made-up", environment="made-up", commit="")
    count = 0
    with RecordWriter(folder / f"{len(cells)}.jsonl", plan, fresh=True) as writer:
        for result in results:
            writer.append(result.record("made-up"))
            count += 1
    assert count == len(cells)
    return {
        "ms_a_cell": 1000 * (time.perf_counter() - wall) / count,
        "processor_ms_a_cell": 1000 * (time.process_time() - processor) / count,
    }


def chart(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the processor time per cell over the number of cells, with a line for each number of workers."""
    import pandas as pd

    from harness.report.plots import lines

    table = pd.DataFrame(rows).pivot_table(index="workers", columns="cells", values="processor_ms_a_cell")
    table.index = [f"{count} Dask workers" if count else "threads of one process" for count in table.index]
    title = "What a cell costs the scheduler, with a made-up compiler that answers at once"
    path.write_text(
        lines(table, [f"{count:,}" for count in table.columns], "cells", "ms of processor time a cell", title), "utf-8"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", default="100,1000,10000,100000")
    parser.add_argument("--workers", default="0,1,2,4", help="Dask workers; 0 is threads of one process")
    parser.add_argument("--json", type=Path, help="also to go on from: what is in it is not measured again")
    parser.add_argument("--chart", type=Path)
    args = parser.parse_args()
    counts = [int(word) for word in args.cells.split(",")]
    rows: list[dict[str, Any]] = json.loads(args.json.read_text()) if args.json and args.json.is_file() else []
    there = {(row["workers"], row["cells"]) for row in rows}
    with tempfile.TemporaryDirectory(prefix="cumatrix-growth-") as name:
        for workers in map(int, args.workers.split(",")):
            if all((workers, count) in there for count in counts):
                continue
            cluster = Cluster(f"local:{workers}", workers) if workers else None
            try:
                if cluster:
                    cluster.client.wait_for_workers(workers, timeout=120)
                    cluster._begun = True
                    cluster.client.register_plugin(MadeUpPlugin(cluster._name, cast("Any", None)), name=cluster._name)
                    list(on_workers(cells_of(10 * workers), cluster))  # workers import cumatrix with their first task
                for count in counts:
                    if (workers, count) in there:
                        continue
                    cells = cells_of(count)
                    results = on_workers(cells, cluster) if cluster else on_threads(cells, os.cpu_count() or 1)
                    rows.append({"workers": workers, "cells": count, **measure(results, cells, Path(name))})
                    print(
                        "  ".join(
                            f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}"
                            for key, value in rows[-1].items()
                        ),
                        flush=True,
                    )
            finally:
                if cluster:
                    cluster.close()
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    if args.chart:
        chart(rows, args.chart)
    return 0


if __name__ == "__main__":
    sys.exit(main())
