"""One runner: runs prepared cells one after another, with the fork servers that they need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.engine.devices import DevicePool
from harness.engine.fork_server import Compiled, ForkServer
from harness.engine.left import remove
from harness.engine.memory import Memory
from harness.engine.pool import ForkServers
from harness.engine.reader import Reader
from harness.engine.resolve import Resolver
from harness.engine.result import PreparedCell, Result, Worker
from harness.engine.toolchain import steps_of
from harness.protocol.wire import Order


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
        self.trace = resolver.context.trace
        self.fork_servers = ForkServers(keep, self.finish)
        self.reader = Reader(resolver.context.artifacts)
        self._unfinished: deque[Callable[[], Result]] = deque()

    @property
    def closed(self) -> bool:
        """Whether the run is over."""
        return self.fork_servers.closed

    @property
    def finished(self) -> bool:
        """Whether every cell that it has run has its result."""
        return not self._unfinished

    def run(self, prepared: PreparedCell, alike: int = 0) -> None:
        """Run a cell, of which `alike` others are to come; its result is made while the next one compiles, or by `finish`."""
        try:
            with self.trace.span(prepared.cell.id):
                self._run(prepared, alike)
        except BaseException as error:  # noqa: BLE001 (raised where the results are read)
            self._failed(error)

    def finish(self) -> None:
        """Make the results that are left to be made."""
        while self._unfinished:
            try:
                self.done(self._unfinished.popleft()())
            except BaseException as error:  # noqa: BLE001 (as above)
                self._failed(error)

    def close(self) -> None:
        """End every fork server, and with it whatever it runs, and what reads that."""
        self.fork_servers.close()
        self.reader.close()

    def _failed(self, error: BaseException) -> None:
        if not self.closed:  # a runner that was closed under its cell has nothing to say
            self.done(error)

    def _run(self, prepared: PreparedCell, alike: int) -> None:
        self.reader.start()
        asked = self.resolver.ask(prepared, self.fork_servers)
        if isinstance(asked, Result):
            self.done(asked)
            return
        with ExitStack() as stack:
            with self.trace.span("wait for memory"):
                stack.enter_context(self.memory.taken(self.resolver.needs.of(prepared.cell).memory))
            self._unfinished.append(self._compile(prepared, asked, alike))
        if asked.gone:
            self.fork_servers.end(prepared.toolchain)

    def _compile(self, prepared: PreparedCell, fork_server: ForkServer, alike: int) -> Callable[[], Result]:
        """Have a cell compiled; what is returned makes its result."""
        toolchain, scratch = prepared.toolchain, fork_server.scratch()

        def meanwhile() -> None:
            self.resolver.started(toolchain, fork_server)
            self.finish()

        try:
            with self._order(prepared, scratch, alike) as order, self.trace.span("child"):
                collect = fork_server.compile(
                    prepared.cell,
                    order,
                    toolchain.products(fork_server.folder),
                    self.reader.read,
                    meanwhile,
                )
            worker = self.resolver.started(toolchain, fork_server)
        except BaseException:
            self.fork_servers.end(toolchain)  # it may still be at work; the next cell starts another one
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
    def _order(self, prepared: PreparedCell, scratch: Path, alike: int) -> Iterator[Order]:
        """What the fork server is told; a cell of a real device holds one as long as it lasts."""
        name = prepared.cell.toolchain.device
        if not name:
            toolchain = prepared.toolchain
            steps = steps_of(toolchain, prepared.cell.case)
            yield Order(prepared.job, scratch, prepared.limits, path=toolchain.path, steps=steps, alike=alike)
            return
        with self.devices.take(name) as device:
            # The driver reserves more address space than any machine has memory.
            limits = replace(prepared.limits, memory=0)
            sanitizer = self.resolver.context.sanitizer
            yield Order(
                prepared.job, scratch, limits, visible=device.token, device=dict(device.facts), sanitizer=sanitizer
            )
