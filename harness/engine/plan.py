"""The planned cells of a request: cases, backends, toolkits and targets, and their shards (``--shard 2/5``)."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS, BackendInfo
from harness.cases.discovery import load_cases
from harness.diagnostics import hint
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.environments import bundled_tools, default_toolkit
from harness.engine.machine import Devices
from harness.engine.program_axes import HostCompilers, parse_chosen, parse_host_compilers, with_libraries
from harness.errors import LibraryMissing, NothingToRun, PartUnavailable, UsageError, did_you_mean
from harness.git import with_local
from harness.libraries import LIBRARIES, label_of
from harness.model import KNOWN_TARGETS, Case, Cell, HostCompiler, Target, TargetError, Toolchain, ToolkitRef
from harness.model.cell import CELLS, none_left, read_where
from harness.model.condition import VALUES, Version
from harness.model.target import AMD, DEFAULT_TARGETS, check_known, parse_targets
from harness.toolkits import RELEASES, ToolkitStore, parse_toolkits
from harness.toolkits.releases import find_local
from harness.toolkits.rocm import DEFAULT as ROCM_DEFAULT
from harness.toolkits.rocm import find_rocm, not_installed, own_rocm


def choose_backends(
    names: str | None, environment: Environment, others: Sequence[Environment] = ()
) -> list[BackendInfo]:
    """Return the backends of a request.

    The default is NVRTC, nvcc and every backend whose library is installed. With `others`, the default is the backends
    of their libraries.

    Raises
    ------
    UsageError
        If a name is unknown, or if `others` has a library without any of the named backends.
    """
    if names is None and others:
        libraries = {each.library for each in others}
        return [info for info in BACKENDS.values() if info.library in libraries and (not info.rocm or find_rocm())]
    if names is None:
        return [info for info in BACKENDS.values() if _is_there(info, environment)]
    if names.strip() == "all":
        return list(BACKENDS.values())
    chosen = {}
    for name in filter(None, (item.strip() for item in names.split(","))):
        if name not in BACKENDS:
            raise UsageError(f"unknown backend {name!r}{did_you_mean(name, BACKENDS)}")
        chosen[name] = BACKENDS[name]
    if not chosen:
        raise UsageError(f"no backend is named; known are {', '.join(BACKENDS)}")
    for library in dict.fromkeys(each.library for each in others):
        if all(info.library != library for info in chosen.values()):
            raise UsageError(_left_out(library, list(chosen)))
    return list(chosen.values())


def _left_out(library: str, chosen: Sequence[str]) -> str:
    """Return the error for a library without any of its backends, with the options that fix it."""
    its = ",".join(info.name for info in BACKENDS.values() if info.library == library)
    used = dict.fromkeys(BACKENDS[name].library for name in chosen)
    other = next((f", or --with {each}=VERSION for -b {','.join(chosen)}" for each in used if each), "")
    return f"--with {library} is for the backend{'s' * (',' in its)} {its}, which -b {','.join(chosen)} leaves out: -b {its}{other}"


def _is_there(info: BackendInfo, environment: Environment) -> bool:
    if info.rocm:
        return bool(find_rocm())
    return not info.distributions or _installed(info, environment)


def _installed(info: BackendInfo, environment: Environment) -> bool:
    library = LIBRARIES[info.library]
    brought = environment.version_of(*library.brought_by)
    return (
        bool(environment.version_of(*info.distributions)) and not brought and not environment.version_of(*info.excludes)
    )


def plan(
    cases: Iterable[Case],
    backends: Sequence[BackendInfo],
    toolkits: Sequence[ToolkitRef],
    targets: Sequence[Target],
    environment: Environment,
    where: str | None = None,
    *,
    devices: Devices | None = None,
    others: Sequence[Environment] = (),
    nvcc_of: Callable[[ToolkitRef], bool] = lambda _toolkit: True,
    host_compilers: HostCompilers | None = None,
    toolkits_named: bool = True,
    targets_named: bool = True,
    backends_named: bool = True,
) -> list[Cell]:
    """Return every cell of a selection, ordered by toolchain, so that each worker process compiles its cells in a row.

    A backend compiles the cases that have a source in one of its languages. Cells whose target has a device run on it.

    Parameters
    ----------
    where : str, optional
        The condition that selects cells (`choose`).
    others : sequence of Environment
        Environments for the backends of one library each; those backends do not run in `environment`.
    nvcc_of : callable
        Returns whether to plan nvcc cells for a toolkit; without ``-b``, only if the toolkit has an nvcc.
    host_compilers : HostCompilers, optional
        Host compilers for backends that run nvcc; by default, those that the cases name and the machine has.
    toolkits_named : bool
        Whether the user named the toolkits; if not, a library is tested with the CUDA tools that it bundles.
    targets_named, backends_named : bool
        Whether the user named the targets and the backends. A backend for AMD GPUs has its own default targets. It is
        skipped if the user named other targets and no backends.

    Raises
    ------
    UsageError
        If `where` is invalid.
    NothingToRun
        If `where` holds for none of the cells.
    """
    cells: list[Cell] = []
    cases, hosts = list(cases), host_compilers or HostCompilers()
    for info in backends:
        wanted = _targets_for(info, targets, named=targets_named, every=backends_named)
        grouped = _by_host(cases, info, hosts)
        own = [each for each in others if each.library == info.library] if info.library else []
        pairs = [
            (each, toolkit)
            for each in own or [environment]
            for toolkit in (() if info.rocm else each.toolkits)
            or _toolkits_for(info, each, toolkits, named=toolkits_named)
        ]
        for each, toolkit in pairs:
            if info.of_host and not nvcc_of(toolkit):
                continue
            toolchain = Toolchain(
                backend=info.name,
                library=library_of(info, each, toolkit),
                toolkit=toolkit,
                environment=each.name,
                packages=each.packages,
            )
            built = specific(wanted) if _is_specific(info, toolchain.library) else wanted
            for host, compiled in grouped.items():
                for name, group in _by_device(built, devices).items():
                    cells += _cells(compiled, replace(toolchain, host=host, device=name), group)
    return choose(cells, where) if where else cells


def _toolkits_for(
    info: BackendInfo, environment: Environment, toolkits: Sequence[ToolkitRef], *, named: bool
) -> list[ToolkitRef]:
    """Return the toolkits of a backend in an environment.

    These are the named toolkits, except tools that another library bundles. Without a name, a library with bundled
    tools uses those alone. A HIP compiler uses the machine's ROCm.
    """
    if info.rocm:
        return [ref for ref in toolkits if ref.rocm] or [own_rocm()]
    found = environment.version_of(*info.distributions)
    own = bundled_tools(info.library, found[1]) if found else None
    if own and not named:
        return [own]
    return [ref for ref in toolkits if not ref.rocm and (not ref.bundled or ref == own)]


def _targets_for(info: BackendInfo, targets: Sequence[Target], *, named: bool, every: bool) -> Sequence[Target]:
    """Return the targets of a backend: the named ones, or for AMD GPUs the default of its own."""
    if not info.rocm or (named and every):
        return targets
    return [target for target in targets if target.vendor is AMD] if named else parse_targets(AMD.default)


def specific(targets: Iterable[Target]) -> list[Target]:
    """Return the distinct targets, each with its architecture-specific suffix if any: ``sm_90a`` for ``sm_90``."""
    found: dict[Target, None] = {}
    for target in targets:
        own = replace(target, suffix="a") if target.real == target and not target.suffix else target
        found[own if own in KNOWN_TARGETS else target] = None
    return list(found)


def _is_specific(info: BackendInfo, library: str) -> bool:
    return bool(info.specific_from and library) and Version(library.partition("+")[0]) >= Version(info.specific_from)


def library_of(info: BackendInfo, environment: Environment, toolkit: ToolkitRef) -> str:
    """Return the version of a backend's library as toolchains spell it; empty if the library is not installed.

    ``14.2.0+wheels`` is a CuPy that uses CUDA headers from wheels in its environment. ``0.61.2+python3.13`` is a Numba
    in one of several Pythons. ``0.15.0+git.1234.3f2a9c1`` is a numba-cuda built from this commit
    (`harness.git.build_of`).
    """
    found = environment.version_of(*info.distributions)
    if found is None:
        return ""
    versions = {name: found.version for name, found in environment.distributions.items()}
    words = [environment.mark, info.form(found[1], toolkit.headers, versions)]
    return with_local(environment.build_of(*info.distributions), filter(None, words))


def _by_host(cases: Iterable[Case], info: BackendInfo, hosts: HostCompilers) -> dict[HostCompiler, list[Case]]:
    """Group cases by the host compiler of a backend; backends without nvcc have no such axis."""
    groups: dict[HostCompiler, list[Case]] = {}
    for case in cases:
        if info.language(case):
            for host in hosts.of(case) if info.nvcc else (HostCompiler(),):
                groups.setdefault(host, []).append(case)
    return groups


def _by_device(targets: Sequence[Target], devices: Devices | None) -> dict[str, list[Target]]:
    """Group targets by the name of their device, with those without a device first."""
    groups: dict[str, list[Target]] = {"": []}
    for target in targets:
        groups.setdefault(devices.name_for(target) if devices else "", []).append(target)
    return groups


def _cells(cases: Iterable[Case], toolchain: Toolchain, targets: Sequence[Target]) -> Iterator[Cell]:
    for case in cases:
        for variant in case.variants:
            for target in targets:
                yield Cell(case=case, variant=variant, toolchain=toolchain, target=target)


def choose(cells: Sequence[Cell], where: str) -> list[Cell]:
    """Return the cells for which a condition holds (`harness.model.cell.CELLS`).

    Raises
    ------
    UsageError
        If the condition is invalid.
    NothingToRun
        If the condition holds for none of the cells.
    """
    # A local CUDA may support architectures that no table has.
    targets = {*VALUES["target"], *(str(cell.target) for cell in cells)}
    holds = read_where(where, CELLS, _parameters(cells), {"backend": BACKENDS, "target": targets})
    chosen = [cell for cell in cells if holds(_facts(cell))]
    if cells and not chosen:
        raise none_left(f"{len(cells):,}", where)
    return chosen


def _parameters(cells: Iterable[Cell]) -> dict[str, list[Any]]:
    """Return the values of each parameter in the cells' cases."""
    cases = {id(cell.case): cell.case for cell in cells}
    found: dict[str, dict[tuple[type, Any], Any]] = {}
    for variant in (variant for case in cases.values() for variant in case.variants):
        versions = {name: Version(version) for name, version in variant.libraries.items()}
        for name, value in {**variant.labels, **versions}.items():
            found.setdefault(name, {})[type(value), value] = value
    return {name: list(values.values()) for name, values in found.items()}


def _facts(cell: Cell) -> dict[str, Any]:
    return {
        **cell.facts(),
        "cell": cell.id,
        "case": cell.case.name,
        "project": cell.case.project,
        "topic": cell.case.topic,
        "variant": cell.variant.name,
        "environment": cell.toolchain.environment,
        "host_compiler": cell.toolchain.host.name,
    }


def nothing(
    cases: Sequence[Case],
    backends: Sequence[BackendInfo],
    environment: Environment,
    *,
    named: bool,
    releases: bool = False,
) -> NothingToRun:
    """Return the error for a selection without cells.

    Parameters
    ----------
    named : bool
        Whether the user named the backends.
    releases : bool
        Whether the run tests environments of ``--with`` instead of `environment`.
    """
    fitting = {name for name, info in BACKENDS.items() if any(info.language(case) for case in cases)}
    if cases and fitting and not fitting & {info.name for info in backends}:
        what = f"{cases[0].name} is" if len(cases) == 1 else "all of the cases chosen are"
        python = all("python" in case.sources and "cuda" not in case.sources for case in cases)
        numba = [info.library for info in BACKENDS.values() if "python" in info.languages]
        spoken = {language for case in cases for language in case.sources}
        common = {language for info in BACKENDS.values() if not info.library for language in info.languages}
        alone = next(
            (
                info.library
                for info in BACKENDS.values()
                if info.library and spoken == {info.languages[0]} and not spoken & common
            ),
            "",
        )
        if spoken == {"hip"} and not named and not releases and not find_rocm():
            return LibraryMissing(f"{what} for AMD GPUs, and {not_installed(ROCM_DEFAULT)}")
        if named:
            names = ", ".join(info.name for info in backends)
            return NothingToRun(f"nothing to run: {what} not for {names}, only for {', '.join(sorted(fitting))}")
        if python and releases:
            return NothingToRun(
                f"nothing to run: {what} for Numba: name its releases with --with, {' or '.join(f'{name}=V' for name in numba)}"
            )
        if releases:
            names = ", ".join(dict.fromkeys(info.library for info in backends))
            return NothingToRun(
                f"nothing to run: {what} not for {names}, which --with names, only for {', '.join(sorted(fitting))}"
            )
        if python:
            return LibraryMissing(
                f"{what} for Numba, and {environment.python} has none of {', '.join(numba)}: "
                f"`{environment.python} -m pip install numba-cuda`, or name an interpreter that has one with --python"
            )
        if alone:
            return LibraryMissing(
                f"{what} for {label_of(alone)}, which is not installed for {environment.python}: name a release with --with {alone}=VERSION, or an interpreter that has one with --python"
            )
    return NothingToRun("nothing to run: no cell fits this selection of cases, backends, toolkits and targets")


_USUAL = "13.0"  # the first release whose wheels have an nvcc


def toolkit_for(named: Iterable[BackendInfo], own: str, store: ToolkitStore | None = None) -> str:
    """Return the `own` toolkit, or one with an nvcc if ``-b`` names nvcc and no library that needs its own."""
    named = list(named)
    if any(info.of_host for info in named) and not any(info.distributions for info in named):
        return toolkit_with_nvcc(own, store or ToolkitStore())
    return own


def toolkit_with_nvcc(own: str, store: ToolkitStore) -> str:
    """Return the first toolkit with an nvcc: the `own` release, the usual one, the newest installed, a local one."""
    there = [
        name
        for name in reversed(list(RELEASES))
        if (found := store.find(name)) and (found.home / "bin" / "nvcc").is_file()
    ]
    if own in there or int(own.split(".")[0]) >= 13:
        return own
    if _USUAL in there or not there:
        local = [] if there else [name for name, home in find_local().items() if (home / "bin" / "nvcc").is_file()]
        return f"{local[0]}@local" if local else _USUAL
    return there[0]


def newest_for(
    info: BackendInfo, environment: Environment, store: ToolkitStore, *, offline: bool = False
) -> tuple[str, str]:
    """Return the newest release for a backend, and the reason for it.

    A standalone compiler has no limit. CuPy loads the NVRTC of one major release. PyTorch, Numba, and libraries that
    use CUDA wheels in their environment are tested with the release that they are built for.
    """
    if info.rocm:
        return str(own_rocm()), "the ROCm of this machine"
    if not info.library:
        return _newest(
            store, "", offline=offline
        ), "the newest release" if not offline else "the newest that is installed"
    found = environment.version_of(*info.distributions)
    if found and (tools := bundled_tools(info.library, found[1])):
        return str(tools), f"what {found[0]} {found[1]} brings along"
    if found and (of_wheel := LIBRARIES[info.library].release_of(found[1])) and of_wheel.toolkit:
        return of_wheel.toolkit, f"what {info.library} {found[1]} is tried with"
    fits = LIBRARIES[info.library].distributions[found[0]] if found else ""
    own = default_toolkit(environment)
    if not found or not fits or not LIBRARIES[info.library].follows_runtime or own != fits:
        return own, f"what {found[0] if found else info.library} is tried with"
    major = fits.split(".")[0]
    return _newest(store, major, offline=offline), f"the newest that {found[0]} can use"


def _newest(store: ToolkitStore, major: str, *, offline: bool) -> str:
    fitting = [name for name in RELEASES if not major or name.split(".")[0] == major]
    there = [name for name in fitting if store.find(name)] if offline else fitting
    return (there or fitting)[-1]


def cells_of(context: RunContext, cases: Sequence[Case] | None = None) -> list[Cell]:
    """Return every cell of a request.

    Parameters
    ----------
    context : RunContext
        The request, and the parts of this machine.
    cases : sequence of Case, optional
        The only cases; by default, the cases that the request selects.

    Raises
    ------
    UsageError
        If any part of the request is invalid.
    NothingToRun
        If the selection is empty.
    """
    request = context.request
    selected = _selected(request) if cases is None else cases
    chosen = with_libraries(selected, parse_chosen(request.header_libraries, Path.cwd()), context.finder)
    backends, toolkits, targets = axes_of(context)
    named, hosts = request.backends is not None, parse_host_compilers(request.host_compilers)
    cells = plan(
        chosen, backends, toolkits, targets, context.environment, request.where, devices=context.devices, others=context.others,
        nvcc_of=lambda toolkit: named or toolkit.local or int(toolkit.release.split(".")[0]) >= 13,
        host_compilers=HostCompilers(hosts), toolkits_named=bool(request.toolkits),
        targets_named=bool(request.targets), backends_named=named,
    )  # fmt: skip
    if hosts and cells and not any(cell.toolchain.host.name for cell in cells):
        raise UsageError(
            "--host-compiler is for what nvcc compiles, and none of the chosen cells is: add -b nvcc -t 13.0"
        )
    if not cells:
        raise nothing(chosen, backends, context.environment, named=named, releases=bool(context.others))
    if request.order == "reverse":
        cells.reverse()
    elif request.order == "random":
        random.shuffle(cells)
    return cells


def _selected(request: RunRequest) -> list[Case]:
    """Return the cases that a request names; without names, all except heavy ones."""
    cases = load_cases(request.cases, request.selection, request.programs)
    heavy = [case.name for case in cases if case.heavy]
    if request.selection or not heavy:
        return cases
    hint(
        f"skipped, because they take long: {', '.join(heavy)}. `cumatrix run {heavy[0]}` runs the named case, `cumatrix run '*'` all cases"
    )
    return [case for case in cases if not case.heavy]


def axes_of(context: RunContext) -> tuple[list[BackendInfo], list[ToolkitRef], list[Target]]:
    """Return the backends, toolkits and targets that the request names, or that fit the environment.

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    request, others = context.request, context.others
    backends = choose_backends(request.backends, context.environment, others)
    named = backends if request.backends not in (None, "all") else []
    if others and not request.toolkits:
        toolkits = sorted({ref for each in others for ref in each.toolkits}, key=lambda ref: ref.sort_key)
    else:
        toolkits = parse_toolkits(request.toolkits or toolkit_for(named, default_toolkit(context.environment)))
    try:
        targets = parse_targets(with_native(request.targets or DEFAULT_TARGETS, context.devices))
        # A local toolkit may support architectures that no table has.
        if not any(toolkit.local for toolkit in toolkits):
            for target in targets:
                check_known(target)
    except TargetError as error:
        raise UsageError(str(error)) from None
    return backends, toolkits, targets


def with_native(targets: str, devices: Devices) -> str:
    """Replace ``native``, as nvcc does, by the targets of this machine's devices.

    Raises
    ------
    PartUnavailable
        If there is no device.
    """
    parts = [part.strip() for part in targets.split(",")]
    named = [part for part in parts if part != "native"]
    if named == parts:
        return targets
    native = [str(target) for target in KNOWN_TARGETS if devices.name_for(target)]
    if not native:
        raise PartUnavailable(
            f"the target native needs a CUDA device, and there is none: {devices.problem or 'devices were not queried'}"
        )
    return ",".join([*named, *native])


Costs = Mapping[tuple[str, str, str], float]
"""Seconds by case, variant and backend."""


@dataclass(frozen=True)
class Shard:
    """A part of a run: ``2/5`` is the second of five."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse ``2/5``.

        Raises
        ------
        UsageError
            If the text has another form.
        """
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"--shard {text!r} is not a part such as 2/5, the second of five")
        return cls(int(match[1]), int(match[2]))

    def take(self, cells: Sequence[Cell], costs: Costs | None = None) -> list[Cell]:
        """Return the cells of this part, in their order; the parts are disjoint, complete and of similar duration.

        Parameters
        ----------
        cells : sequence of Cell
            All cells, the same for every part.
        costs : Mapping, optional
            Times of an earlier run, the same for every part; by default, each backend's estimate.

        Raises
        ------
        NothingToRun
            If this part is empty.
        """
        taken = [0.0] * self.of
        mine = set()
        for cost, _, cell in sorted(
            ((cost_of(cell, costs or {}), _spread(cell), cell.id) for cell in cells), reverse=True
        ):
            place = min(range(self.of), key=lambda number: (taken[number], number))
            taken[place] += cost
            if place == self.number - 1:
                mine.add(cell)
        if not mine:
            raise NothingToRun(
                f"nothing is left for part {self.number} of {self.of}: there are {len(cells)} cells in all"
            )
        return [cell for cell in cells if cell.id in mine]

    def in_plan(self, cells: Sequence[Cell], costs: Costs | None = None) -> dict[str, Any]:
        """Return the plan's entry for this part: a hash of all cells and their costs, which determine the parts."""
        lines = sorted(f"{cell.id}\0{cost_of(cell, costs or {})!r}" for cell in cells)
        whole = hashlib.sha256("\0".join(lines).encode()).hexdigest()[:16]
        return {"number": self.number, "of": self.of, "whole": whole}


def costs_of(records: Iterable[Mapping[str, Any]]) -> Costs:
    """Return the seconds of the cells in records: the maximum over architectures and releases."""
    found: dict[tuple[str, str, str], float] = {}
    for record in records:
        key = (record["case"], record["variant"], record["backend"])
        found[key] = max(found.get(key, 0.0), float(record["seconds"] or 0.0))
    return found


def cost_of(cell: Cell, costs: Costs) -> float:
    """Return the estimated seconds of a cell."""
    backend = cell.toolchain.backend
    return costs.get((cell.case.name, cell.variant.name, backend)) or BACKENDS[backend].seconds


def _spread(cell: Cell) -> str:
    # Neighbouring cells fail alike and take equally long. A hash spreads them, and adding or removing cells does not
    # change it.
    return hashlib.sha256(cell.id.encode()).hexdigest()
