"""One runner: runs cells one after another, with the fork servers that they need."""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engine.collect import collect_outcome
from harness.engine.context import RunContext
from harness.engine.fork_server import ForkServer, ForkServerDied
from harness.engine.reads import DIRECTORY, Reads, reads_of
from harness.engine.toolchain import PreparedToolchain
from harness.model import Cell, Outcome, Status, Toolchain
from harness.toolkits.borrowed import note


class Runner:
    """Runs cells one at a time.

    Parameters
    ----------
    workshop : Workshop
        What the runners share.
    keep : int
        How many fork servers may wait at the same time for further cells.
    """

    def __init__(self, context: RunContext, keep: int = 1) -> None:
        self.context = context
        self.keep = keep
        self._fork_servers: OrderedDict[Toolchain, ForkServer] = OrderedDict()
        self._keys: dict[Toolchain, str] = {}
        self.closed = False

    def run(self, cell: Cell) -> tuple[Outcome, bool, str]:
        """Outcome of a cell, whether it comes from the cache, and its content key."""
        known = self.context.answer(cell)
        if known:
            return known
        prepared = self.context.prepared(cell.toolchain)
        fork_server = self._fork_server(prepared)
        known = self.context.answer(cell)  # what the fork server said may have settled it
        if known:
            return known
        with self.context.memory.taken(self.context.needs(cell)):
            outcome, reads = self._compile(cell, prepared, fork_server)
        self.context.learn(cell, outcome.peak_bytes)
        outcome = self.context.finish(outcome, cell, prepared, fork_server.hello)
        return outcome, False, self.context.keep(cell, prepared, self._keys[prepared.toolchain], reads, outcome)

    def close(self) -> None:
        """End every fork server, and with it whatever it runs."""
        self.closed = True
        while self._fork_servers:
            try:
                fork_server = self._fork_servers.popitem()[1]
            except KeyError:
                return  # the runner's own thread and the one that interrupts it may both be here
            fork_server.close()

    def _fork_server(self, prepared: PreparedToolchain) -> ForkServer:
        fork_server = self._fork_servers.get(prepared.toolchain)
        if fork_server is None:
            while len(self._fork_servers) >= self.keep:
                self._fork_servers.popitem(last=False)[1].close()
            fork_server = prepared.fork_server()
            self._fork_servers[prepared.toolchain] = fork_server
            self._keys[prepared.toolchain] = self.context.keep_hello(prepared, fork_server)
        self._fork_servers.move_to_end(prepared.toolchain)
        return fork_server

    def _compile(self, cell: Cell, prepared: PreparedToolchain, fork_server: ForkServer) -> tuple[Outcome, Reads]:
        scratch = Path(tempfile.mkdtemp(prefix="cell-", dir=fork_server.folder)).resolve()
        job = {**self.context.job(cell, prepared), "scratch": str(scratch)}
        try:
            ended = self._run(cell, fork_server, job)
            reads = reads_of(ended["reads"], self.context.own(fork_server.folder))
            assert prepared.toolkit is not None
            outcome = collect_outcome(
                cell, ended, scratch, prepared.toolkit.home, self.context.tools, job["entries"], job.get("device", {})
            )
            assert prepared.headers is not None
            said = note(
                prepared.headers.home, (path for path, found in reads.seen.items() if found not in (None, DIRECTORY))
            )
            return (replace(outcome, notes=(*outcome.notes, said)) if said else outcome), reads
        except ForkServerDied as error:
            self._fork_servers.pop(prepared.toolchain, None)
            fork_server.close()
            return Outcome(status=Status.HARNESS_ERROR, reason=f"the worker process is gone: {error}"), Reads()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run(self, cell: Cell, fork_server: ForkServer, job: dict[str, Any]) -> dict[str, Any]:
        shop = self.context
        if not cell.toolchain.device:
            return fork_server.run(job, shop.limits, path=shop.prepared(cell.toolchain).path)
        with shop.pool.take(cell.toolchain.device) as device:
            job["device"] = dict(device.facts)
            # The driver reserves more address space than any machine has memory.
            limits = replace(shop.limits, memory=0)
            return fork_server.run(job, limits, visible=device.token, sanitizer=shop.sanitizer)


Finished = Callable[[Cell, Outcome, bool, str], None]
"""Called with each finished cell, its outcome, whether it was kept from before, and its content key."""
