"""One runner: runs prepared cells one after another, with the fork servers that they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.engine.devices import DevicePool
from harness.engine.fork_server import Compiled, ForkServer
from harness.engine.left import remove
from harness.engine.memory import Memory
from harness.engine.pool import ForkServers
from harness.engine.resolve import Resolver
from harness.engine.result import PreparedCell, Result
from harness.protocol.wire import Order


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
        self.fork_servers = ForkServers(keep)

    @property
    def closed(self) -> bool:
        """Whether the run is over."""
        return self.fork_servers.closed

    def run(self, prepared: PreparedCell) -> Result:
        """The result of a cell."""
        asked = self.resolver.ask(prepared, self.fork_servers)
        if isinstance(asked, Result):
            return asked
        with self.memory.taken(self.resolver.needs.of(prepared.cell)):
            compiled = self._compile(prepared, asked.fork_server)
        return self.resolver.finisher.finish(prepared, asked.worker, compiled)

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        self.fork_servers.close()

    def _compile(self, prepared: PreparedCell, fork_server: ForkServer) -> Compiled:
        scratch = fork_server.scratch()
        try:
            with self._order(prepared, scratch) as order:
                compiled = fork_server.compile(prepared.cell, order, prepared.toolchain.products(fork_server.folder))
            if fork_server.gone:
                self.fork_servers.end(prepared.toolchain)
            return compiled
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
