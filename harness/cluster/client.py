"""The client of a Dask cluster (``--dask``), existing or started here, whose workers compile the cells of a run.

If a worker is lost, Dask counts that against every task assigned to it, including waiting ones.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from harness.cluster.source_transfer import Sent, collect, digests, has
from harness.engine.context import RunContext
from harness.engine.executor import Run
from harness.engine.fingerprints import engine_digest
from harness.engine.install import with_made
from harness.engine.machine import Devices, Need, available, usable_cores
from harness.engine.plan import cost_of
from harness.engine.prepared import Result
from harness.errors import PartUnavailable, UsageError, needs
from harness.model import Cell, Diagnostic, Outcome, Stage, Status, Toolchain
from harness.records.plan import Inputs

if TYPE_CHECKING:
    from harness.cluster.worker import WorkerResults


_SECONDS = 2.0
"""Seconds for the cells of one task: a lost worker repeats at most that much, and the end of a run waits for it."""
_CELLS = 50
_TASKS = 8  # per core at least, so that all cores finish at about the same time


@dataclass(frozen=True)
class Task:
    """Cells of one toolchain for one worker, which compiles them one after another."""

    cells: tuple[Cell, ...]
    memory: int


@dataclass(frozen=True)
class Done:
    """The outcome of a task: the worker's results, or the cluster's error."""

    task: Task
    answer: WorkerResults | None
    problem: str = ""


def tasks_of(
    cells: Sequence[tuple[Cell, Need]], slots: int, seconds: Callable[[Cell], float] | None = None
) -> list[Task]:
    """Group cells into tasks of one toolchain each, long cells first, small enough that all workers finish together.

    Parameters
    ----------
    cells : sequence of tuple
        Cells with their estimated needs.
    slots : int
        Number of concurrent cells.
    seconds : callable, optional
        Estimated seconds of an unmeasured cell.
    """
    guess = seconds or _guess
    times = {id(cell): need.seconds or guess(cell) for cell, need in cells}
    budget = min(_SECONDS, sum(times.values()) / (slots * _TASKS))
    # Many cells may share a toolchain: their tasks are adjacent, so that fork servers are reused.
    rank: defaultdict[Toolchain, float] = defaultdict(float)
    for cell, _ in cells:
        rank[cell.toolchain] += times[id(cell)]
    found: list[Task] = []
    ordered = sorted(cells, key=lambda pair: (-rank[pair[0].toolchain], pair[0].toolchain.name, -times[id(pair[0])]))
    held: list[Cell] = []
    memory, took = 0, 0.0
    for cell, need in ordered:
        if held and (cell.toolchain != held[0].toolchain or took + times[id(cell)] > budget or len(held) >= _CELLS):
            found.append(Task(tuple(held), memory))
            held, memory, took = [], 0, 0.0
        held.append(cell)
        memory, took = max(memory, need.memory), took + times[id(cell)]
    return [*found, Task(tuple(held), memory)] if held else found


def _guess(cell: Cell) -> float:
    return cost_of(cell, {})


_ALONE = 2
"""Workers that may be lost with a cell that runs alone; one may be lost by chance."""
_LOOK_AT_SUSPECTS = 0.5  # seconds
WHY = "one worker after another was lost while this cell ran there"


class Workers(Protocol):
    """The interface to a cluster's workers."""

    def workers(self) -> Mapping[str, Any]:
        """Return the connected workers, by address."""

    def runs(self, task: Task, worker: str) -> bool:
        """Return whether a worker has the resources of a task."""

    def submit(self, task: Task, worker: str = "") -> Any:
        """Submit a task, optionally to one worker only, and return its future."""

    def forget(self, future: Any) -> None:
        """Cancel the task."""

    def ended(self, seconds: float) -> tuple[Task, Any] | None:
        """Return the next task that has ended; None if none ends within that time."""

    def answer(self, task: Task, future: Any) -> Done | None:
        """Return the result of a finished task; None if it was lost with its worker."""


def one_by_one(cluster: Workers, tasks: Iterable[Task]) -> Iterator[Done]:
    """Run tasks of one cell each, at most one per worker at a time."""
    waiting = deque(tasks)
    lost: Counter[str] = Counter()  # by cell id
    at: dict[str, tuple[Task, Any]] = {}
    while waiting or at:
        there = cluster.workers()
        for worker in [worker for worker in at if worker not in there]:
            task, future = at.pop(worker)
            cluster.forget(future)
            name = task.cells[0].id
            lost[name] += 1
            if lost[name] < _ALONE:
                waiting.append(task)
            else:
                yield Done(task, None, WHY)
        for worker in there:
            fitting = next((task for task in waiting if cluster.runs(task, worker)), None)
            if worker not in at and fitting:
                waiting.remove(fitting)
                at[worker] = (fitting, cluster.submit(fitting, worker))
        if there and not at:
            yield from (Done(task, None, WHY) for task in waiting)  # the workers with the required resources are gone
            return
        found = cluster.ended(_LOOK_AT_SUSPECTS)
        for worker, (task, future) in list(at.items()):
            if found and found[1] is future and (done := cluster.answer(task, future)):
                del at[worker]
                cluster.forget(future)
                yield done


_WAIT = 300.0
"""Seconds to wait for a worker: batch systems (Slurm, PBS) start workers when resources are free."""
_GATHER = 10.0  # seconds for a result to arrive from its worker
_LOST = 3  # workers that may be lost with a task
_LOOK = 2.0  # seconds between checks of the workers
MEMORY, GPU = "MEMORY", "GPU"
"""Dask resources that workers may declare: bytes, and devices."""


class Cluster:
    """A connection to a Dask cluster; as a context manager, it ends the processes that this run started there.

    Parameters
    ----------
    place : str
        Address of a scheduler (``tcp://host:8786``), its file (``scheduler.json``), or ``local:4`` for four worker
        processes here.
    jobs : int or None
        Number of concurrent cells on all workers of this machine together; None for the number of cores.

    Raises
    ------
    UsageError, PartUnavailable
        If the cluster does not exist, or Dask is not installed.
    """

    def __init__(self, place: str, jobs: int | None = None) -> None:
        self.local = _local(place)
        if jobs and not self.local:
            raise UsageError(
                "-j is for this machine; how many cells a worker compiles at a time is its number of threads (--nthreads)"
            )
        try:
            import distributed
        except ImportError as error:
            raise needs("--dask", "cluster", error) from None
        import dask

        dask.config.set({"distributed.scheduler.allowed-failures": _LOST - 1})
        self.memory = available() // self.local if self.local else 0
        self._cluster: Any = None
        if self.local:
            threads = max(1, (jobs or usable_cores()) // self.local)
            self._cluster = distributed.LocalCluster(
                n_workers=self.local, threads_per_worker=threads, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1",
                memory_limit=0, resources={MEMORY: self.memory}, silence_logs=50,
            )  # fmt: skip
        try:
            self.client = distributed.Client(self._cluster or _scheduler(place), timeout=30, set_as_default=False)
        except (OSError, ValueError, TypeError, KeyError) as error:
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise PartUnavailable(f"--dask {place}: no scheduler answers there: {why}") from None
        self._name = f"cumatrix-{os.urandom(6).hex()}"
        self._begun = False
        self._devices: dict[str, set[str]] = {}
        self._done: queue.SimpleQueue[tuple[Task, Any]] = queue.SimpleQueue()
        self._left: set[Any] = set()
        self._alone = time.monotonic()
        self.messages: list[str] = []

    def devices(self, device: str) -> Devices:
        """Wait for a worker, and return the devices of all workers (none if `device` is ``none``).

        Raises
        ------
        PartUnavailable
            If no worker connects, or a worker has another version of cumatrix.
        """
        from harness.cluster.worker import about

        self._wait()
        try:
            found = self.client.run(about, device)
        except Exception as error:  # noqa: BLE001 (errors of workers arrive unchanged)
            raise PartUnavailable(
                f"--dask: a worker cannot run cumatrix ({str(error).splitlines()[0] if str(error) else type(error).__name__}): install the same version there, and distributed"
            ) from None
        _same_version({worker: digest for worker, (digest, _) in found.items()})
        self._devices = {worker: {item.name for item in devices.items} for worker, (_, devices) in found.items()}
        items = {item.name: item for _, devices in found.values() for item in devices.items}
        return Devices(tuple(items.values()), problem="" if items else "no worker has one")

    def start(self, context: RunContext, cells: Sequence[Cell]) -> ClusterRun:
        """Start an engine for this run on every worker, including those that join later.

        Raises
        ------
        UsageError
            If the request has ``--keep-artifacts``.
        """
        from harness.cluster.worker import EnginePlugin, WorkerRequest

        if context.artifacts:
            raise UsageError("--keep-artifacts and --dask exclude each other: artifacts are on the cluster's machines")
        here, programs = Path.cwd(), {} if self.local else digests(cells, Path.cwd())
        shares = bool(self.local) or all(self.client.run(has, programs).values())
        memory = context.request.total_memory // (self.local or 1) or self.memory
        request = WorkerRequest(
            engine=engine_digest(), request=replace(context.request, programs=(), total_memory=memory),
            environment=context.environment, others=context.others, sanitizer=context.sanitizer,
            own_python=context.environment.python == sys.executable, same_machine=bool(self.local),
            sent=Sent(str(here)) if shares else collect(cells, context.request.include, here),
        )  # fmt: skip
        self._begun = True
        self.client.register_plugin(EnginePlugin(self._name, request), name=self._name)
        return ClusterRun(with_made(context), self)

    def run(self, cells: Sequence[tuple[Cell, Need]]) -> Iterator[Done]:
        """Yield the cells' results, a task at a time as tasks end; the cells of a lost worker run again."""
        slots = sum(worker["nthreads"] for worker in self.workers().values()) or 1
        tasks = tasks_of(cells, slots)
        for task in tasks:
            self.submit(task)
        count, suspects = len(tasks), list[Task]()
        while count:
            if not (ended := self.ended(_LOOK)) or not (done := self.answer(*ended)):
                continue
            self.forget(ended[1])
            count -= 1
            if done.answer is None:
                suspects += [Task((cell,), done.task.memory) for cell in done.task.cells]
            else:
                yield done
        yield from one_by_one(self, suspects)

    def close(self) -> None:
        """End every process of this run, here and on the workers."""
        try:
            if self._left:
                self.client.cancel(list(self._left), force=True)
            if self._begun:
                self.client.unregister_worker_plugin(self._name)
        except Exception as error:  # noqa: BLE001 (a cluster that is gone has no processes left)
            self.messages.append(f"--dask: the cluster was gone before the run closed it: {type(error).__name__}")
        self.client.close(10)
        if self._cluster:
            self._cluster.close(15)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def submit(self, task: Task, worker: str = "") -> Any:
        """Submit a task, optionally to one worker only, and return its future."""
        from harness.cluster.worker import compile_cells

        device = task.cells[0].toolchain.device
        having = [place for place, names in self._devices.items() if device in names] if device else None
        future = self.client.submit(
            compile_cells, self._name, task.cells, pure=False, resources=_resources(task, self.workers()) or None,
            workers=[worker] if worker else having,
        )  # fmt: skip
        self._left.add(future)
        self._watch(task, future)
        return future

    def runs(self, task: Task, worker: str) -> bool:
        """Return whether a worker has the device of a task."""
        device = task.cells[0].toolchain.device
        return not device or device in self._devices.get(worker, ())

    def forget(self, future: Any) -> None:
        """Cancel the task."""
        self._left.discard(future)
        if not future.done():
            future.cancel(force=True)
        future.release()

    def _watch(self, task: Task, future: Any) -> None:
        future.add_done_callback(lambda ended: self._done.put((task, ended)))

    def workers(self) -> dict[str, Any]:
        """Return the connected workers, by address."""
        found: dict[str, Any] = self.client.scheduler_info(-1)["workers"]
        return found

    def _wait(self) -> None:
        try:
            self.client.wait_for_workers(1, timeout=_WAIT)
        except (TimeoutError, OSError):
            raise PartUnavailable(f"--dask: no worker has come to the cluster in {_WAIT:.0f} s") from None

    def ended(self, seconds: float) -> tuple[Task, Any] | None:
        """Return the next task that has ended; None if none ends within that time.

        Raises
        ------
        PartUnavailable
            If the scheduler is gone, or the cluster has had no worker for a long time.
        """
        try:
            found = self._done.get(timeout=seconds)
        except queue.Empty:
            if self.client.status == "closed":
                raise PartUnavailable("--dask: the scheduler has gone") from None
            if self.workers():
                self._alone = time.monotonic()
            elif time.monotonic() - self._alone > _WAIT:
                raise PartUnavailable(f"--dask: the cluster has had no worker for {_WAIT:.0f} s") from None
            return None
        self._alone = time.monotonic()
        return found

    def answer(self, task: Task, future: Any) -> Done | None:
        """Return the result of a finished task; None if it has not arrived in time."""
        from distributed import KilledWorker

        try:
            return Done(task, future.result(timeout=_GATHER))
        except TimeoutError:
            self._watch(task, future)
            return None
        except KilledWorker:
            return Done(task, None, WHY)


def _same_version(digests: Mapping[str, str]) -> None:
    """Check that the workers have this machine's version of cumatrix (`engine_digest`)."""
    for worker, digest in sorted(digests.items()):
        if digest != engine_digest():
            raise PartUnavailable(
                f"--dask: {worker} has another version of cumatrix than this machine: install the same one there"
            )


def _resources(task: Task, workers: Mapping[str, Any]) -> dict[str, float]:
    """Return the declared Dask resources that a task takes, at most as much as the largest worker has."""
    declared: dict[str, float] = {}
    for worker in workers.values():
        for name, amount in (worker.get("resources") or {}).items():
            declared[name] = max(declared.get(name, 0), amount)
    wanted = {MEMORY: float(task.memory), **({GPU: 0.25} if task.cells[0].toolchain.device else {})}
    return {name: min(amount, declared[name]) for name, amount in wanted.items() if name in declared}


def lost(problem: str) -> Outcome:
    """Return the outcome of a cell that was lost with its workers."""
    crash = Diagnostic(severity="fatal", message=problem, fingerprint="crash")
    return Outcome(status=Status.CRASHED, stage=Stage.COMPILE, reason=problem, diagnostics=(crash,))


def _scheduler(place: str) -> str:
    """Return the address of a scheduler that accepts connections, because Dask's client fails with a long message.

    Raises
    ------
    OSError, ValueError, TypeError, KeyError
        If the address is invalid, or no scheduler listens there.
    """
    from distributed.comm.addressing import get_address_host_port

    address = str(json.loads(Path(place).read_bytes())["address"]) if place.endswith(".json") else place
    socket.create_connection(get_address_host_port(address), timeout=10).close()
    return address


def _local(place: str) -> int:
    """Return the number of workers to start here; 0 for an existing cluster."""
    name, _, count = place.partition(":")
    if name != "local":
        return 0
    if not (count or "2").isdigit() or not 1 <= int(count or "2") <= 256:
        raise UsageError(f"--dask {place}: write local:4 for four worker processes on this machine")
    return int(count or "2")


class ClusterRun(Run):
    """Resolves cells here; a cluster's workers compile the others, including those with parts that are missing here.

    Parameters
    ----------
    context : RunContext
        The request, and the parts of this machine.
    cluster : Cluster
        The cluster; its workers have an engine for this run.
    """

    def __init__(self, context: RunContext, cluster: Cluster) -> None:
        super().__init__(context)
        self.cluster = cluster
        self._inputs = Inputs()

    def results(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Yield results as they finish; those of cells without compilation come first."""
        waiting: list[tuple[Cell, Need]] = []
        for cell, resolved in zip(cells, self.resolver.resolve_all(cells), strict=True):
            # A worker may have, or install, a part that is missing here.
            if isinstance(resolved, Result) and resolved.outcome.status is not Status.UNAVAILABLE:
                yield resolved
            else:
                waiting.append((cell, self.resolver.needs.of(cell)))
        for done in self.cluster.run(waiting) if waiting else ():
            if done.answer is None:
                yield from (Result(cell, lost(done.problem)) for cell in done.task.cells)
                continue
            self._inputs |= done.answer.inputs
            self.resolver.finisher.unkept.update(done.answer.unkept)
            self.cluster.messages += [text for text in done.answer.messages if text not in self.cluster.messages]
            for cell, (outcome, cached, key) in zip(done.task.cells, done.answer.results, strict=True):
                if outcome.status not in (Status.CRASHED, Status.TIMED_OUT) and not cached:
                    self.resolver.needs.learn(cell, outcome)
                yield Result(cell, outcome, cached, key)

    @property
    def notes(self) -> list[str]:
        """Sentences for the user."""
        return self.cluster.messages

    def inputs(self, keys: Iterable[str]) -> Inputs:
        """Return the inputs of this run's outcomes, by their content keys."""
        wanted = set(keys)
        return super().inputs(wanted) | self._inputs.of(wanted)

    def close(self) -> None:
        """End the started processes here and on the workers, and save the learned facts."""
        self.cluster.close()
        super().close()
