"""Cells whose tasks were lost with one worker after another: each alone on a worker tells which of them takes workers with it.

Where a worker is lost, Dask holds that against every task that it was given, those that only waited there among them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from harness.engine.tasks import Done, Task

_ALONE = 2
"""Workers that a cell may take with it where nothing else runs; one may be lost by chance."""
_LOOK = 0.5  # seconds
WHY = "one worker after another was lost while this cell ran there"


class Workers(Protocol):
    """What is asked of a cluster."""

    def workers(self) -> Mapping[str, Any]:
        """Those that are there, by address."""

    def runs(self, task: Task, worker: str) -> bool:
        """Whether a worker has what a task needs."""

    def submit(self, task: Task, worker: str = "") -> Any:
        """Hand a task out, to one worker alone where it is named; returns its future."""

    def forget(self, future: Any) -> None:
        """Nobody waits for a task any more."""

    def ended(self, seconds: float) -> tuple[Task, Any] | None:
        """The next task that has ended; None where none has within that time."""

    def answer(self, task: Task, future: Any) -> Done | None:
        """What came of a task that has ended; None where that was lost with its worker."""


def one_by_one(cluster: Workers, tasks: Iterable[Task]) -> Iterator[Done]:
    """What comes of tasks of one cell each, no two of them on the same worker at a time."""
    waiting = deque(tasks)
    lost: Counter[str] = Counter()  # by the name of the cell
    at: dict[str, tuple[Task, Any]] = {}
    while waiting or at:
        there = cluster.workers()
        for worker in [worker for worker in at if worker not in there]:
            task, future = at.pop(worker)
            cluster.forget(future)
            name = task.cells[0].id
            lost[name] += 1
            if lost[name] < _ALONE:
                waiting.append(task)
            else:
                yield Done(task, None, WHY)
        for worker in there:
            fitting = next((task for task in waiting if cluster.runs(task, worker)), None)
            if worker not in at and fitting:
                waiting.remove(fitting)
                at[worker] = (fitting, cluster.submit(fitting, worker))
        if there and not at:
            yield from (Done(task, None, WHY) for task in waiting)  # the workers that had what they need are gone
            return
        found = cluster.ended(_LOOK)
        for worker, (task, future) in list(at.items()):
            if found and found[1] is future and (done := cluster.answer(task, future)):
                del at[worker]
                cluster.forget(future)
                yield done
