"""One runner: runs prepared cells one after another, with the fork servers that they need."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
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
from harness.model import Outcome, Toolchain
from harness.protocol.wire import Order
from harness.toolkits.borrowed import note


class Runner:
    """Runs cells one at a time.

    Parameters
    ----------
    resolver : Resolver
        Knows what fork servers said before, and finishes results.
    memory : Memory
        What the cells of all runners share.
    devices : DevicePool
        The same for real devices.
    keep : int
        How many fork servers may wait at the same time for further cells.
    """

    def __init__(self, resolver: Resolver, memory: Memory, devices: DevicePool, keep: int = 1) -> None:
        self.resolver = resolver
        self.memory = memory
        self.devices = devices
        self.keep = keep
        self.trace = resolver.context.trace
        self._fork_servers: OrderedDict[Toolchain, ForkServer] = OrderedDict()
        self._workers: dict[Toolchain, Worker] = {}
        self.closed = False

    def run(self, prepared: PreparedCell) -> Result:
        """The result of a cell."""
        with self.trace.span(prepared.cell.id):
            return self._run(prepared)

    def _run(self, prepared: PreparedCell) -> Result:
        cell, toolchain = prepared.cell, prepared.toolchain
        before = self.resolver.worker(toolchain)
        if before and (refused := self.resolver.refused(cell, toolchain, before)):
            return refused  # another runner has asked
        fork_server, worker = self._fork_server(toolchain)
        settled = self.resolver.refused(cell, toolchain, worker) or self.resolver.kept(prepared, worker)
        if settled:
            return settled
        with ExitStack() as stack:
            with self.trace.span("wait for memory"):
                stack.enter_context(self.memory.taken(self.resolver.needs.of(cell)))
            outcome, reads = self._compile(prepared, fork_server)
        with self.trace.span("keep"):
            return self.resolver.finish(prepared, worker, outcome, reads)

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        self.closed = True
        while self._fork_servers:
            try:
                fork_server = self._fork_servers.popitem()[1]
            except KeyError:
                return  # the runner's own thread and the one that interrupts it may both be here
            fork_server.close()

    def _fork_server(self, toolchain: PreparedToolchain) -> tuple[ForkServer, Worker]:
        name = toolchain.toolchain
        fork_server = self._fork_servers.get(name)
        if fork_server is not None and fork_server.gone:
            self._end(name, fork_server)  # whoever ended it, it was none of the cells to come
            fork_server = None
        if fork_server is None:
            while len(self._fork_servers) >= self.keep:
                self._fork_servers.popitem(last=False)[1].close()
            # Known before it is ready: whoever interrupts need not wait until a library is loaded.
            fork_server = self._fork_servers[name] = toolchain.fork_server()
            if self.closed:  # while it was starting, so that `close` did not see it
                self._end(name, fork_server)
                raise ForkServerDied("the run is over")
            try:
                with self.trace.span(f"start the fork server of {name.name}"):
                    ready = fork_server.ready
                with self.trace.span("read what it read"):
                    self._workers[name] = self.resolver.started(toolchain, ready, fork_server.folder)
            except BaseException:
                self._end(name, fork_server)  # what it said is not known: the next cell starts another one
                raise
        if name in self._fork_servers:
            self._fork_servers.move_to_end(name)
        return fork_server, self._workers[name]

    def _end(self, name: Toolchain, fork_server: ForkServer) -> None:
        self._fork_servers.pop(name, None)
        fork_server.close()

    def _compile(self, prepared: PreparedCell, fork_server: ForkServer) -> tuple[Outcome, Reads]:
        toolchain = prepared.toolchain
        assert toolchain.toolkit is not None and toolchain.headers is not None
        scratch, started = fork_server.scratch(), time.monotonic()
        try:
            with self._order(prepared, scratch) as order, self.trace.span("child"):
                ended = fork_server.run(order)
            reads = reads_of(ended.reads, self.resolver.own(fork_server.folder))
            outcome = collect_outcome(prepared.cell, order, ended, toolchain.toolkit.home, toolchain.tools)
            seen = (path for path, found in reads.seen.items() if found not in (None, DIRECTORY))
            said = note(toolchain.headers.home, seen)
            return (replace(outcome, notes=(*outcome.notes, said)) if said else outcome), reads
        except ForkServerDied as error:
            seconds, home = time.monotonic() - started, toolchain.toolkit.home
            lost = collect_lost(prepared.cell, order, str(error), seconds, home, toolchain.tools)
            self._end(toolchain.toolchain, fork_server)
            return lost, Reads()
        finally:
            remove(scratch)

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
