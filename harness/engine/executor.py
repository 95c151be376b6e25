"""Runs many prepared cells: an executor takes them and gives results as they finish. Threads of this process are the first kind."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from harness.engine.devices import DevicePool
from harness.engine.memory import Memory, available
from harness.engine.resolve import Resolver
from harness.engine.result import PreparedCell, Result
from harness.engine.runner import Runner
from harness.model import Toolchain


class Executor(Protocol):
    """Where prepared cells are compiled; what goes in and what comes out can be pickled."""

    def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
        """Results as they finish, in whatever order; may be called again when they all have."""

    def close(self) -> None:
        """End every process that was started; a `run` that is under way ends with it."""


class ThreadExecutor:
    """Runs cells in worker processes of this machine, each runner in a thread of its own.

    A runner stays with one toolchain while it has cells, so that fork servers are started rarely.

    Parameters
    ----------
    resolver : Resolver
        Of the run.
    jobs : int
        Number of runners.
    keep : int
        How many fork servers each runner keeps for further cells.
    """

    def __init__(self, resolver: Resolver, jobs: int = 1, keep: int = 1) -> None:
        context = resolver.context
        memory, devices = Memory(context.memory or available()), DevicePool(context.devices)
        self.runners = [Runner(resolver, memory, devices, keep) for _ in range(jobs)]

    def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
        """Results as they finish; where whoever asks stops listening, what is under way is ended."""
        work = _Queue(cells)
        results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        runners = self.runners[: len(cells)]
        threads = [threading.Thread(target=_serve, args=(runner, work, results), daemon=True) for runner in runners]
        left = len(cells)
        try:
            for thread in threads:
                thread.start()
            while left:
                result = results.get()
                if isinstance(result, BaseException):
                    raise result
                left -= 1
                yield result
        finally:
            work.stop()
            if left:
                self.close()
            for thread in threads:
                thread.join(10)

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        for runner in self.runners:
            runner.close()


class _Queue:
    """Cells by toolchain; each runner empties one before it takes another, and helps with the longest at the end."""

    def __init__(self, cells: Sequence[PreparedCell]) -> None:
        self._groups: dict[Toolchain, deque[PreparedCell]] = {}
        for each in cells:
            self._groups.setdefault(each.cell.toolchain, deque()).append(each)
        self._taken: dict[Toolchain, int] = dict.fromkeys(self._groups, 0)
        self._lock = threading.Lock()

    def next(self, current: Toolchain | None) -> PreparedCell | None:
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


def _serve(runner: Runner, work: _Queue, results: queue.SimpleQueue[Result | BaseException]) -> None:
    current: Toolchain | None = None
    try:
        while not runner.closed and (prepared := work.next(current)) is not None:
            current = prepared.cell.toolchain
            results.put(runner.run(prepared))
    except BaseException as error:
        if not runner.closed:  # a runner that was closed under its cell has nothing to say
            results.put(error)
