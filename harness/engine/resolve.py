"""Resolution of cells: each one becomes a cached result, or a prepared cell for a compiler."""

from __future__ import annotations

import json
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.rules import options_for
from harness.engine.cache import ResultStore, batches, lasting
from harness.engine.context import RunContext
from harness.engine.fingerprints import AnswerKey, Answers
from harness.engine.fork_server import Compiled, ForkServer, ForkServerDied, hash_meanwhile
from harness.engine.machine import Needs
from harness.engine.prepared import (
    Common,
    HeaderLibraries,
    Jobs,
    OtherToolkits,
    PreparedCell,
    Result,
    Worker,
    first_key,
    source_of,
)
from harness.engine.reads import DIRECTORY, TIME, Reads, marks_of, reads_of
from harness.engine.toolchain import PreparedToolchain, without_part
from harness.errors import PartUnavailable
from harness.model import Cell, Headers, Outcome, Status, Toolchain
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.protocol.codec import WireError
from harness.protocol.messages import Ready
from harness.records.files import ArtifactFolder
from harness.records.plan import Inputs
from harness.toolkits.header_libraries import observed_version
from harness.toolkits.store import note


class Finisher:
    """Finishes the results of one run; thread-safe.

    Parameters
    ----------
    context : RunContext
        The request, and the parts of this machine.
    answers : Answers
        Cache keys of results.
    needs : Needs
        Estimates that learn from each result's memory and time.
    libraries : HeaderLibraries
        The header libraries of cells.

    Attributes
    ----------
    unkept : Counter
        Number of results that were not cached, by reason.
    """

    def __init__(self, context: RunContext, answers: Answers, needs: Needs, libraries: HeaderLibraries) -> None:
        self.context = context
        self.answers = answers
        self.needs = needs
        self.libraries = libraries
        self.unkept: Counter[str] = Counter()

    def finish(self, prepared: PreparedCell, worker: Worker, compiled: Compiled) -> Result:
        """Return the result of a compiled cell, and cache it if the recorded reads determine it."""
        cell, toolchain = prepared.cell, prepared.toolchain
        assert toolchain.headers is not None
        outcome, reads = compiled.outcome, compiled.reads
        found_files = (path for path, found in reads.states.items() if found not in (None, DIRECTORY))
        if remark := note(toolchain.headers.home, found_files):
            outcome = replace(outcome, notes=(*outcome.notes, remark))
        if outcome.status not in (Status.CRASHED, Status.TIMED_OUT):  # these may have been about to use more
            self.needs.learn(cell, outcome)
        outcome = without_part(outcome, cell.toolchain.toolkit, toolchain.include, source_of(cell))
        libraries = {
            name: observed_version(cell.case.libraries[name], found)
            for name, found in self.libraries.of(cell).items()
            if found
        }
        observed = {**toolchain.observed(worker.ready), **({"libraries": libraries} if libraries else {})}
        outcome = replace(outcome, observed={**observed, **outcome.observed})
        return Result(cell, outcome, key=self._keep(prepared, worker, outcome, reads))

    def _keep(self, prepared: PreparedCell, worker: Worker, outcome: Outcome, reads: Reads) -> str:
        first = prepared.first_key(worker.keys[0]) if worker.keys else ""
        if first:
            self.answers.workers[first] = worker.keys[0]
        second = self._second(prepared, first, reads) if first else AnswerKey("", worker.unfollowed)
        if self.context.cache and not prepared.cell.toolchain.device and lasting(outcome):
            if second.key:
                self.context.cache.keep_outcome(second.key, outcome)
            elif second.problem:
                self.unkept[second.problem] += 1
        return second.key

    def _second(self, prepared: PreparedCell, first: str, reads: Reads) -> AnswerKey:
        definitions = json.dumps([prepared.job.definitions, prepared.job.options]).encode()
        if TIME in marks_of(definitions, ""):
            return AnswerKey("", "a macro or an option uses __TIME__, __DATE__ or __TIMESTAMP__")
        folder = str(prepared.job.source.parent)
        builds = prepared.toolchain.environment.builds.values()
        libraries = tuple(f"{os.path.join(each.folder, each.module)}/" for each in builds)
        return self.answers.key_of(first, reads, (f"{folder}/", f"{os.path.realpath(folder)}/"), libraries)


class ForkServers:
    """Fork servers by toolchain; of the idle ones, the most recently used stays longest.

    Parameters
    ----------
    keep : int
        Maximum number of idle fork servers.
    before_end : callable
        Called before a fork server is ended during the run, because the files of its cells are removed with it.

    Attributes
    ----------
    closed : bool
        Whether the run is over.
    running : OrderedDict
        Fork servers by toolchain; the most recently used one is last.
    """

    def __init__(self, keep: int = 1, before_end: Callable[[], None] = lambda: None) -> None:
        self.keep = keep
        self.before_end = before_end
        self.closed = False
        self.running: OrderedDict[Toolchain, ForkServer] = OrderedDict()

    def of(self, toolchain: PreparedToolchain) -> ForkServer:
        """Return the fork server of a toolchain, and start one if necessary; it may not be ready yet.

        Raises
        ------
        ForkServerDied
            If `close` was called in the meantime.
        """
        name = toolchain.toolchain
        fork_server = self.running.get(name)
        if fork_server is not None and fork_server.gone:
            self.end(toolchain)  # it ended after an earlier cell
            fork_server = None
        if fork_server is None:
            if len(self.running) >= self.keep:
                self.before_end()
            while len(self.running) >= self.keep:
                self.running.popitem(last=False)[1].close()
            # Registered before it is ready, so that Ctrl-C does not wait for a library to load.
            fork_server = self.running[name] = toolchain.fork_server()
            if self.closed:  # `close` was called during the start and missed it
                self.end(toolchain)
                raise ForkServerDied("the run is over")
        if name in self.running:
            self.running.move_to_end(name)
        return fork_server

    def end(self, toolchain: PreparedToolchain) -> None:
        """End the fork server of a toolchain; the next cell starts another one."""
        self.before_end()
        fork_server = self.running.pop(toolchain.toolchain, None)
        if fork_server is not None:
            fork_server.close()

    def close(self) -> None:
        """End every fork server with all of its processes."""
        self.closed = True
        while self.running:
            try:
                fork_server = self.running.popitem()[1]
            except KeyError:
                return  # the runner's thread and the interrupting thread may both get here
            fork_server.close()


Firsts = Mapping[str, str]
"""First cache keys of a cell, each with the key of its worker."""


class LookUp:
    """Finds results of cells in the cache.

    Parameters
    ----------
    cache : ResultStore or None
        The cache; None finds nothing.
    answers : Answers
        Cache keys of results.
    artifacts : ArtifactFolder, optional
        Folder of kept artifacts: a cached result is ignored if its artifact is missing there.
    """

    def __init__(self, cache: ResultStore | None, answers: Answers, artifacts: ArtifactFolder | None = None) -> None:
        self.cache = cache
        self.artifacts = artifacts
        self.answers = answers

    def all(self, requests: Sequence[tuple[Cell, Firsts]]) -> list[Result | None]:
        """Return the result of each cell, or None; reads the cache in two queries."""
        if self.cache:
            self.cache.read_ahead(self.answers.unread(chain.from_iterable(firsts for _, firsts in requests)))
        keys = [list(self._keys(firsts)) for _, firsts in requests]
        if self.cache:
            self.cache.read_ahead(chain.from_iterable(keys))
        return [self._first(cell, own, firsts) for (cell, firsts), own in zip(requests, keys, strict=True)]

    def one(self, cell: Cell, firsts: Firsts) -> Result | None:
        """Return the result of one cell, or None."""
        return self._first(cell, self._keys(firsts), firsts)

    def close(self) -> None:
        """Record the use of the cache."""
        if self.cache:
            self.cache.note_use()

    def _keys(self, firsts: Firsts) -> Iterable[str]:
        return chain.from_iterable(map(self.answers.keys, firsts))

    def _first(self, cell: Cell, keys: Iterable[str], firsts: Firsts) -> Result | None:
        if self.cache is None:
            return None
        for key in keys:
            if (outcome := self.cache.outcome(key)) and self._is_kept(outcome):
                first = self.answers.origins[key][0]
                self.answers.workers[first] = firsts[first]
                return Result(cell, outcome, True, key, self.cache.taken_from(key))
        return None

    def _is_kept(self, outcome: Outcome) -> bool:
        made = outcome.artifact
        return self.artifacts is None or made is None or self.artifacts.has(made.format, made.sha256, made.bytes)


_AT_A_TIME = 256


@dataclass(frozen=True)
class CellRequest:
    """A cell's cache question. It is smaller than the compile job, so a cache hit never builds the job."""

    cell: Cell
    toolchain: PreparedToolchain
    common: Common
    question: str
    worker: Worker | None


class Resolver:
    """Resolves the cells of one run, and keeps the reports of fork servers from this run and earlier ones; thread-safe.

    Parameters
    ----------
    context : RunContext
        The request, and the parts of this machine.

    Attributes
    ----------
    needs : Needs
        Estimates of the cells' memory and time.
    finisher : Finisher
        Finishes the results of compiled cells.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.answers = Answers(context.cache, context.roots)
        self.needs = Needs(context.cache)
        self._earlier = LookUp(context.cache, self.answers, context.artifacts)
        self._libraries = HeaderLibraries()
        self._tools = OtherToolkits(context.store)
        self._jobs = Jobs(context.request.include, context.request.limits, context.roots)
        self._toolchains: dict[Toolchain, PreparedToolchain] = {}
        self._workers: dict[str, Worker] = {}
        self._by_folder: dict[Path, Worker] = {}
        self.finisher = Finisher(context, self.answers, self.needs, self._libraries)
        # Last, so that no folder is left behind if one of the lines above is interrupted.
        self._steps = HeldFolder(temporary_folder(), TEMPORARY)

    def close(self) -> None:
        """Save the learned facts, and remove the files that the run's cells shared."""
        self.answers.close()
        self._earlier.close()
        self._steps.remove()

    def resolve(self, cell: Cell) -> Result | PreparedCell:
        """Return the result of a cell that needs no compilation; otherwise return its prepared cell."""
        (resolved,) = self.resolve_all([cell])
        return resolved

    def resolve_all(self, cells: Iterable[Cell]) -> Iterator[Result | PreparedCell]:
        """Resolve cells in order; cached results are looked up in batches."""
        for some in batches(cells, _AT_A_TIME):
            # A batch is resolved in full before its first cell is yielded: file states expire after two seconds.
            with self.context.trace.span("resolve"):
                resolved = list(self._look_up(list(map(self._ask_for, some))))
            yield from resolved

    def _ask_for(self, cell: Cell) -> Result | CellRequest:
        """Return the result of a cell that needs no compiler; otherwise return its cache question."""
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

    def _look_up(self, requests: Sequence[Result | CellRequest]) -> Iterator[Result | PreparedCell]:
        """Yield each result unchanged, and for each question the cached result or a prepared cell."""
        found = iter(
            self._earlier.all([(each.cell, self._firsts(each)) for each in requests if isinstance(each, CellRequest)])
        )
        for each in requests:
            yield each if isinstance(each, Result) else next(found) or self._prepared(each)

    def _firsts(self, request: CellRequest) -> dict[str, str]:
        # Results of a device are never reused.
        keys = request.worker.keys if request.worker and not request.cell.toolchain.device else ()
        return {first_key(key, request.question): key for key in keys}

    def _prepared(self, request: CellRequest) -> PreparedCell:
        cell, worker = request.cell, request.worker
        return PreparedCell(
            cell, request.toolchain, request.common.job_of(cell), self.context.request.limits, request.question, self.needs.of(cell),
            frozenset(worker.keys if worker else ()),
        )  # fmt: skip

    def toolchain(self, toolchain: Toolchain) -> PreparedToolchain:
        """Return a toolchain, prepared once per run."""
        if toolchain not in self._toolchains:
            self._toolchains[toolchain] = PreparedToolchain.of(
                toolchain, self.context.environment_of(toolchain), self.context.store, self.context.tools, self._steps.path,
                self.context.devices.variables if toolchain.device else {}, self.context.request.limits.memory, self.context.roots,
                self.context.absent,
            )  # fmt: skip
        return self._toolchains[toolchain]

    def worker(self, toolchain: PreparedToolchain) -> Worker | None:
        """Return the report of a toolchain's fork servers from this run or an earlier one; None before the first."""
        if toolchain.key not in self._workers and self.context.cache:
            for key in self.answers.keys(toolchain.key):
                if ready := _read(self.context.cache.fact(key)):
                    before = self._workers.get(toolchain.key, Worker(ready))
                    self._workers[toolchain.key] = replace(before, keys=(*before.keys, key))
        return self._workers.get(toolchain.key)

    def ask(self, prepared: PreparedCell, fork_servers: ForkServers) -> Result | ForkServer:
        """Return a ready fork server for the cell, or its result if a fork server's report or the cache has it.

        Parameters
        ----------
        prepared : PreparedCell
            The cell.
        fork_servers : ForkServers
            Source of the fork server, unless an earlier report shows that none can run the cell.
        """
        cell, toolchain = prepared.cell, prepared.toolchain
        before = self.worker(toolchain)
        if before and (refused := self.refused(cell, toolchain, before)):
            return refused  # another runner got the report first
        fork_server = self._loaded(toolchain, fork_servers)
        if fork_server.lost_loading:  # the cause may be unrelated to the backend
            fork_servers.end(toolchain)
            fork_server = self._loaded(toolchain, fork_servers)
        ready = fork_server.ready
        settled = self.refused(cell, toolchain, Worker(ready))
        if settled or before:  # otherwise nothing is cached yet, and the first cell compiles while its reads are hashed
            try:
                worker = self.started(toolchain, fork_server)
            except BaseException:
                fork_servers.end(toolchain)  # its report is lost: the next cell starts another one
                raise
            settled = settled or self.kept(prepared, worker)
        return settled or fork_server

    def _loaded(self, toolchain: PreparedToolchain, fork_servers: ForkServers) -> ForkServer:
        """Return a fork server that is ready or has a problem."""
        fork_server = fork_servers.of(toolchain)
        with self.context.trace.span("wait for the fork server"):
            if not toolchain.toolchain.device and not toolchain.unfollowed:
                hash_meanwhile(fork_server, self.answers.files)
            _ = fork_server.ready
        return fork_server

    def started(self, toolchain: PreparedToolchain, fork_server: ForkServer) -> Worker:
        """Record the report of a fork server once; reports of failed loads are kept for this run only.

        Returns
        -------
        Worker
            The worker of this fork server; its only key covers the files that the fork server read.
        """
        if fork_server.folder in self._by_folder:
            return self._by_folder[fork_server.folder]
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
        self._by_folder[fork_server.folder] = own
        return own

    def refused(self, cell: Cell, toolchain: PreparedToolchain, worker: Worker) -> Result | None:
        """Return the result of a cell that the worker cannot run: it failed to load, or lacks the target."""
        ready = worker.ready
        if ready.status:
            return Result(cell, Outcome(status=Status(ready.status), reason=ready.reason, log=ready.log))
        if unknown := toolchain.unknown_target(cell, ready):
            observed = toolchain.observed(ready)
            return Result(cell, Outcome(status=Status.UNSUPPORTED, reason=unknown, observed=observed))
        return None

    def kept(self, prepared: PreparedCell, worker: Worker) -> Result | None:
        """Return the cached result for the same question and the same files."""
        # Results of a device are never reused.
        if not self.context.cache or prepared.cell.toolchain.device:
            return None
        firsts = {prepared.first_key(key): key for key in worker.keys if key not in prepared.requested}
        return self._earlier.one(prepared.cell, firsts)

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """Return the inputs of this run's outcomes, by their content keys."""
        ready = {key: worker.ready.to_json() for worker in self._workers.values() for key in worker.keys}
        return self.answers.inputs_of(keys, ready)


def _read(fact: dict[str, Any] | None) -> Ready | None:
    try:
        return Ready.from_json(fact) if fact else None
    except WireError:
        return None  # a cache of another version: a fork server reports again


def _not_installed(wanted: str, absent: str) -> Outcome:
    advice = f"run `cumatrix toolkits install {wanted}`, or `cumatrix toolkits install --cases`"
    return Outcome(status=Status.UNAVAILABLE, reason=absent or f"{wanted} is not installed: {advice}")
