"""The request of a run, built once by the command line, the API or pytest, and this machine's resources for it.

A run's trace has the "Trace Event Format" of Chrome (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): spans in
microseconds, a lane for each thread.
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
from harness.engine.environments import others_of
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
    """Spans of the threads of one run; may be used by several threads at a time.

    Parameters
    ----------
    path : Path or None
        Where `write` puts them; None keeps none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._began, self._day = time.perf_counter_ns(), time.time()
        self._lock = threading.Lock()
        self._events: list[dict[str, Any]] = []
        self._lanes: dict[int, int] = {}
        if path:
            self.write()  # a path that cannot be written is known before anything is compiled

    @contextmanager
    def span(self, name: str, **details: str | float) -> Iterator[None]:
        """The time that the body takes, in the lane of this thread."""
        if not self.path:
            yield
            return
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self._add(name, started, time.perf_counter_ns(), details)

    def write(self) -> None:
        """Write what there is.

        Raises
        ------
        UsageError
            When the file cannot be written.
        """
        if not self.path:
            return
        with self._lock:
            other = {"began": self._day}  # seconds since 1970, of what is 0 here
            text = json.dumps({"traceEvents": self._events, "displayTimeUnit": "ms", "otherData": other})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(text, "ascii")
        except OSError as error:
            raise UsageError(f"--trace: cannot write {self.path}: {error.strerror}") from None

    def _add(self, name: str, started: int, ended: int, details: dict[str, str | float]) -> None:
        with self._lock:
            place = {"pid": os.getpid(), "tid": self._lane()}
            times = {"ts": (started - self._began) / 1000, "dur": (ended - started) / 1000}
            self._events.append({"name": name, "ph": "X", **place, **times, "args": details})

    def _lane(self) -> int:
        thread = threading.current_thread()
        assert thread.ident is not None
        if thread.ident not in self._lanes:
            lane = self._lanes[thread.ident] = len(self._lanes)
            name = "scheduler" if thread is threading.main_thread() else thread.name
            where = {"pid": os.getpid(), "tid": lane}
            self._events.append({"name": "thread_name", "ph": "M", **where, "args": {"name": name}})
        return self._lanes[thread.ident]


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """A user's request. Fields have the names of the commands' parameters, and the values as written.

    Parameters
    ----------
    cases : tuple of Path
        Folders of cases.
    programs : tuple of Case
        Programs of the project's configuration.
    selection : tuple of str
        Names, topics or paths of cases; empty for all.
    backends, toolkits, targets : str or None
        Axes; None for the ones that fit the environment.
    where : str or None
        ``--where``: a condition that cells must hold.
    python : str or None
        Interpreter of the environment under test; with `libraries`, versions of Python for theirs (``3.9,3.13``).
    environment : str or None
        Name of the environment.
    require : tuple of str
        Requirements that the environment was made for.
    libraries : tuple of str
        Releases of libraries under test, each in an environment of its own: ``cupy=12,13.0`` (``--with``).
    header_libraries : tuple of str
        ``--library``: versions of header libraries, in the place of those in the cases.
    host_compilers : tuple of str
        ``--host-compiler``: host compilers for nvcc, in the place of those that the cases name.
    include : tuple of Path
        Further include directories.
    order : str
        ``plan``, ``reverse`` or ``random``.
    shard : str or None
        ``2/5``: the second of five parts.
    costs : Path or None
        Records of an earlier run, whose times balance shards.
    device : str
        ``auto``, ``none``, or numbers of CUDA devices.
    sanitize : bool
        Run compute-sanitizer over every launch.
    limits : Limits
        Limits of each cell.
    patient : bool
        Whether time limits grow as `harness.engine.machine.deadline` says; false where the user sets one.
    total_memory : int
        Memory of all cells together, in bytes; 0 for the machine's free memory.
    jobs : int or None
        Cells that compile at once; None for the number of cores.
    executor : str
        Name of the executor (`harness.engine.executor.EXECUTORS`); empty for threads of this process.
    no_cache : bool
        Compile everything and keep nothing.
    earlier : tuple of str
        ``--from``: results of others, whose outcomes answer where nothing has changed.
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
        """The request of a command's parameters, as click gives them; `more` are fields that no option has."""
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
        """``--python`` where it names versions for the environments of ``--with``; None where it names an interpreter."""
        words = (self.python or "").split(",")
        return self.python if self.libraries and self.python and all(map(is_version, words)) else None

    @property
    def interpreter(self) -> str | None:
        """The interpreter of the existing environment; None for cumatrix's own.

        Raises
        ------
        UsageError
            On versions of Python without ``--with``.
        """
        if self.python_versions:
            return None
        if self.python and re.fullmatch(r"\d[^/]*", self.python):
            if self.libraries:
                parse_pythons(self.python)  # raises, with what is wrong
            raise UsageError(
                f"--python {self.python}: versions are for the environments of --with; without it, name an interpreter by its path"
            )
        return self.python


@dataclass(frozen=True)
class RunContext:
    """A request, and the parts of this machine that it runs with.

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
        Further environments under test, one for each release of ``--with``; each has a name of its own.
    sanitizer : str
        Path of compute-sanitizer, which then runs over every launch; empty for none.
    artifacts : ArtifactFolder or None
        Folder that keeps cubins and PTX; cells without any there are compiled, whatever the cache has.
    trace : Trace
        Spans of the runners.
    finder : Finder
        Headers of no release, each looked up once.
    absent : str
        The reason of cells with missing parts, if nothing may be installed; empty if each part names its own command.
    named : Roots or None
        Names of folders for a run that another machine requested.
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
        """Names of this machine's folders in keys."""
        return self.named or Roots.of(self.environment.python)

    def asking(self, **changes: Any) -> RunContext:
        """The same parts for a request with other values of some fields."""
        return replace(self, request=replace(self.request, **changes))

    def environment_of(self, toolchain: Toolchain) -> Environment:
        """The environment that the cells of a toolchain run in."""
        return next((each for each in self.others if each.name == toolchain.environment), self.environment)

    @property
    def name(self) -> str:
        """The run's name: its environment, or the libraries with several versions."""
        if not self.others or self.environment.named:
            return self.environment.name
        return "+".join(dict.fromkeys(each.library for each in self.others))

    @cached_property
    def tools(self) -> Path:
        """Folder of the small libraries that cumatrix builds for itself."""
        return data_folder() / "tools"


def prepare(request: RunRequest, finder: Finder | None = None) -> RunContext:
    """Look at the environment and the machine's devices, and open the cache.

    Raises
    ------
    UsageError, PartUnavailable
        When a part that the request names is not there.
    """
    trace = Trace(request.trace)
    for problem in problems():
        hint(problem)
    # Each of them starts a process; neither waits for the other.
    with trace.span("look at the environment"), ThreadPoolExecutor(1) as pool:
        found = pool.submit(find_devices, request.device)
        environment = look(request.interpreter, name=request.environment, require=request.require)
        devices = found.result()
    cache: ResultStore | None = None if request.no_cache else ResultCache.if_there_is_room()
    if request.earlier:
        from harness.engine.earlier_results import Earlier, read_source  # for --from alone

        with trace.span("read earlier results"):
            cache = Earlier(cache, Roots.of(environment.python), [read_source(place) for place in request.earlier])
    store = ToolkitStore()
    store.sweep()
    LibraryStore().sweep()
    if request.sanitize and not devices.items:
        raise PartUnavailable(f"--sanitize needs a CUDA device, and there is none: {devices.problem}")
    return RunContext(
        environment, store, cache, request, devices,
        others=others_of(
            request.libraries, request.toolkits, request.python_versions, offline=request.offline,
            there=environment if request.interpreter else None,
        ) if request.libraries else (),
        sanitizer=find_sanitizer([toolkit.home for toolkit in store.installed()]) if request.sanitize else "",
        artifacts=ArtifactFolder(request.artifacts) if request.artifacts else None,
        trace=trace,
        finder=finder or Finder(offline=request.offline),
    )  # fmt: skip
