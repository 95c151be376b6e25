"""Runs many prepared cells: an executor takes them and gives results as they finish. Threads of this process are the first kind."""

from __future__ import annotations

import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from harness.engine.devices import DevicePool
from harness.engine.memory import Memory, available
from harness.engine.resolve import Resolver
from harness.engine.result import PreparedCell, Result
from harness.engine.runner import Runner
from harness.errors import UsageError, did_you_mean
from harness.model import Toolchain
from harness.plugins import Table


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
    memory, devices
        What its cells share with those of other executors of this machine; of its own when None.
    """

    def __init__(
        self,
        resolver: Resolver,
        jobs: int = 1,
        keep: int = 1,
        memory: Memory | None = None,
        devices: DevicePool | None = None,
    ) -> None:
        context = resolver.context
        memory = memory or Memory(context.memory or available())
        devices = devices or DevicePool(context.devices)
        self._work = _Queue()
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self.runners = [Runner(resolver, memory, devices, self._results.put, keep) for _ in range(jobs)]
        self._threads: list[threading.Thread] = []

    def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
        """Results as they finish; where whoever asks stops listening, what is under way is ended."""
        left = len(cells)
        self._work.add(cells)
        try:
            self._start(min(len(self.runners), left))
            while left:
                result = self._results.get()
                left -= 1
                if isinstance(result, BaseException):
                    raise result
                yield result
        finally:
            if left:
                self.close()

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        self._work.stop()
        for runner in self.runners:
            runner.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, count: int) -> None:
        # A fork server ends with the thread that has started it (prctl(2), PR_SET_PDEATHSIG), so threads stay until the end.
        for number, runner in enumerate(self.runners[len(self._threads) : count], len(self._threads) + 1):
            thread = threading.Thread(target=_serve, args=(runner, self._work), name=f"runner {number}", daemon=True)
            self._threads.append(thread)
            thread.start()


_ENOUGH = 4 << 30
_Group = tuple[Toolchain, str]
"""Toolchain of cells, and what its fork server prepares for all of them (`PreparedCell.alike`)."""


class _Queue:
    """Cells by toolchain, and within one by what is prepared for them; each runner empties a group before it takes another, and helps with the longest at the end."""

    def __init__(self) -> None:
        self._groups: dict[_Group, deque[PreparedCell]] = {}
        self._taken: Counter[_Group] = Counter()
        self._changed = threading.Condition()
        self._stopped = False

    def add(self, cells: Sequence[PreparedCell]) -> None:
        with self._changed:
            if self._stopped:
                raise RuntimeError("this executor was closed")
            for each in cells:
                self._groups.setdefault(_group_of(each), deque()).append(each)
            self._changed.notify_all()

    def next(self, current: PreparedCell | None, wait: bool = True) -> PreparedCell | None:
        """The next cell for a runner that has just run `current`.

        None when nothing comes any more; where the runner cannot `wait`, also when nothing is there now, and it then asks again.
        """
        with self._changed:
            while not self._stopped:
                if chosen := self._choose(_group_of(current) if current else None):
                    return self._groups[chosen].popleft()
                if not wait:
                    return None
                self._changed.wait()
            return None

    def _choose(self, current: _Group | None) -> _Group | None:
        """The group that a runner stays with, or changes to: of its toolchain where that has another one."""
        if current is not None and self._groups.get(current):
            return current
        left = [group for group, cells in self._groups.items() if cells]
        if not left:
            return None
        if current is not None:
            self._taken[current] -= 1
        runners, cells = Counter[Toolchain](), Counter[Toolchain]()
        for group, waiting in self._groups.items():
            runners[group[0]] += self._taken[group]
            cells[group[0]] += len(waiting)

        def order(group: _Group) -> tuple[int, ...]:
            toolchain = group[0]
            stays = current is not None and toolchain == current[0]
            return not stays, runners[toolchain], -cells[toolchain], self._taken[group], -len(self._groups[group])

        chosen = min(left, key=order)
        self._taken[chosen] += 1
        return chosen

    def alike(self, taken: PreparedCell) -> int:
        """How many cells for which the same can be prepared wait for the runner that has taken this one: others take their share of them.

        Below 0 where nothing is to be prepared, since that takes address space of which the cell has little.
        """
        if not taken.alike or 0 < taken.limits.memory < _ENOUGH:
            return -1
        with self._changed:
            group = _group_of(taken)
            return len(self._groups[group]) // max(1, self._taken[group])

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


def _group_of(prepared: PreparedCell) -> _Group:
    return prepared.cell.toolchain, prepared.alike


def _serve(runner: Runner, work: _Queue) -> None:
    current: PreparedCell | None = None
    while not runner.closed:
        prepared = work.next(current, wait=runner.finished)
        if prepared is not None:
            current = prepared
            runner.run(prepared, work.alike(prepared))
        elif runner.finished:
            break
        else:
            runner.finish()


def _plugged(_name: str, value: object) -> Callable[..., Executor]:
    if not callable(value):
        raise TypeError("it is no function that makes an executor")
    return value


EXECUTORS: Mapping[str, Callable[..., Executor]] = Table({"threads": ThreadExecutor}, "cumatrix.executors", _plugged)
"""What makes an executor of a resolver, a number of cells to compile at the same time, and how many fork servers each of them keeps."""


def executor_named(name: str) -> Callable[..., Executor]:
    """The one of a name.

    Raises
    ------
    UsageError
        Where there is none.
    """
    if name not in EXECUTORS:
        raise UsageError(f"unknown executor {name!r}{did_you_mean(name, EXECUTORS)}")
    return EXECUTORS[name]
