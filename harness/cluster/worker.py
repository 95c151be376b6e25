"""The engine of one run inside a Dask worker, and its tasks.

It uses the worker's cores, memory, devices, toolkits, fork servers and cache, and installs the missing parts that the
cells need.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from distributed import Worker, WorkerPlugin, get_worker

from harness.cluster.source_transfer import Places, Sent
from harness.engine.cache import ResultCache
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment, look
from harness.engine.executor import ThreadExecutor
from harness.engine.fingerprints import engine_digest
from harness.engine.install import install
from harness.engine.machine import DevicePool, Devices, Memory, available, find_devices
from harness.engine.prepared import Result
from harness.engine.resolve import Resolver
from harness.libraries import LIBRARIES
from harness.model import Cell, Outcome, Status, Toolchain
from harness.process_locks import TEMPORARY, HeldFolder, temporary_folder
from harness.records.plan import Inputs
from harness.toolkits import ToolkitStore

_IDLE = 120.0
"""Seconds without a cell after which an engine ends its fork servers, because the client may have been killed."""


@dataclass(frozen=True, kw_only=True)
class WorkerRequest:
    """A run as every worker receives it.

    Parameters
    ----------
    engine : str
        Hash of the client's cumatrix (`engine_digest`): another version has other cache keys.
    request : RunRequest
        The request; its memory limit applies to one worker.
    environment, others, sanitizer
        As in `RunContext`.
    own_python : bool
        Whether the environment's interpreter is cumatrix's own.
    same_machine : bool
        Whether the worker shares files and interpreter with the client.
    sent : Sent
        The programs.
    """

    engine: str
    request: RunRequest
    environment: Environment
    others: tuple[Environment, ...]
    sanitizer: str
    own_python: bool
    same_machine: bool
    sent: Sent


@dataclass
class WorkerResults:
    """The results of a few cells.

    Parameters
    ----------
    results : list of tuple
        For each cell, in order: its outcome, whether it was cached, and its content key.
    inputs : Inputs
        Inputs of the outcomes.
    unkept : Counter
        Number of outcomes that were not cached, by reason.
    messages : list of str
        Sentences for the user about failed installations.
    """

    results: list[tuple[Outcome, bool, str]] = field(default_factory=list)
    inputs: Inputs = field(default_factory=Inputs)
    unkept: Counter[str] = field(default_factory=Counter)
    messages: list[str] = field(default_factory=list)


class Engine:
    """Compiles cells on this machine; thread-safe for the threads of the worker.

    Parameters
    ----------
    request : WorkerRequest
        The run.
    slots : int
        Maximum number of concurrent cells.
    """

    def __init__(self, request: WorkerRequest, slots: int) -> None:
        self.request = request
        self.slots = slots
        self._folder = HeldFolder(temporary_folder(), TEMPORARY)
        self._lock = threading.Lock()
        self._places: Places | None = None
        self._context: RunContext | None = None
        self._memory: Memory | None = None
        self._devices: DevicePool | None = None
        self._resolvers: dict[str, Resolver] = {}
        self._ready: dict[object, RunContext] = {}
        self._idle: list[tuple[str, ThreadExecutor]] = []
        self._sent: set[str] = set()
        self._busy = 0
        self._last = time.monotonic()
        self._closed = threading.Event()
        threading.Thread(target=self._rest, name="cumatrix engine", daemon=True).start()

    def run(self, cells: Sequence[Cell]) -> WorkerResults:
        """Return the outcomes of cells of one toolchain, which run one after another."""
        answer = WorkerResults()
        if engine_digest() != self.request.engine:
            text = "the worker has another version of cumatrix than the run: install the same one there"
            answer.results = [(Outcome(status=Status.UNAVAILABLE, reason=text), False, "") for _ in cells]
            return answer
        with self._lock:
            places = self._lay_out()
            moved = [replace(cell, case=places.case(cell.case)) for cell in cells]
            resolver = self._resolver(moved, answer)
            executor = self._take(cells[0].toolchain, resolver)
        before = resolver.finisher.unkept.copy()
        try:
            for cell in moved:
                if not all(path.is_file() for path in cell.case.sources.values()):
                    lost = Outcome(status=Status.UNAVAILABLE, reason="the program is not on the worker's machine")
                    answer.results.append((lost, False, ""))
                    continue
                found = resolver.resolve(cell)
                (result,) = [found] if isinstance(found, Result) else executor.run([found])
                answer.results.append((result.outcome, result.cached, result.key))
        finally:
            self._give_back(cells[0].toolchain.environment, executor)
        answer.unkept = resolver.finisher.unkept - before
        answer.inputs = self._inputs(resolver, [key for _, _, key in answer.results if key])
        return answer

    def close(self) -> None:
        """End every started process."""
        self._closed.set()
        with self._lock:
            self._end(self._idle)
            self._idle = []
            for resolver in self._resolvers.values():
                resolver.close()
            self._resolvers.clear()
        self._folder.remove()

    def _lay_out(self) -> Places:
        if self._places is None:
            self._places = self.request.sent.lay_out(self._folder.path)
        return self._places

    def _resolver(self, cells: Sequence[Cell], answer: WorkerResults) -> Resolver:
        """Return the resolver of an environment, after the parts that the cells need are installed."""
        environment = cells[0].toolchain.environment
        wanted = (cells[0].toolchain, *(tuple(cell.variant.libraries.items()) for cell in cells))
        if wanted not in self._ready:
            found = install(
                cells,
                self._whole(),
                lambda _steps: lambda _step: nullcontext(),
                answer.messages.append,
            )
            self._ready[wanted] = found
            if environment not in self._resolvers:
                self._resolvers[environment] = Resolver(found)
        return self._resolvers[environment]

    def _whole(self) -> RunContext:
        """Return the context of this machine, with all environments."""
        if self._context is None:
            request = self.request
            places = self._lay_out()
            environment = request.environment if request.same_machine else _own(request)
            device = request.request.device
            devices = Devices() if device == "none" else find_devices(device if request.same_machine else "auto")
            context = RunContext(
                environment, ToolkitStore(), None if request.request.no_cache else ResultCache.if_there_is_room(),
                replace(request.request, include=tuple(map(places.of, request.request.include))), devices, request.others,
                request.sanitizer, named=places.roots(environment.python),
            )  # fmt: skip
            memory = request.request.total_memory or available()
            self._memory, self._devices = Memory(memory), DevicePool(devices)
            self._context = context
        return self._context

    def _take(self, toolchain: Toolchain, resolver: Resolver) -> ThreadExecutor:
        """Return an executor of this environment: an idle one, preferably with the toolchain's fork server, or a new one."""
        self._busy += 1
        free = [each for each in self._idle if each[0] == toolchain.environment]
        if free:
            chosen = next((each for each in free if toolchain in each[1].runners[0].fork_servers.running), free[-1])
            self._idle.remove(chosen)
            return chosen[1]
        if len(self._idle) + self._busy > self.slots:
            self._end(self._idle[:1])
            del self._idle[:1]
        return ThreadExecutor(resolver, memory=self._memory, devices=self._devices)

    def _give_back(self, environment: str, executor: ThreadExecutor) -> None:
        with self._lock:
            self._busy -= 1
            self._last = time.monotonic()
            if self._closed.is_set():
                self._end([(environment, executor)])
            else:
                self._idle.append((environment, executor))

    def _inputs(self, resolver: Resolver, keys: Sequence[str]) -> Inputs:
        """Return the inputs of outcomes, without the sets of files that were sent before."""
        found = resolver.inputs(keys)
        with self._lock:
            new = {name: paths for name, paths in found.sets.items() if name not in self._sent}
            self._sent.update(new)
        return replace(found, sets=new, states=found.states if new else {})

    def _rest(self) -> None:
        """End fork servers that have been idle for `_IDLE` seconds."""
        while not self._closed.wait(5):
            with self._lock:
                if self._idle and not self._busy and time.monotonic() - self._last > _IDLE:
                    self._end(self._idle)
                    self._idle = []

    @staticmethod
    def _end(executors: Sequence[tuple[str, ThreadExecutor]]) -> None:
        for _, executor in executors:
            executor.close()


def _own(request: WorkerRequest) -> Environment:
    """Return this machine's counterpart of the client's environment; libraries of another version are broken."""
    wanted = request.environment
    there = look(None if request.own_python else wanted.python, name=wanted.name)
    broken = dict(wanted.broken)
    for name in {name for library in LIBRARIES.values() for name in library.distributions} & set(wanted.distributions):
        version = wanted.distributions[name].version
        found = there.distributions[name].version if name in there.distributions else "no"
        if found != version:
            broken[name] = (
                f"the worker has {found} {name} and the run is for {version}: install {name}=={version} there"
            )
    return replace(there, broken=broken, named=wanted.named)


class EnginePlugin(WorkerPlugin):  # type: ignore[misc]  # Dask has no types here
    """The engine of a worker for one run; Dask creates it on all workers, including those that join later."""

    def __init__(self, name: str, request: WorkerRequest) -> None:
        self.name = name
        self.request = request
        self.engine: Engine | None = None

    def setup(self, worker: Worker) -> None:
        """Create the engine; Dask calls this when the plugin or the worker is added."""
        if self.request.same_machine and threading.current_thread() is threading.main_thread():
            # A terminal interrupts all of its processes; the client ends the workers.
            signal.signal(signal.SIGINT, _pass)
        self.engine = Engine(self.request, worker.state.nthreads)

    async def teardown(self, worker: Worker) -> None:
        """End every process of the engine; Dask calls this when the plugin or the worker is removed."""
        if self.engine:
            await asyncio.to_thread(self.engine.close)


def _pass(_number: int, _frame: object) -> None:
    """Ignore a signal; started programs would inherit ``SIG_IGN``."""


def compile_cells(name: str, cells: Sequence[Cell]) -> WorkerResults:
    """Run cells in the engine of the current worker; this is the task that Dask runs."""
    plugin = get_worker().plugins[name]
    assert isinstance(plugin, EnginePlugin) and plugin.engine is not None
    return plugin.engine.run(cells)


def about(device: str) -> tuple[str, Devices]:
    """Return the hash of a worker's cumatrix (`engine_digest`), and its devices."""
    return engine_digest(), Devices() if device == "none" else find_devices("auto")
