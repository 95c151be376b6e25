"""The request of a run, from the command line, the API or pytest, and the parts of this machine that serve it.

A trace has Chrome's "Trace Event Format"
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): spans in microseconds, with one track
per thread.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from harness.diagnostics import hint
from harness.engine.cache import ResultCache, ResultStore
from harness.engine.environment import Environment, look
from harness.engine.environments import requested_environments
from harness.engine.file_states import Roots
from harness.engine.machine import Devices, find_devices, find_sanitizer
from harness.engine.program_axes import Finder
from harness.environments.releases import is_version, parse_pythons
from harness.errors import PartUnavailable, UsageError
from harness.model import Case, Toolchain
from harness.plugins import problems
from harness.protocol.messages import Limits
from harness.records.files import ArtifactFolder
from harness.toolkits import LibraryStore, ToolkitStore
from harness.toolkits.store import data_folder


class Trace:
    """Spans of the threads of one run; thread-safe.

    Parameters
    ----------
    path : Path or None
        File that `write` creates; None records nothing.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._began, self._day = time.perf_counter_ns(), time.time()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []
        self._tracks: dict[int, int] = {}
        if path:
            self.write()  # fails early: before anything is compiled

    @contextmanager
    def span(self, name: str, **details: str | float) -> Iterator[None]:
        """Record the duration of the body on the track of this thread."""
        if not self.path:
            yield
            return
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self._add(name, started, time.perf_counter_ns(), details)

    def write(self) -> None:
        """Write the spans recorded so far.

        Raises
        ------
        UsageError
            If the file cannot be written.
        """
        if not self.path:
            return
        with self._lock:
            other = {"began": self._day}  # seconds since 1970 at timestamp 0
            text = json.dumps({"traceEvents": self._events, "displayTimeUnit": "ms", "otherData": other})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, "ascii")
        except OSError as error:
            raise UsageError(f"--trace: cannot write {self.path}: {error.strerror}") from None

    def _add(self, name: str, started: int, ended: int, details: dict[str, str | float]) -> None:
        with self._lock:
            place = {"pid": os.getpid(), "tid": self._track()}
            times = {"ts": (started - self._began) / 1000, "dur": (ended - started) / 1000}
            self._events.append({"name": name, "ph": "X", **place, **times, "args": details})

    def _track(self) -> int:
        thread = threading.current_thread()
        assert thread.ident is not None
        if thread.ident not in self._tracks:
            lane = self._tracks[thread.ident] = len(self._tracks)
            name = "scheduler" if thread is threading.main_thread() else thread.name
            where = {"pid": os.getpid(), "tid": lane}
            self._events.append({"name": "thread_name", "ph": "M", **where, "args": {"name": name}})
        return self._tracks[thread.ident]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A user's request. Fields are named after the commands' parameters and hold the values as written.

    Parameters
    ----------
    cases : tuple of Path
        Folders of cases.
    programs : tuple of Case
        Programs of the project's configuration.
    selection : tuple of str
        Names, topics or paths of cases; empty for all.
    backends, toolkits, targets : str or None
        Axes; None selects values that fit the environment.
    where : str or None
        ``--where``: the condition that selects cells.
    python : str or None
        Interpreter of the environment under test; with `libraries`, Python versions of their environments
        (``3.9,3.13``).
    environment : str or None
        Name of the environment.
    require : tuple of str
        Requirements that the environment was created from.
    libraries : tuple of str
        ``--with``: library releases under test, each in its own environment (``cupy=12,13.0``).
    header_libraries : tuple of str
        ``--library``: versions of header libraries, instead of those in the cases.
    host_compilers : tuple of str
        ``--host-compiler``: host compilers for nvcc, instead of those in the cases.
    include : tuple of Path
        Additional include directories.
    order : str
        ``plan``, ``reverse`` or ``random``.
    shard : str or None
        ``2/5``: the second of five parts.
    costs : Path or None
        Records of an earlier run; their times balance shards.
    device : str
        ``auto``, ``none``, or numbers of CUDA devices.
    sanitize : bool
        Run compute-sanitizer over every launch.
    limits : Limits
        Limits of each cell.
    patient : bool
        Whether `harness.engine.machine.deadline` extends time limits; false if the user sets a limit.
    total_memory : int
        Memory limit of all cells together, in bytes; 0 for the machine's free memory.
    jobs : int or None
        Number of cells that compile at once; None for the number of cores.
    executor : str
        Name of the executor (`harness.engine.executor.EXECUTORS`); empty for threads of this process.
    no_cache : bool
        Compile everything and cache nothing.
    earlier : tuple of str
        ``--from``: results of other runs, reused for cells whose inputs have not changed.
    offline : bool
        Download nothing.
    trace : Path or None
        File for the trace of the run.
    artifacts : Path or None
        ``--keep-artifacts``: folder for cubins and PTX.
    """

    cases: tuple[Path, ...] = (Path("cases"),)
    programs: tuple[Case, ...] = ()
    selection: tuple[str, ...] = ()
    backends: str | None = None
    toolkits: str | None = None
    targets: str | None = None
    where: str | None = None
    python: str | None = None
    environment: str | None = None
    require: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    header_libraries: tuple[str, ...] = ()
    host_compilers: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    order: str = "plan"
    shard: str | None = None
    costs: Path | None = None
    device: str = "auto"
    sanitize: bool = False
    limits: Limits = field(default_factory=Limits)
    patient: bool = False
    total_memory: int = 0
    jobs: int | None = None
    executor: str = ""
    no_cache: bool = False
    earlier: tuple[str, ...] = ()
    offline: bool = False
    trace: Path | None = None
    artifacts: Path | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], **more: Any) -> Self:
        """Create the request from a command's click parameters; `more` holds fields without an option."""
        names = {each.name for each in fields(cls)}
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        patient = given["timeout"] is None
        seconds = Limits.seconds if patient else given["timeout"]
        limits = Limits(seconds=seconds, memory=given["memory"], rlimits=dict(given["rlimits"]))
        return cls(
            **{name: value for name, value in given.items() if name in names}
            | {"limits": limits, "patient": patient}
            | more
        )

    @property
    def python_versions(self) -> str | None:
        """Python versions for the environments of ``--with``; None if ``--python`` names an interpreter."""
        words = (self.python or "").split(",")
        return self.python if self.libraries and self.python and all(map(is_version, words)) else None

    @property
    def interpreter(self) -> str | None:
        """The interpreter of the existing environment; None for cumatrix's own.

        Raises
        ------
        UsageError
            If ``--python`` names versions of Python without ``--with``.
        """
        if self.python_versions:
            return None
        if self.python and re.fullmatch(r"\d[^/]*", self.python):
            if self.libraries:
                parse_pythons(self.python)  # raises a more specific error for an invalid version
            raise UsageError(
                f"--python {self.python}: versions are for the environments of --with; without it, name an interpreter by its path"
            )
        return self.python


@dataclass(frozen=True)
class RunContext:
    """A request, and the parts of this machine that serve it.

    Parameters
    ----------
    environment : Environment
        The existing environment under test.
    store : ToolkitStore
        The installed toolkits.
    cache : ResultStore or None
        Outcomes of earlier runs; None compiles everything.
    request : RunRequest
        The request.
    devices : Devices
        The real devices that cells may run on.
    others : tuple of Environment
        Additional environments under test, one per release of ``--with``; their names are unique.
    sanitizer : str
        Path of the compute-sanitizer that checks every launch; empty for none.
    artifacts : ArtifactFolder or None
        Folder for cubins and PTX; a cell whose artifact is missing from it is compiled despite a cached result.
    trace : Trace
        Spans of the runners.
    finder : Finder
        Headers outside of releases, each looked up once.
    absent : str
        Reason of cells with missing parts if installation is off; if empty, each reason has the command for its part.
    named : Roots or None
        Names of folders, for a run that another machine requested.
    """

    environment: Environment
    store: ToolkitStore
    cache: ResultStore | None
    request: RunRequest = field(default_factory=RunRequest)
    devices: Devices = field(default_factory=Devices)
    others: tuple[Environment, ...] = ()
    sanitizer: str = ""
    artifacts: ArtifactFolder | None = None
    trace: Trace = field(default_factory=Trace)
    finder: Finder = field(default_factory=Finder, compare=False)
    absent: str = ""
    named: Roots | None = None

    @cached_property
    def roots(self) -> Roots:
        """Names that replace this machine's folders in keys."""
        return self.named or Roots.of(self.environment.python)

    def asking(self, **changes: Any) -> RunContext:
        """Return the same context for a request with other values of some fields."""
        return replace(self, request=replace(self.request, **changes))

    def environment_of(self, toolchain: Toolchain) -> Environment:
        """Return the environment that the cells of a toolchain run in."""
        return next((each for each in self.others if each.name == toolchain.environment), self.environment)

    @property
    def name(self) -> str:
        """The run's name: that of its environment, or the names of the libraries under test."""
        if not self.others or self.environment.named:
            return self.environment.name
        return "+".join(dict.fromkeys(each.library for each in self.others))

    @cached_property
    def tools(self) -> Path:
        """Folder of the helper libraries that cumatrix builds."""
        return data_folder() / "tools"


def prepare(request: RunRequest, finder: Finder | None = None) -> RunContext:
    """Inspect the environment and the machine's devices, and open the cache.

    Raises
    ------
    UsageError, PartUnavailable
        If a part that the request names is missing.
    """
    trace = Trace(request.trace)
    for problem in problems():
        hint(problem)
    # Each check starts a process; neither depends on the other.
    with trace.span("look at the environment"), ThreadPoolExecutor(1) as pool:
        found = pool.submit(find_devices, request.device)
        environment = look(request.interpreter, name=request.environment, require=request.require)
        devices = found.result()
    cache: ResultStore | None = None if request.no_cache else ResultCache.if_there_is_room()
    if request.earlier:
        from harness.engine.earlier_results import Earlier, read_source  # imported for --from only

        with trace.span("read earlier results"):
            cache = Earlier(cache, Roots.of(environment.python), [read_source(place) for place in request.earlier])
    store = ToolkitStore()
    store.sweep()
    LibraryStore().sweep()
    if request.sanitize and not devices.items:
        raise PartUnavailable(f"--sanitize needs a CUDA device, and there is none: {devices.problem}")
    return RunContext(
        environment, store, cache, request, devices,
        others=requested_environments(
            request.libraries, request.toolkits, request.python_versions, offline=request.offline,
            there=environment if request.interpreter else None,
        ) if request.libraries else (),
        sanitizer=find_sanitizer([toolkit.home for toolkit in store.installed()]) if request.sanitize else "",
        artifacts=ArtifactFolder(request.artifacts) if request.artifacts else None,
        trace=trace,
        finder=finder or Finder(offline=request.offline),
    )  # fmt: skip
