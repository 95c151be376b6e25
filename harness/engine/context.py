"""The request of a run, and the parts to run it with.

The format is the "Trace Event Format" of Chrome
(https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU): spans in microseconds, a lane for each thread.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.engine.cache import ResultStore
from harness.engine.devices import Devices
from harness.engine.environment import Environment
from harness.engine.file_states import Roots
from harness.errors import UsageError
from harness.model import Toolchain
from harness.protocol.messages import Limits
from harness.records.files import ArtifactFolder
from harness.toolkits import ToolkitStore
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


@dataclass(frozen=True)
class RunContext:
    """Environment, toolkits, cache and limits of one run.

    Parameters
    ----------
    environment : Environment
        The environment under test that is there.
    store : ToolkitStore
        The installed toolkits.
    cache : ResultStore or None
        Outcomes of earlier runs; None compiles everything.
    limits : Limits
        What a cell may use.
    include : tuple of Path
        Include directories in addition to the toolkit's, for every cell.
    memory : int
        What all cells together may need at a time, in bytes; what the machine has free, when 0.
    devices : Devices
        The real devices that cells may run on.
    sanitizer : str
        Path of compute-sanitizer, which then goes over every launch; empty for none.
    longest_first : bool
        Whether cells that took long before are compiled first; else they keep their order.
    trace : Trace
        Where it is noted what every runner does when.
    others : tuple of Environment
        Further environments under test, one for each release of ``--with``; each has a name of its own.
    executor : str
        Where cells are compiled (`harness.engine.executor.EXECUTORS`); threads of this process when empty.
    absent : str
        The reason of cells with missing parts, if nothing may be installed; empty if each part names its own command.
    artifacts : ArtifactFolder or None
        Where what was built is kept; what is not there yet is compiled, whatever the cache has.
    named : Roots or None
        Names of folders for a run that another machine requested.
    """

    environment: Environment
    store: ToolkitStore
    cache: ResultStore | None
    limits: Limits = field(default_factory=Limits)
    include: tuple[Path, ...] = ()
    memory: int = 0
    devices: Devices = field(default_factory=Devices)
    sanitizer: str = ""
    longest_first: bool = True
    trace: Trace = field(default_factory=Trace)
    others: tuple[Environment, ...] = ()
    executor: str = ""
    absent: str = ""
    artifacts: ArtifactFolder | None = None
    named: Roots | None = None

    @cached_property
    def roots(self) -> Roots:
        """Names of this machine's folders in keys."""
        return self.named or Roots.of(self.environment.python)

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
