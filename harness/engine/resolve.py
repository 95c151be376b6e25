"""From a cell to its result, or to what a compiler has to be asked, and whom."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.options import options_for
from harness.engine.answers import Answers
from harness.engine.cache import batches
from harness.engine.context import RunContext
from harness.engine.finish import Finisher
from harness.engine.fork_server import ForkServer
from harness.engine.jobs import Common, HeaderLibraries, Jobs, OtherToolkits
from harness.engine.look_up import LookUp
from harness.engine.needs import Needs
from harness.engine.pool import ForkServers
from harness.engine.reads import reads_of
from harness.engine.result import PreparedCell, Result, Worker, first_key
from harness.engine.toolchain import PreparedToolchain
from harness.engine.while_loading import hash_meanwhile
from harness.errors import PartUnavailable
from harness.held import TEMPORARY, HeldFolder, temporary_folder
from harness.model import Cell, Headers, Outcome, Status, Toolchain
from harness.protocol.message import WireError
from harness.protocol.wire import Ready
from harness.records.inputs import Inputs

_AT_A_TIME = 256


@dataclass(frozen=True)
class CellRequest:
    """What is asked for a cell, before anybody is: whoever has the answer need not be told all that a compiler is."""

    cell: Cell
    toolchain: PreparedToolchain
    common: Common
    question: str
    worker: Worker | None


class Resolver:
    """Resolves the cells of one run, and knows what fork servers said in this run and in earlier ones.

    Used by several threads at a time.

    Parameters
    ----------
    context : RunContext
        What was asked for, and what there is.

    Attributes
    ----------
    needs : Needs
        What cells are known to need.
    finisher : Finisher
        What finishes the results of cells that were compiled.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.answers = Answers(context.cache, context.roots)
        self.needs = Needs(context.cache)
        self._earlier = LookUp(context.cache, self.answers, context.artifacts)
        self._libraries = HeaderLibraries()
        self._tools = OtherToolkits(context.store)
        self._jobs = Jobs(context.include, context.limits, context.roots)
        self._toolchains: dict[Toolchain, PreparedToolchain] = {}
        self._workers: dict[str, Worker] = {}
        self._said: dict[Path, Worker] = {}
        self.finisher = Finisher(context, self.answers, self.needs, self._libraries)
        # At last, so that nothing is left where any of these is interrupted.
        self._steps = HeldFolder(temporary_folder(), TEMPORARY)

    def close(self) -> None:
        """Keep what was learned, and remove what the run's cells shared."""
        self.answers.close()
        self._earlier.close()
        self._steps.remove()

    def resolve(self, cell: Cell) -> Result | PreparedCell:
        """The result of a cell where nothing needs to be compiled for it; else what a compiler has to be asked."""
        (resolved,) = self.resolve_all([cell])
        return resolved

    def resolve_all(self, cells: Iterable[Cell]) -> Iterator[Result | PreparedCell]:
        """Each cell resolved, in their order; answers of earlier runs are looked up for many at a time."""
        for some in batches(cells, _AT_A_TIME):
            # None of a batch is given away before all are resolved: states of files are to be no older than that takes.
            with self.context.trace.span("resolve"):
                resolved = list(self._look_up(list(map(self._ask_for, some))))
            yield from resolved

    def _ask_for(self, cell: Cell) -> Result | CellRequest:
        """The result of a cell where it is known without asking anybody; else what is asked."""
        facts = cell.facts() if cell.case.unsupported else {}
        for rule in cell.case.unsupported:
            if rule.when(facts):
                return Result(cell, Outcome(status=Status.UNSUPPORTED, reason=rule.reason))
        toolchain = self.toolchain(cell.toolchain)
        if toolchain.problem:
            return Result(cell, toolchain.problem)
        options = options_for(cell)
        if unknown := BACKENDS[cell.toolchain.backend].without_word(options):
            return Result(cell, Outcome(status=Status.UNSUPPORTED, reason=unknown))
        try:
            tools = self._tools.of(cell)
        except PartUnavailable as error:
            return Result(cell, Outcome(status=Status.UNAVAILABLE, reason=str(error)))
        worker = self.worker(toolchain)
        if worker and (refused := self.refused(cell, toolchain, worker)):
            return refused
        libraries = self._libraries.of(cell)
        for name, found in libraries.items():
            if found is None:
                return Result(cell, _not_installed(f"{name}=={cell.variant.libraries[name]}", self.context.absent))
            if isinstance(found, Headers) and found.problem:
                return Result(cell, Outcome(status=Status.UNAVAILABLE, reason=found.problem))
        installed = {name: found for name, found in libraries.items() if found}
        common = self._jobs.common(cell, toolchain, options, installed, tools)
        return CellRequest(cell, toolchain, common, common.question_of(cell), worker)

    def _look_up(self, asked: Sequence[Result | CellRequest]) -> Iterator[Result | PreparedCell]:
        """Results as they are; of the others the answers of earlier runs, or what a compiler has to be asked."""
        found = iter(
            self._earlier.all([(each.cell, self._firsts(each)) for each in asked if isinstance(each, CellRequest)])
        )
        for each in asked:
            yield each if isinstance(each, Result) else next(found) or self._prepared(each)

    def _firsts(self, asked: CellRequest) -> dict[str, str]:
        # What a device does is never taken from an earlier run: it is asked each time.
        keys = asked.worker.keys if asked.worker and self.context.cache and not asked.cell.toolchain.device else ()
        return {first_key(key, asked.question): key for key in keys}

    def _prepared(self, asked: CellRequest) -> PreparedCell:
        cell, worker = asked.cell, asked.worker
        return PreparedCell(
            cell, asked.toolchain, asked.common.job_of(cell), self.context.limits, asked.question, self.needs.of(cell),
            frozenset(worker.keys if worker else ()),
        )  # fmt: skip

    def toolchain(self, toolchain: Toolchain) -> PreparedToolchain:
        """A toolchain made ready, once in a run."""
        if toolchain not in self._toolchains:
            self._toolchains[toolchain] = PreparedToolchain.of(
                toolchain, self.context.environment_of(toolchain), self.context.store, self.context.tools, self._steps.path,
                self.context.devices.variables if toolchain.device else {}, self.context.limits.memory, self.context.roots,
                self.context.absent,
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

    def ask(self, prepared: PreparedCell, fork_servers: ForkServers) -> Result | ForkServer:
        """A fork server that is to compile the cell, once it is ready; or the result, where what one has said settles it.

        Parameters
        ----------
        prepared : PreparedCell
            The cell.
        fork_servers : ForkServers
            Where one is taken from, unless it is known from others that none could run the cell.
        """
        cell, toolchain = prepared.cell, prepared.toolchain
        before = self.worker(toolchain)
        if before and (refused := self.refused(cell, toolchain, before)):
            return refused  # another runner has asked
        fork_server = self._loaded(toolchain, fork_servers)
        if fork_server.lost_loading:  # whatever ended it may have nothing to do with the backend
            fork_servers.end(toolchain)
            fork_server = self._loaded(toolchain, fork_servers)
        ready = fork_server.ready
        settled = self.refused(cell, toolchain, Worker(ready))
        if settled or before:  # else nothing was kept: what it has read is looked at while the first cell compiles
            try:
                worker = self.started(toolchain, fork_server)
            except BaseException:
                fork_servers.end(toolchain)  # what it said is not known: the next cell starts another one
                raise
            settled = settled or self.kept(prepared, worker)
        return settled or fork_server

    def _loaded(self, toolchain: PreparedToolchain, fork_servers: ForkServers) -> ForkServer:
        """A fork server that is ready, or says why it cannot be."""
        fork_server = fork_servers.of(toolchain)
        with self.context.trace.span("wait for the fork server"):
            if not toolchain.toolchain.device and not toolchain.unfollowed:
                hash_meanwhile(fork_server, self.answers.files)
            _ = fork_server.ready
        return fork_server

    def started(self, toolchain: PreparedToolchain, fork_server: ForkServer) -> Worker:
        """Take note of what a fork server says, once; what could not be loaded is kept for this run only.

        Returns
        -------
        Worker
            Of this very fork server; its only key is that of what it has read.
        """
        if fork_server.folder in self._said:
            return self._said[fork_server.folder]
        ready = fork_server.ready
        if ready.status:
            own = self._workers[toolchain.key] = Worker(ready)
        else:
            read = self.answers.key_of_worker(
                toolchain.key, reads_of(ready.reads, toolchain.products(fork_server.folder))
            )
            unfollowed = "" if read.key else toolchain.unfollowed or read.problem
            own = Worker(replace(ready, reads=None), (read.key,) if read.key else (), unfollowed)
            before = self._workers.get(toolchain.key, own)
            self._workers[toolchain.key] = Worker(own.ready, tuple(dict.fromkeys((*own.keys, *before.keys))))
            if self.context.cache and read.key:
                self.context.cache.keep_fact(read.key, own.ready.to_json())
        self._said[fork_server.folder] = own
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
        firsts = {prepared.first_key(key): key for key in worker.keys if key not in prepared.asked}
        return self._earlier.one(prepared.cell, firsts)

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """What outcomes of this run follow from, by their content keys."""
        ready = {key: worker.ready.to_json() for worker in self._workers.values() for key in worker.keys}
        return self.answers.inputs_of(keys, ready)


def _read(fact: dict[str, Any] | None) -> Ready | None:
    try:
        return Ready.from_json(fact) if fact else None
    except WireError:
        return None  # a cache of another time: the worker is asked again


def _not_installed(wanted: str, absent: str) -> Outcome:
    advice = f"run `cumatrix toolkits install {wanted}`, or `cumatrix toolkits install --cases`"
    return Outcome(status=Status.UNAVAILABLE, reason=absent or f"{wanted} is not installed: {advice}")
