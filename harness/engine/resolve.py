"""From a cell to its result, or to what a compiler has to be asked; and from a compiler's answer to a result that is kept."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from harness.engine.answers import Answers, Settled
from harness.engine.cache import lasting
from harness.engine.context import RunContext
from harness.engine.jobs import HeaderLibraries, job_of, question_of, source_of
from harness.engine.memory import Needs
from harness.engine.missing import without_part
from harness.engine.reads import Reads, reads_of
from harness.engine.result import PreparedCell, Result
from harness.engine.toolchain import PreparedToolchain
from harness.held import TEMPORARY, HeldFolder
from harness.model import Cell, Headers, Outcome, Status, Toolchain
from harness.protocol.message import WireError
from harness.protocol.wire import Ready
from harness.toolkits.libraries import observed_version


@dataclass(frozen=True)
class Worker:
    """What is known of the fork servers of one toolchain.

    Parameters
    ----------
    ready : Ready
        What one of them said.
    keys : tuple of str
        Keys of all that such a fork server has read, the newest first. There may be several for the same files: Python
        looks for more of them while its compiled modules are still being written. None where it is not known what was read.
    """

    ready: Ready
    keys: tuple[str, ...] = ()


class Resolver:
    """Resolves the cells of one run, and keeps what comes of them for later runs.

    Used by several threads at a time.

    Parameters
    ----------
    context : RunContext
        What was asked for, and what there is.

    Attributes
    ----------
    unkept : Counter
        Why results were not kept for later runs, and how many.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.answers = Answers(context.cache)
        self.needs = Needs(context.cache)
        self.unkept: Counter[str] = Counter()
        self._libraries = HeaderLibraries()
        self._steps = HeldFolder(Path(tempfile.gettempdir()), TEMPORARY)
        self._toolchains: dict[Toolchain, PreparedToolchain] = {}
        self._workers: dict[str, Worker] = {}
        self._unfollowed: dict[str, str] = {}

    def close(self) -> None:
        """Keep what was learned, and remove what the run's cells shared."""
        self.answers.close()
        self._steps.remove()

    def resolve(self, cell: Cell) -> Result | PreparedCell:
        """The result of a cell where nothing needs to be compiled for it; else what a compiler has to be asked."""
        facts = cell.facts()
        for rule in cell.case.unsupported:
            if rule.when(facts):
                return Result(cell, Outcome(status=Status.UNSUPPORTED, reason=rule.reason))
        toolchain = self.toolchain(cell.toolchain)
        if toolchain.problem:
            return Result(cell, toolchain.problem)
        worker = self.worker(toolchain)
        if worker and (refused := self.refused(cell, toolchain, worker)):
            return refused
        libraries = self._libraries.of(cell)
        for name, found in libraries.items():
            if found is None:
                return Result(cell, _not_installed(f"{name}=={cell.variant.libraries[name]}"))
            if isinstance(found, Headers) and found.problem:
                return Result(cell, Outcome(status=Status.UNAVAILABLE, reason=found.problem))
        installed = {name: found for name, found in libraries.items() if found}
        job = job_of(cell, toolchain, installed.values(), self.context.include)
        limits = self.context.limits
        prepared = PreparedCell(
            cell, toolchain, job, limits, question_of(cell, job, installed, limits), self.needs.of(cell)
        )
        if worker:
            return self.kept(prepared, worker) or replace(prepared, asked=frozenset(worker.keys))
        return prepared

    def toolchain(self, toolchain: Toolchain) -> PreparedToolchain:
        """A toolchain made ready, once in a run."""
        if toolchain not in self._toolchains:
            self._toolchains[toolchain] = PreparedToolchain.of(
                toolchain, self.context.environment_of(toolchain), self.context.store, self.context.tools, self._steps.path,
                self.context.devices.variables if toolchain.device else {},
            )  # fmt: skip
        return self._toolchains[toolchain]

    def worker(self, toolchain: PreparedToolchain) -> Worker | None:
        """What fork servers of a toolchain said, in this run or in an earlier one; None before any was asked."""
        if toolchain.key not in self._workers and self.context.cache:
            for key in self.answers.keys(toolchain.key):
                if ready := _read(self.context.cache.fact(key)):
                    before = self._workers.get(toolchain.key, Worker(ready))
                    self._workers[toolchain.key] = replace(before, keys=(*before.keys, key))
        return self._workers.get(toolchain.key)

    def started(self, toolchain: PreparedToolchain, ready: Ready, folder: Path) -> Worker:
        """Take note of what a fork server said that has just started in `folder`; what could not be loaded is kept for this run only.

        Returns
        -------
        Worker
            Of this very fork server; its only key is that of what it has read.
        """
        if ready.status:
            self._workers[toolchain.key] = Worker(ready)
            return Worker(ready)
        read = self.answers.settle(toolchain.key, reads_of(ready.reads, self.own(folder)))
        own = Worker(replace(ready, reads=None), (read.key,) if read.key else ())
        before = self._workers.get(toolchain.key, own)
        self._workers[toolchain.key] = Worker(own.ready, tuple(dict.fromkeys((*own.keys, *before.keys))))
        if self.context.cache and read.key:
            self.context.cache.keep_fact(read.key, own.ready.to_json())
        if not read.key:
            self._unfollowed[toolchain.key] = toolchain.unfollowed or read.problem
        return own

    def refused(self, cell: Cell, toolchain: PreparedToolchain, worker: Worker) -> Result | None:
        """The result of a cell that such a worker cannot run: it could not be loaded, or knows no such target."""
        ready = worker.ready
        if ready.status:
            return Result(cell, Outcome(status=Status(ready.status), reason=ready.reason, log=ready.log))
        if unknown := toolchain.unknown_target(cell, ready):
            observed = toolchain.observed(ready)
            return Result(cell, Outcome(status=Status.UNSUPPORTED, reason=unknown, observed=observed))
        return None

    def kept(self, prepared: PreparedCell, worker: Worker) -> Result | None:
        """The answer of an earlier run, to the same question and out of the same files."""
        # What a device does is never taken from an earlier run: it is asked each time.
        if not self.context.cache or prepared.cell.toolchain.device:
            return None
        firsts = [prepared.first_key(key) for key in worker.keys if key not in prepared.asked]
        for key in chain.from_iterable(map(self.answers.keys, firsts)):
            if outcome := self.context.cache.outcome(key):
                return Result(prepared.cell, outcome, cached=True, key=key)
        return None

    def finish(self, prepared: PreparedCell, worker: Worker, outcome: Outcome, reads: Reads) -> Result:
        """The result of a cell that has been compiled; kept for later runs where it follows from what was read and from nothing else."""
        cell, toolchain = prepared.cell, prepared.toolchain
        if outcome.status not in (Status.CRASHED, Status.TIMED_OUT):  # which may have been on their way to more
            self.needs.learn(cell, outcome.peak_bytes)
        outcome = without_part(outcome, cell.toolchain.toolkit, toolchain.include, source_of(cell))
        libraries = {
            name: observed_version(cell.case.libraries[name], found)
            for name, found in self._libraries.of(cell).items()
            if found
        }
        observed = {**toolchain.observed(worker.ready), **({"libraries": libraries} if libraries else {})}
        outcome = replace(outcome, observed={**observed, **outcome.observed})
        return Result(cell, outcome, key=self._keep(prepared, worker, outcome, reads))

    def _keep(self, prepared: PreparedCell, worker: Worker, outcome: Outcome, reads: Reads) -> str:
        first = prepared.first_key(worker.keys[0]) if worker.keys else ""
        why = self._unfollowed.get(prepared.toolchain.key, "")
        settled = self.answers.settle(first, reads) if first else Settled("", why)
        if self.context.cache and not prepared.cell.toolchain.device and lasting(outcome):
            if settled.key:
                self.context.cache.keep_outcome(settled.key, outcome)
            elif settled.problem:
                self.unkept[settled.problem] += 1
        return settled.key

    def own(self, folder: Path) -> list[str]:
        """Folders whose files are products of this run or of cumatrix itself, with a fork server's `folder`."""
        return [os.path.realpath(each) for each in (folder, self._steps.path, self.context.tools)]


def _read(fact: dict[str, Any] | None) -> Ready | None:
    try:
        return Ready.from_json(fact) if fact else None
    except WireError:
        return None  # a cache of another time: the worker is asked again


def _not_installed(wanted: str) -> Outcome:
    advice = f"run `cumatrix toolkits install {wanted}`, or `cumatrix toolkits install --cases`"
    return Outcome(status=Status.UNAVAILABLE, reason=f"{wanted} is not installed: {advice}")
