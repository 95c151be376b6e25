"""One runner: runs prepared cells one after another, with the fork servers that they need."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.engine.collect import collect_lost, collect_outcome
from harness.engine.devices import DevicePool
from harness.engine.fork_server import ForkServer, ForkServerDied
from harness.engine.left import remove
from harness.engine.memory import Memory
from harness.engine.reads import DIRECTORY, Reads, reads_of
from harness.engine.resolve import Resolver, Worker
from harness.engine.result import PreparedCell, Result
from harness.engine.toolchain import PreparedToolchain
from harness.model import Toolchain
from harness.protocol.wire import Exit, Order
from harness.toolkits.borrowed import note


class Runner:
    """Runs cells one at a time. While the compiler of one works, it makes the result of the one before.

    Parameters
    ----------
    resolver : Resolver
        Knows what fork servers said before, and finishes results.
    memory : Memory
        What the cells of all runners share.
    devices : DevicePool
        The same for real devices.
    done : callable
        Takes each cell's result, or the exception that came in its place.
    keep : int
        How many fork servers may wait at the same time for further cells.
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
        self.keep = keep
        self.trace = resolver.context.trace
        self._fork_servers: OrderedDict[Toolchain, ForkServer] = OrderedDict()
        self._workers: dict[Toolchain, Worker] = {}
        self._unfinished: deque[Callable[[], Result]] = deque()
        self.closed = False

    def run(self, prepared: PreparedCell) -> None:
        """Run a cell; its result is made by the next call, or by `finish`."""
        try:
            with self.trace.span(prepared.cell.id):
                self._run(prepared)
        except BaseException as error:  # noqa: BLE001 (raised where the results are read)
            self._failed(error)

    @property
    def finished(self) -> bool:
        """Whether every cell that it has run has its result."""
        return not self._unfinished

    def finish(self) -> None:
        """Make the results that are left to be made."""
        while self._unfinished:
            try:
                self.done(self._unfinished.popleft()())
            except BaseException as error:  # noqa: BLE001 (as above)
                self._failed(error)

    def _failed(self, error: BaseException) -> None:
        if not self.closed:  # a runner that was closed under its cell has nothing to say
            self.done(error)

    def _run(self, prepared: PreparedCell) -> None:
        cell, toolchain = prepared.cell, prepared.toolchain
        before = self.resolver.worker(toolchain)
        if before and (refused := self.resolver.refused(cell, toolchain, before)):
            self.done(refused)  # another runner has asked
            return
        fork_server = self._fork_server(toolchain)
        # What it has read is looked at before the first cell only where an earlier run may have answers.
        worker = self._worker(toolchain, fork_server) if before else Worker(fork_server.ready)
        if settled := self.resolver.refused(cell, toolchain, worker) or self.resolver.kept(prepared, worker):
            self._worker(toolchain, fork_server)
            self.done(settled)
            return
        with ExitStack() as stack:
            with self.trace.span("wait for memory"):
                stack.enter_context(self.memory.taken(self.resolver.needs.of(cell).memory))
            self._unfinished.append(self._compile(prepared, fork_server))

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        self.closed = True
        while self._fork_servers:
            try:
                fork_server = self._fork_servers.popitem()[1]
            except KeyError:
                return  # the runner's own thread and the one that interrupts it may both be here
            fork_server.close()

    def _fork_server(self, toolchain: PreparedToolchain) -> ForkServer:
        """One that is ready, or says why it never will be."""
        name = toolchain.toolchain
        fork_server = self._fork_servers.get(name)
        if fork_server is not None and fork_server.gone:
            self._end(name, fork_server)  # whoever ended it, it was none of the cells to come
            fork_server = None
        if fork_server is None:
            while len(self._fork_servers) >= self.keep:
                self._end(*next(iter(self._fork_servers.items())))
            # Known before it is ready: whoever interrupts need not wait until a library is loaded.
            fork_server = self._fork_servers[name] = toolchain.fork_server()
            self._workers.pop(name, None)
            if self.closed:  # while it was starting, so that `close` did not see it
                self._end(name, fork_server)
                raise ForkServerDied("the run is over")
            with self.trace.span(f"start the fork server of {name.name}"):
                fork_server.ready  # noqa: B018 (waits)
        if name in self._fork_servers:
            self._fork_servers.move_to_end(name)
        return fork_server

    def _worker(self, toolchain: PreparedToolchain, fork_server: ForkServer) -> Worker:
        """What is known of a fork server that is ready; all that it has read is looked at, once."""
        name = toolchain.toolchain
        if name not in self._workers:
            try:
                with self.trace.span("read what it read"):
                    self._workers[name] = self.resolver.started(toolchain, fork_server.ready, fork_server.folder)
            except BaseException:
                self._end(name, fork_server)  # what it said is not known: the next cell starts another one
                raise
        return self._workers[name]

    def _end(self, name: Toolchain, fork_server: ForkServer) -> None:
        self.finish()  # what its cells have left goes with it
        self._fork_servers.pop(name, None)
        fork_server.close()

    def _compile(self, prepared: PreparedCell, fork_server: ForkServer) -> Callable[[], Result]:
        """Have a cell compiled; what is returned makes its result."""
        toolchain = prepared.toolchain
        assert toolchain.toolkit is not None and toolchain.headers is not None
        home = toolchain.toolkit.home
        scratch, started = fork_server.scratch(), time.monotonic()

        def meanwhile() -> None:
            self._worker(toolchain, fork_server)
            self.finish()

        try:
            with self._order(prepared, scratch) as order, self.trace.span("child"):
                ended = fork_server.run(order, meanwhile)
        except ForkServerDied as error:
            seconds = time.monotonic() - started
            lost = collect_lost(prepared.cell, order, str(error), seconds, home, toolchain.tools)
            worker = self._workers.get(toolchain.toolchain, Worker(fork_server.ready))
            self._end(toolchain.toolchain, fork_server)
            remove(scratch)
            return lambda: self.resolver.finish(prepared, worker, lost, Reads())
        except BaseException:
            remove(scratch)
            raise
        worker = self._worker(toolchain, fork_server)
        return partial(self._finish, prepared, worker, order, ended, fork_server.folder)

    def _finish(self, prepared: PreparedCell, worker: Worker, order: Order, ended: Exit, folder: Path) -> Result:
        """The result of a cell whose child has ended; its folder is removed."""
        toolchain = prepared.toolchain
        assert toolchain.toolkit is not None and toolchain.headers is not None
        try:
            with self.trace.span("collect"):
                reads = reads_of(ended.reads, self.resolver.own(folder))
                outcome = collect_outcome(prepared.cell, order, ended, toolchain.toolkit.home, toolchain.tools)
                seen = (path for path, found in reads.seen.items() if found not in (None, DIRECTORY))
                said = note(toolchain.headers.home, seen)
                outcome = replace(outcome, notes=(*outcome.notes, said)) if said else outcome
        finally:
            remove(order.scratch)
        with self.trace.span("keep"):
            return self.resolver.finish(prepared, worker, outcome, reads)

    @contextmanager
    def _order(self, prepared: PreparedCell, scratch: Path) -> Iterator[Order]:
        """What the fork server is told; a cell of a real device holds one as long as it lasts."""
        name = prepared.cell.toolchain.device
        if not name:
            yield Order(prepared.job, scratch, prepared.limits, path=prepared.toolchain.path)
            return
        with self.devices.take(name) as device:
            # The driver reserves more address space than any machine has memory.
            limits = replace(prepared.limits, memory=0)
            sanitizer = self.resolver.context.sanitizer
            yield Order(
                prepared.job, scratch, limits, visible=device.token, device=dict(device.facts), sanitizer=sanitizer
            )
