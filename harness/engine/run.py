"""Runs many cells over several runners."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Sequence

from harness.engine.context import RunContext
from harness.engine.runner import Finished, Runner
from harness.model import Cell, Outcome, Toolchain


def run_cells(cells: Sequence[Cell], context: RunContext, jobs: int, finished: Finished) -> None:
    """Run cells; what needs no compiler first, the rest on `jobs` runners.

    A runner stays with one toolchain while it has cells, so that worker processes are started rarely.
    On an interruption every worker and compiler is ended before the exception goes on.

    Parameters
    ----------
    cells : sequence of Cell
        What to run.
    workshop : Workshop
        Shared state.
    jobs : int
        Number of runners.
    finished : callable
        Called in this thread for each cell as it finishes.
    """
    waiting = []
    for cell in cells:
        known = context.answer(cell)
        if known:
            finished(cell, *known)
        else:
            waiting.append(cell)
    if not waiting:
        return
    work = _Queue(waiting)
    results: queue.SimpleQueue[tuple[Cell, tuple[Outcome, bool, str]] | BaseException] = queue.SimpleQueue()
    runners = [Runner(context) for _ in range(min(jobs, len(waiting)))]
    threads = [threading.Thread(target=_serve, args=(runner, work, results), daemon=True) for runner in runners]
    try:
        for thread in threads:
            thread.start()
        for _ in waiting:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            cell, outcome = result
            finished(cell, *outcome)
    finally:
        work.stop()
        for runner in runners:
            runner.close()
        for thread in threads:
            thread.join(10)


class _Queue:
    """Cells by toolchain; each runner empties one before it takes another, and helps with the longest at the end."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._groups: dict[Toolchain, deque[Cell]] = {}
        for cell in cells:
            self._groups.setdefault(cell.toolchain, deque()).append(cell)
        self._taken: dict[Toolchain, int] = dict.fromkeys(self._groups, 0)
        self._lock = threading.Lock()

    def next(self, current: Toolchain | None) -> Cell | None:
        with self._lock:
            if current is not None and self._groups.get(current):
                return self._groups[current].popleft()
            if current is not None:
                self._taken[current] -= 1
            left = [toolchain for toolchain, group in self._groups.items() if group]
            if not left:
                return None
            chosen = min(left, key=lambda toolchain: (self._taken[toolchain], -len(self._groups[toolchain])))
            self._taken[chosen] += 1
            return self._groups[chosen].popleft()

    def stop(self) -> None:
        with self._lock:
            self._groups.clear()


def _serve(runner: Runner, work: _Queue, results: queue.SimpleQueue) -> None:
    current: Toolchain | None = None
    try:
        while not runner.closed and (cell := work.next(current)) is not None:
            current = cell.toolchain
            results.put((cell, runner.run(cell)))
    except BaseException as error:
        if not runner.closed:  # a runner that was closed under its cell has nothing to say
            results.put(error)
    finally:
        runner.close()
