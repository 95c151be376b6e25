"""The parts of one run: environments, toolkits, devices and cache, for one request."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.engine.cache import ResultCache, ResultStore
from harness.engine.devices import Devices, find_devices, find_sanitizer
from harness.engine.environment import Environment, look
from harness.engine.environments import others_of
from harness.engine.file_states import Roots
from harness.engine.header_libraries import Finder
from harness.engine.request import RunRequest
from harness.engine.trace import Trace
from harness.errors import PartUnavailable
from harness.hints import hint
from harness.model import Toolchain
from harness.plugins import problems
from harness.records.files import ArtifactFolder
from harness.toolkits import LibraryStore, ToolkitStore
from harness.toolkits.store import data_folder


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

    Parameters
    ----------
    request : RunRequest
        The request.
    finder : Finder, optional
        Of an earlier context with the same headers.

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
        from harness.engine.remote_cache import Earlier, read_source  # for --from alone

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
        ),
        sanitizer=find_sanitizer([toolkit.home for toolkit in store.installed()]) if request.sanitize else "",
        artifacts=ArtifactFolder(request.artifacts) if request.artifacts else None,
        trace=trace,
        finder=finder or Finder(offline=request.offline),
    )  # fmt: skip
