"""Requests of the command line and the pytest plugin: from a request to cells, and to the parts they run with."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from harness.backends import BackendInfo
from harness.cases.discovery import load_cases
from harness.engine.cache import ResultCache, ResultStore
from harness.engine.context import RunContext, Trace
from harness.engine.devices import Devices, find_devices, find_sanitizer
from harness.engine.environment import Environment, look
from harness.engine.environments import default_toolkit, others_of
from harness.engine.executor import executor_named
from harness.engine.file_states import Roots
from harness.engine.header_libraries import Finder, parse_chosen, with_libraries
from harness.engine.host_compilers import HostCompilers, parse_host_compilers
from harness.engine.plan import choose_backends, nothing, plan, toolkit_for
from harness.engine.prepared import Result
from harness.engine.remote_cache import Earlier, read_source
from harness.environments.interpreters import is_version, parse_pythons
from harness.errors import PartUnavailable, UsageError
from harness.hints import hint
from harness.model import KNOWN_TARGETS, Case, Cell, Target, TargetError, ToolkitRef
from harness.model.judge import expectation_of, judge
from harness.model.target import DEFAULT_TARGETS, check_known, parse_targets
from harness.plugins import problems
from harness.protocol.messages import Limits
from harness.records import Record, make_record
from harness.records.files import ArtifactFolder
from harness.toolkits import LibraryStore, ToolkitStore, parse_toolkits


@dataclass(frozen=True, kw_only=True)
class Request:
    """A user's request; every field as written.

    Parameters
    ----------
    cases : Path or tuple of Path
        Folder of cases, or several.
    programs : tuple of Case
        Programs of the project's configuration.
    selection : tuple of str
        Names, topics or paths of cases; empty for all.
    backends, toolkits, targets : str or None
        Axes; None for what fits the environment.
    where : str or None
        ``--where``: a condition that cells must hold.
    python : str or None
        Interpreter of the environment under test; with `libraries`, versions of Python for theirs (``3.9,3.13``).
    environment : str or None
        Its name.
    require : tuple of str
        Requirements that it was made for.
    cache : bool
        Whether outcomes of earlier runs may answer.
    limits : Limits
        What a cell may use.
    include : tuple of Path
        Further include directories.
    memory : int
        What all cells together may need at a time, in bytes; 0 for what the machine has free.
    order : str
        ``plan``, ``reverse`` or ``random``.
    device : str
        ``auto``, ``none``, or numbers of CUDA devices.
    sanitize : bool
        Whether compute-sanitizer goes over every launch.
    libraries : tuple of str
        Releases of libraries under test, each in an environment of its own: ``cupy=12,13.0`` (``--with``).
    offline : bool
        Whether nothing may be downloaded.
    headers : tuple of str
        ``--library``: versions of header libraries, in the place of those in the cases.
    finder : Finder
        What has been looked up of header libraries that are no release.
    trace : Path or None
        Where to write what every runner did when.
    earlier : tuple of str
        ``--from``: results of others, whose outcomes answer where nothing has changed.
    executor : str
        Where cells are compiled.
    artifacts : Path or None
        ``--keep-artifacts``: the folder that what was built is kept in.
    host_compilers : tuple of str
        ``--host-compiler``: host compilers for nvcc, in the place of those that the cases name.
    """

    cases: Path | tuple[Path, ...] = Path("cases")
    programs: tuple[Case, ...] = ()
    selection: tuple[str, ...] = ()
    backends: str | None = None
    toolkits: str | None = None
    targets: str | None = None
    where: str | None = None
    python: str | None = None
    environment: str | None = None
    require: tuple[str, ...] = ()
    cache: bool = True
    limits: Limits = field(default_factory=Limits)
    include: tuple[Path, ...] = ()
    memory: int = 0
    order: str = "plan"
    device: str = "auto"
    sanitize: bool = False
    libraries: tuple[str, ...] = ()
    offline: bool = False
    headers: tuple[str, ...] = ()
    finder: Finder = field(default_factory=Finder, compare=False)
    trace: Path | None = None
    earlier: tuple[str, ...] = ()
    executor: str = ""
    host_compilers: tuple[str, ...] = ()
    artifacts: Path | None = None


def context_for(request: Request) -> RunContext:
    """Look at the environment and the machine's devices, and open the cache."""
    trace = Trace(request.trace)
    if request.executor:
        executor_named(request.executor)
    for problem in problems():
        hint(problem)
    # Interpreter and driver are each asked in a process of its own, and neither waits for the other.
    with trace.span("look at the environment"), ThreadPoolExecutor(1) as beside:
        asked = beside.submit(find_devices, request.device)
        environment = look(own_python(request), name=request.environment, require=request.require)
        devices = asked.result()
    cache: ResultStore | None = ResultCache.if_there_is_room() if request.cache else None
    if request.earlier:
        with trace.span("read earlier results"):
            cache = Earlier(cache, Roots.of(environment.python), [read_source(place) for place in request.earlier])
    store = ToolkitStore()
    store.sweep()
    LibraryStore().sweep()
    if request.sanitize and not devices.items:
        raise PartUnavailable(f"--sanitize needs a CUDA device, and there is none: {devices.problem}")
    sanitizer = find_sanitizer([toolkit.home for toolkit in store.installed()]) if request.sanitize else ""
    return RunContext(
        environment, store, cache, request.limits, request.include, request.memory, devices, sanitizer,
        longest_first=request.order == "plan", trace=trace,
        others=others_of(
            request.libraries, request.toolkits, versions_of_python(request), offline=request.offline,
            there=environment if own_python(request) else None,
        ),
        executor=request.executor,
        artifacts=ArtifactFolder(request.artifacts) if request.artifacts else None,
    )  # fmt: skip


def versions_of_python(request: Request) -> str | None:
    """``--python`` where it names versions for the environments of ``--with``, and no interpreter."""
    words = (request.python or "").split(",")
    return request.python if request.libraries and request.python and all(map(is_version, words)) else None


def own_python(request: Request) -> str | None:
    """The interpreter of the environment that is there; None for cumatrix's own.

    Raises
    ------
    UsageError
        On a version of Python where there is nothing that it could be for.
    """
    if versions_of_python(request):
        return None
    if request.python and re.fullmatch(r"\d[^/]*", request.python):
        if request.libraries:
            parse_pythons(request.python)  # says what is wrong with them
        raise UsageError(
            f"--python {request.python}: versions are for the environments of --with; without it, name an interpreter by its path"
        )
    return request.python


def cells_of(
    request: Request,
    environment: Environment,
    cases: list[Case] | None = None,
    devices: Devices | None = None,
    others: Sequence[Environment] = (),
) -> list[Cell]:
    """Every cell that a request asks for.

    Parameters
    ----------
    request : Request
        The request.
    environment, others
        The environments under test (`RunContext`).
    cases : list of Case, optional
        The only cases; by default, the cases that the request selects.
    devices : Devices, optional
        The real devices that cells may run on.

    Raises
    ------
    UsageError
        On anything that cannot be read.
    NothingToRun
        When nothing is left of the selection.
    """
    loaded = _named(request) if cases is None else cases
    chosen = with_libraries(loaded, parse_chosen(request.headers, Path.cwd()), request.finder)
    backends, toolkits, targets = axes_of(request, environment, devices, others)
    named, hosts = request.backends is not None, parse_host_compilers(request.host_compilers)
    cells = plan(
        chosen, backends, toolkits, targets, environment, request.where, devices=devices, others=others,
        nvcc_of=lambda toolkit: named or toolkit.local or int(toolkit.release.split(".")[0]) >= 13,
        host_compilers=HostCompilers(hosts),
    )  # fmt: skip
    if hosts and cells and not any(cell.toolchain.host.name for cell in cells):
        raise UsageError(
            "--host-compiler is for what nvcc compiles, and none of the chosen cells is: add -b nvcc -t 13.0"
        )
    if not cells:
        raise nothing(chosen, backends, environment, named=named, releases=bool(others))
    if request.order == "reverse":
        cells.reverse()
    elif request.order == "random":
        random.shuffle(cells)
    return cells


def _named(request: Request) -> list[Case]:
    """The cases that a request names; without names, all but those that take long."""
    cases = load_cases(request.cases, request.selection, request.programs)
    heavy = [case.name for case in cases if case.heavy]
    if request.selection or not heavy:
        return cases
    hint(
        f"left out, since they take long: {', '.join(heavy)}. `cumatrix run {heavy[0]}` runs what is named, `cumatrix run '*'` everything"
    )
    return [case for case in cases if not case.heavy]


def axes_of(
    request: Request, environment: Environment, devices: Devices | None = None, others: Sequence[Environment] = ()
) -> tuple[list[BackendInfo], list[ToolkitRef], list[Target]]:
    """Backends, toolkits and targets that a request names, or that fit the environment.

    Raises
    ------
    UsageError
        On a name that nothing knows.
    """
    backends = choose_backends(request.backends, environment, others)
    named = backends if request.backends not in (None, "all") else []
    if others and not request.toolkits:
        toolkits = sorted({ref for each in others for ref in each.toolkits}, key=lambda ref: ref.sort_key)
    else:
        toolkits = parse_toolkits(request.toolkits or toolkit_for(named, default_toolkit(environment)))
    try:
        targets = parse_targets(with_native(request.targets or DEFAULT_TARGETS, devices))
        # Which architectures a toolkit of the machine's own knows, only it can say.
        if not any(toolkit.local for toolkit in toolkits):
            for target in targets:
                check_known(target)
    except TargetError as error:
        raise UsageError(str(error)) from None
    return backends, toolkits, targets


def with_native(targets: str, devices: Devices | None) -> str:
    """``native`` on the axis of targets, as in nvcc: the targets of this machine's devices."""
    parts = [part.strip() for part in targets.split(",")]
    named = [part for part in parts if part != "native"]
    if named == parts:
        return targets
    native = [str(target) for target in KNOWN_TARGETS if devices and devices.name_for(target)]
    if not native:
        why = devices.problem if devices else "none was looked for"
        raise PartUnavailable(f"the target native needs a CUDA device, and there is none: {why}")
    return ",".join([*named, *native])


def record_of(result: Result, run: str) -> Record:
    """Judge a result and make its record."""
    expected = expectation_of(result.cell)
    verdict = judge(expected, result.outcome)
    return make_record(
        result.cell, result.outcome, expected, verdict, run=run, cached=result.cached, fingerprint=result.key,
        taken_from=result.taken_from,
    )  # fmt: skip
