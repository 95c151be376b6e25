"""Executors, which compile prepared cells and yield results as they finish; the default one uses threads."""

from __future__ import annotations

import os
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from harness.engine.collect import remove
from harness.engine.context import RunContext
from harness.engine.fork_server import Compiled, ForkServer
from harness.engine.machine import DevicePool, Memory, available, deadline
from harness.engine.prepared import PreparedCell, Result, Worker
from harness.engine.reader import Reader
from harness.engine.resolve import ForkServers, Resolver
from harness.engine.toolchain import steps_of
from harness.errors import UsageError, did_you_mean
from harness.model import Cell, Toolchain
from harness.plugins import Table
from harness.process_locks import TEMPORARY, sweep, temporary_folder
from harness.protocol.messages import Order
from harness.records.plan import Inputs


class Runner:
    """Runs cells one at a time, and makes the result of each while the next one compiles.

    Parameters
    ----------
    resolver : Resolver
        Keeps the reports of fork servers, and finishes results.
    memory : Memory
        Memory that the cells of all runners share.
    devices : DevicePool
        Real devices that the cells of all runners share.
    done : callable
        Receives each cell's result, or the exception instead of it.
    keep : int
        Maximum number of idle fork servers.
    """

    def __init__(
        self,
        resolver: Resolver,
        memory: Memory,
        devices: DevicePool,
        done: Callable[[Result | BaseException], None],
        keep: int = 1,
    ) -> None:
        self.resolver = resolver
        self.memory = memory
        self.devices = devices
        self.done = done
        self.trace = resolver.context.trace
        self.fork_servers = ForkServers(keep, self.finish)
        self.reader = Reader(resolver.context.artifacts)
        self._unfinished: deque[Callable[[], Result]] = deque()

    @property
    def closed(self) -> bool:
        """Return whether the run is over."""
        return self.fork_servers.closed

    @property
    def finished(self) -> bool:
        """Return whether all of its cells have their results."""
        return not self._unfinished

    def run(self, prepared: PreparedCell, alike: int = 0) -> None:
        """Run a cell before `alike` similar ones; its result is made while the next one compiles, or by `finish`."""
        try:
            with self.trace.span(prepared.cell.id):
                self._run(prepared, alike)
        except BaseException as error:  # noqa: BLE001 (raised by the thread that reads the results)
            self._failed(error)

    def finish(self) -> None:
        """Make the outstanding results."""
        while self._unfinished:
            try:
                self.done(self._unfinished.popleft()())
            except BaseException as error:  # noqa: BLE001 (as above)
                self._failed(error)

    def close(self) -> None:
        """End every fork server with all of its processes, and the reader."""
        self.fork_servers.close()
        self.reader.close()

    def _failed(self, error: BaseException) -> None:
        if not self.closed:  # errors of a closed runner do not matter
            self.done(error)

    def _run(self, prepared: PreparedCell, alike: int) -> None:
        self.reader.start()
        reply = self.resolver.ask(prepared, self.fork_servers)
        if isinstance(reply, Result):
            self.done(reply)
            return
        with ExitStack() as stack:
            with self.trace.span("wait for memory"):
                stack.enter_context(self.memory.taken(self.resolver.needs.of(prepared.cell).memory))
            self._unfinished.append(self._compile(prepared, reply, alike))
        if reply.gone:
            self.fork_servers.end(prepared.toolchain)

    def _compile(self, prepared: PreparedCell, fork_server: ForkServer, alike: int) -> Callable[[], Result]:
        """Compile a cell, and return a function that makes its result."""
        toolchain, scratch = prepared.toolchain, fork_server.scratch()

        def meanwhile() -> None:
            self.resolver.started(toolchain, fork_server)
            self.finish()

        try:
            with self._order(prepared, scratch, alike) as (order, slot), self.trace.span("child"):
                collect = fork_server.compile(
                    prepared.cell,
                    order,
                    toolchain.products(fork_server.folder),
                    self.reader.read,
                    meanwhile,
                    slot,
                )
            worker = self.resolver.started(toolchain, fork_server)
        except BaseException:
            self.fork_servers.end(toolchain)  # it may still be working; the next cell starts another one
            raise
        return partial(self._finish, prepared, worker, collect, scratch)

    def _finish(self, prepared: PreparedCell, worker: Worker, collect: Callable[[], Compiled], scratch: Path) -> Result:
        try:
            with self.trace.span("collect"):
                compiled = collect()
        finally:
            remove(scratch)
        with self.trace.span("keep"):
            return self.resolver.finisher.finish(prepared, worker, compiled)

    @contextmanager
    def _order(self, prepared: PreparedCell, scratch: Path, alike: int) -> Iterator[tuple[Order, Callable[[], None]]]:
        """Yield the order for the fork server, and a function that takes a slot of the cell's device until the cell ends."""
        name = prepared.cell.toolchain.device
        limits = prepared.limits
        if self.resolver.context.request.patient:
            seconds = deadline(limits.seconds, prepared.need, os.getloadavg()[0], os.cpu_count() or 1)
            limits = replace(limits, seconds=seconds)
        if not name:
            toolchain = prepared.toolchain
            steps = steps_of(toolchain, prepared.cell.case)
            yield Order(prepared.job, scratch, limits, path=toolchain.path, steps=steps, alike=alike), lambda: None
            return
        with self.devices.assigned(name) as device, ExitStack() as stack:
            # The driver reserves more address space than any machine has memory.
            limits = replace(limits, memory=0)
            sanitizer = self.resolver.context.sanitizer
            order = Order(
                prepared.job, scratch, limits, visible=device.token, device=dict(device.facts), sanitizer=sanitizer
            )

            def slot() -> None:
                with self.trace.span("wait for device"):
                    stack.enter_context(self.devices.slot(device))
                stack.enter_context(self.trace.span("device"))

            yield order, slot


class Executor(Protocol):
    """Compiles prepared cells; its input and output can be pickled."""

    def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
        """Yield results as they finish, in any order; may be called again after all have finished."""

    def close(self) -> None:
        """End every started process, and with them a running `run`."""


class ThreadExecutor:
    """Runs cells in worker processes of this machine, with one thread per runner.

    A runner stays with one toolchain while the toolchain has cells, so that few fork servers are started.

    Parameters
    ----------
    resolver : Resolver
        The run's resolver.
    jobs : int
        Number of runners.
    keep : int
        Number of fork servers that each runner keeps for further cells.
    memory, devices
        Resources shared with other executors of this machine; None creates separate ones.
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
        memory = memory or Memory(context.request.total_memory or available())
        devices = devices or DevicePool(context.devices)
        self._work = _Queue()
        self._results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
        self.runners = [Runner(resolver, memory, devices, self._results.put, keep) for _ in range(jobs)]
        self._threads: list[threading.Thread] = []

    def run(self, cells: Sequence[PreparedCell]) -> Iterator[Result]:
        """Yield results as they finish; closing the iterator ends the running cells."""
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
        """End every fork server with all of its processes."""
        self._work.stop()
        for runner in self.runners:
            runner.close()
        for thread in self._threads:
            thread.join(10)

    def _start(self, count: int) -> None:
        # A fork server ends with the thread that started it (prctl(2), PR_SET_PDEATHSIG), so threads stay until the
        # end.
        for number, runner in enumerate(self.runners[len(self._threads) : count], len(self._threads) + 1):
            thread = threading.Thread(target=_serve, args=(runner, self._work), name=f"runner {number}", daemon=True)
            self._threads.append(thread)
            thread.start()


_ENOUGH = 4 << 30
_Group = tuple[Toolchain, str]
"""Toolchain of cells, and the preparation that they share (`PreparedCell.alike`)."""


class _Queue:
    """Cells grouped by toolchain and preparation.

    Each runner empties a group before it changes to another one; at the end, runners share the longest groups.
    """

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
        """Return the next cell for a runner whose last cell was `current`.

        None means that no further cells follow. If the runner cannot `wait`, None may also mean that no cell is ready
        yet; the runner then calls again.
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
        """Return the runner's current group, or its next one, preferably of the same toolchain."""
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
        """Estimate how many waiting cells of this runner can share the preparation of this one.

        Negative if nothing is to be prepared, because preparation takes address space and the cell has little.
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
        raise TypeError("it is not a function that creates an executor")
    return value


EXECUTORS: Mapping[str, Callable[..., Executor]] = Table({"threads": ThreadExecutor}, "cumatrix.executors", _plugged)
"""Factories of executors, called with a resolver, the number of concurrent cells, and the fork servers per runner."""


def executor_named(name: str) -> Callable[..., Executor]:
    """Return the executor factory of a name.

    Raises
    ------
    UsageError
        If the name is unknown.
    """
    if name not in EXECUTORS:
        raise UsageError(f"unknown executor {name!r}{did_you_mean(name, EXECUTORS)}")
    return EXECUTORS[name]


class Run:
    """Resolves cells and has an executor compile the rest; as a context manager, it ends every process that it started.

    Parameters
    ----------
    context : RunContext
        The request, and the parts of this machine.
    jobs : int
        Number of cells that compile at the same time.
    keep : int
        Number of idle fork servers for each of them.
    executor : Executor or None
        The executor; None uses the one that the request names.
    """

    def __init__(self, context: RunContext, jobs: int = 1, keep: int = 1, executor: Executor | None = None) -> None:
        sweep(temporary_folder(), TEMPORARY)
        context.store.sweep()
        self.context = context
        if context.artifacts:
            context.artifacts.open()
        made = executor_named(context.request.executor or "threads")
        self.resolver = Resolver(context)
        try:
            self.executor = executor or made(self.resolver, jobs, keep)
        except BaseException:  # also Ctrl-C
            self.resolver.close()
            raise

    def results(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Yield results as they finish; cells without compilation come first, before any process is started."""
        waiting = []
        for resolved in self.resolver.resolve_all(cells):
            if isinstance(resolved, Result):
                yield resolved
            else:
                waiting.append(resolved)
        if self.context.request.order == "plan":
            waiting.sort(
                key=lambda prepared: -prepared.need.seconds
            )  # a long cell that starts last would run alone at the end
        if waiting:
            yield from self.executor.run(waiting)

    def result(self, cell: Cell) -> Result:
        """Return the result of one cell."""
        (result,) = self.results([cell])
        return result

    @property
    def notes(self) -> Sequence[str]:
        """Sentences for the user."""
        return ()

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """Return the inputs of this run's outcomes, by their content keys."""
        return self.resolver.inputs(keys)

    def close(self) -> None:
        """End the started processes, and save the learned facts."""
        self.executor.close()
        self.resolver.close()
        self.context.trace.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
