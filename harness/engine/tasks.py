"""Cells as tasks for a cluster: few enough that the cluster keeps up, and small enough that little is lost with a worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.engine.needs import Need
from harness.engine.shards import cost_of
from harness.model import Cell, Toolchain

if TYPE_CHECKING:
    from harness.engine.machine import WorkerResults

_SECONDS = 2.0
"""What the cells of one task may take together: so much is done again where a worker is lost, and is waited for at the end."""
_CELLS = 50
_TASKS = 8  # for each core at least, so that all end together


@dataclass(frozen=True)
class Task:
    """Cells of one toolchain, which one worker compiles one after another."""

    cells: tuple[Cell, ...]
    memory: int


@dataclass(frozen=True)
class Done:
    """What became of a task: an answer, or what the cluster says in its place."""

    task: Task
    answer: WorkerResults | None
    problem: str = ""


def tasks_of(
    cells: Sequence[tuple[Cell, Need]], slots: int, seconds: Callable[[Cell], float] | None = None
) -> list[Task]:
    """Cells as tasks: each of one toolchain, long ones first, and enough of them that all workers end together.

    Parameters
    ----------
    cells : sequence of tuple
        With what each may need.
    slots : int
        How many are compiled at a time.
    seconds : callable, optional
        What a cell takes of which nothing was ever seen.
    """
    guess = seconds or _guess
    times = {id(cell): need.seconds or guess(cell) for cell, need in cells}
    budget = min(_SECONDS, sum(times.values()) / (slots * _TASKS))
    # A toolchain may be wanted by many: its tasks stand together, so that fork servers are kept.
    rank: defaultdict[Toolchain, float] = defaultdict(float)
    for cell, _ in cells:
        rank[cell.toolchain] += times[id(cell)]
    found: list[Task] = []
    ordered = sorted(cells, key=lambda pair: (-rank[pair[0].toolchain], pair[0].toolchain.name, -times[id(pair[0])]))
    held: list[Cell] = []
    memory, took = 0, 0.0
    for cell, need in ordered:
        if held and (cell.toolchain != held[0].toolchain or took + times[id(cell)] > budget or len(held) >= _CELLS):
            found.append(Task(tuple(held), memory))
            held, memory, took = [], 0, 0.0
        held.append(cell)
        memory, took = max(memory, need.memory), took + times[id(cell)]
    return [*found, Task(tuple(held), memory)] if held else found


def _guess(cell: Cell) -> float:
    return cost_of(cell, {})
