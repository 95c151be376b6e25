"""One lane: runs cells one after another, with the zygotes that they need."""

from __future__ import annotations

import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.engine.collect import settle
from harness.engine.context import Workshop
from harness.engine.fork_server import Zygote, ZygoteDied
from harness.engine.reads import DIRECTORY, Reads, reads_of
from harness.engine.toolchain import Bench
from harness.model import Cell, Outcome, Status, Toolchain
from harness.toolkits.borrowed import note


class Lane:
    """Runs cells one at a time.

    Parameters
    ----------
    workshop : Workshop
        What the lanes share.
    keep : int
        How many zygotes may wait at the same time for further cells.
    """

    def __init__(self, workshop: Workshop, keep: int = 1) -> None:
        self.workshop = workshop
        self.keep = keep
        self._zygotes: OrderedDict[Toolchain, Zygote] = OrderedDict()
        self._keys: dict[Toolchain, str] = {}
        self.closed = False

    def run(self, cell: Cell) -> tuple[Outcome, bool, str]:
        """Outcome of a cell, whether it comes from the cache, and its content key."""
        known = self.workshop.answer(cell)
        if known:
            return known
        bench = self.workshop.bench(cell.toolchain)
        zygote = self._zygote(bench)
        known = self.workshop.answer(cell)  # what the zygote said may have settled it
        if known:
            return known
        with self.workshop.memory.taken(self.workshop.needs(cell)):
            outcome, reads = self._compile(cell, bench, zygote)
        self.workshop.learn(cell, outcome.peak_bytes)
        outcome = self.workshop.finish(outcome, cell, bench, zygote.hello)
        return outcome, False, self.workshop.keep(cell, bench, self._keys[bench.toolchain], reads, outcome)

    def close(self) -> None:
        """End every zygote, and with it whatever it runs."""
        self.closed = True
        while self._zygotes:
            try:
                zygote = self._zygotes.popitem()[1]
            except KeyError:
                return  # the lane's own thread and the one that interrupts it may both be here
            zygote.close()

    def _zygote(self, bench: Bench) -> Zygote:
        zygote = self._zygotes.get(bench.toolchain)
        if zygote is None:
            while len(self._zygotes) >= self.keep:
                self._zygotes.popitem(last=False)[1].close()
            zygote = bench.zygote()
            self._zygotes[bench.toolchain] = zygote
            self._keys[bench.toolchain] = self.workshop.keep_hello(bench, zygote)
        self._zygotes.move_to_end(bench.toolchain)
        return zygote

    def _compile(self, cell: Cell, bench: Bench, zygote: Zygote) -> tuple[Outcome, Reads]:
        scratch = Path(tempfile.mkdtemp(prefix="cell-", dir=zygote.folder)).resolve()
        job = {**self.workshop.job(cell, bench), "scratch": str(scratch)}
        try:
            ended = self._run(cell, zygote, job)
            reads = reads_of(ended["reads"], self.workshop.own(zygote.folder))
            assert bench.toolkit is not None
            outcome = settle(
                cell, ended, scratch, bench.toolkit.home, self.workshop.tools, job["entries"], job.get("device", {})
            )
            assert bench.headers is not None
            said = note(
                bench.headers.home, (path for path, found in reads.seen.items() if found not in (None, DIRECTORY))
            )
            return (replace(outcome, notes=(*outcome.notes, said)) if said else outcome), reads
        except ZygoteDied as error:
            self._zygotes.pop(bench.toolchain, None)
            zygote.close()
            return Outcome(status=Status.HARNESS_ERROR, reason=f"the worker process is gone: {error}"), Reads()
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run(self, cell: Cell, zygote: Zygote, job: dict[str, Any]) -> dict[str, Any]:
        shop = self.workshop
        if not cell.toolchain.device:
            return zygote.run(job, shop.limits, path=shop.bench(cell.toolchain).path)
        with shop.pool.take(cell.toolchain.device) as device:
            job["device"] = dict(device.facts)
            # The driver reserves more address space than any machine has memory.
            limits = replace(shop.limits, memory=0)
            return zygote.run(job, limits, visible=device.token, sanitizer=shop.sanitizer)


Finished = Callable[[Cell, Outcome, bool, str], None]
"""Called with each finished cell, its outcome, whether it was kept from before, and its content key."""
