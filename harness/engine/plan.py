"""From cases and axes to cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.backends import BACKENDS, BackendInfo
from harness.checkouts import with_local
from harness.engine.devices import Devices
from harness.engine.environment import Environment
from harness.engine.host_compilers import HostCompilers
from harness.errors import UsageError, did_you_mean
from harness.libraries import LIBRARIES
from harness.model import Case, Cell, HostCompiler, Target, Toolchain, ToolkitRef
from harness.model.condition import VALUES, Version
from harness.model.selection import CELLS, none_left, read_where


def choose_backends(
    names: str | None, environment: Environment, others: Sequence[Environment] = ()
) -> list[BackendInfo]:
    """Backends by name; without names those of the libraries that have `others`, else NVRTC, nvcc and every one whose library is installed.

    Raises
    ------
    UsageError
        On an unknown name, and on a library of `others` that none of the named backends is for.
    """
    if names is None and others:
        libraries = {each.library for each in others}
        return [info for info in BACKENDS.values() if info.library in libraries]
    if names is None:
        return [info for info in BACKENDS.values() if not info.distributions or _installed(info, environment)]
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
    """That a library is tried with no backend, and what to type instead."""
    its = ",".join(info.name for info in BACKENDS.values() if info.library == library)
    used = dict.fromkeys(BACKENDS[name].library for name in chosen)
    other = next((f", or --with {each}=VERSION for -b {','.join(chosen)}" for each in used if each), "")
    return f"--with {library} is for the backend{'s' * (',' in its)} {its}, which -b {','.join(chosen)} leaves out: -b {its}{other}"


def _installed(info: BackendInfo, environment: Environment) -> bool:
    library = LIBRARIES[info.library]
    brought = library.brought_by and environment.version_of(library.brought_by)
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
) -> list[Cell]:
    """Every cell of a selection, ordered by toolchain, so that each worker process serves its cells in one go.

    A backend takes the cases that have a source in one of its languages. Targets that are a device's own run on it, the
    others without one.

    Parameters
    ----------
    where : str, optional
        A condition that they must hold (`choose`).
    others : sequence of Environment
        Environments for the backends of one library each, which do not run in `environment` then.
    nvcc_of : callable
        Whether cells of nvcc alone are wanted for a toolkit: where nobody named the backend, only those that have one.
    host_compilers : HostCompilers, optional
        Those of the cells of backends that run nvcc; what the cases name and the machine has, when left out.

    Raises
    ------
    UsageError
        When `where` cannot be read.
    NothingToRun
        When it holds for none of the cells.
    """
    cells: list[Cell] = []
    cases, hosts = list(cases), host_compilers or HostCompilers()
    for info in backends:
        grouped = _by_host(cases, info, hosts)
        own = [each for each in others if each.library == info.library] if info.library else []
        pairs = [(each, toolkit) for each in own or [environment] for toolkit in each.toolkits or toolkits]
        for each, toolkit in pairs:
            if info.name == "nvcc" and not nvcc_of(toolkit):
                continue
            toolchain = Toolchain(
                backend=info.name,
                library=library_of(info, each, toolkit),
                toolkit=toolkit,
                environment=each.name,
                packages=each.packages,
            )
            for host, compiled in grouped.items():
                for name, group in _by_device(targets, devices).items():
                    cells += _cells(compiled, replace(toolchain, host=host, device=name), group)
    return choose(cells, where) if where else cells


def library_of(info: BackendInfo, environment: Environment, toolkit: ToolkitRef) -> str:
    """Version of the library behind a backend, as toolchains spell it; empty where there is none.

    ``14.2.0+wheels`` is a CuPy that takes CUDA's headers from wheels in its environment, ``0.61.2+python3.13`` a Numba in one of several Pythons,
    ``0.15.0+git.3f2a9c1`` a numba-cuda that was built from this commit (`harness.checkouts.build_of`).
    """
    found = environment.version_of(*info.distributions)
    if found is None:
        return ""
    versions = {name: found.version for name, found in environment.distributions.items()}
    words = [environment.mark, info.form(found[1], toolkit.headers, versions)]
    return with_local(environment.build_of(*info.distributions), filter(None, words))


def _by_host(cases: Iterable[Case], info: BackendInfo, hosts: HostCompilers) -> dict[HostCompiler, list[Case]]:
    """Cases by the host compiler that a backend compiles them with; one that runs none has no such axis."""
    groups: dict[HostCompiler, list[Case]] = {}
    for case in cases:
        if info.language(case):
            for host in hosts.of(case) if info.nvcc else (HostCompiler(),):
                groups.setdefault(host, []).append(case)
    return groups


def _by_device(targets: Sequence[Target], devices: Devices | None) -> dict[str, list[Target]]:
    """Targets by the name of the device that they run on, those without one first."""
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
    """The cells for which a condition holds (`harness.model.selection.CELLS`).

    Raises
    ------
    UsageError
        When the condition cannot be read.
    NothingToRun
        When there are cells, and it holds for none of them.
    """
    # A CUDA of the machine's own may know architectures that no table has.
    targets = {*VALUES["target"], *(str(cell.target) for cell in cells)}
    holds = read_where(where, CELLS, _parameters(cells), {"backend": BACKENDS, "target": targets})
    chosen = [cell for cell in cells if holds(_facts(cell))]
    if cells and not chosen:
        raise none_left(f"{len(cells):,}", where)
    return chosen


def _parameters(cells: Iterable[Cell]) -> dict[str, list[Any]]:
    """The values that each parameter has in the cells' cases."""
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
    }
