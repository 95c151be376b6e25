"""Selection of the cells of ``run`` and ``try``.

The commands and the public package `cumatrix` share it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from harness.backends import BACKENDS, host_backends
from harness.cli.progress import install_for
from harness.cli.terminal import console_for
from harness.diagnostics import hint, one_line
from harness.engine.context import RunContext, RunRequest, prepare
from harness.engine.environments import default_toolkit
from harness.engine.executor import Run
from harness.engine.machine import usable_cores
from harness.engine.plan import Shard, cells_of, choose_backends, costs_of, newest_for, toolkit_with_nvcc
from harness.engine.proof import RequestedName, requested_names, without_left_out
from harness.errors import NothingToRun, UsageError
from harness.model import Case, Cell, UnsupportedRule
from harness.model.cell import named_toolkit
from harness.model.condition import Condition
from harness.project.current import programs_here
from harness.protocol.text import decoded
from harness.records import again_command, read_records

if TYPE_CHECKING:
    from harness.cluster.client import Cluster


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The cells of a run, and its context.

    Parameters
    ----------
    cells : list of Cell
        Selected cells.
    context : RunContext
        The request and its tools; missing tools are not installed yet.
    requested : list of RequestedName
        Names in the request that need a compiler's result.
    shard : Mapping or None
        The shard of the cells, as in plans.
    places : Mapping
        Paths of programs and include directories as written, by their names in records.
    left_out : tuple of str
        Unreadable programs of a folder, which count as unavailable.
    """

    cells: list[Cell]
    context: RunContext
    requested: list[RequestedName]
    shard: Mapping[str, Any] | None = None
    places: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def again(self, record: Mapping[str, Any]) -> str:
        """Return the command that compiles a cell again, with the options of this run; empty if the record is incomplete."""
        request = self.context.request
        options = ["--python", request.python] if request.python and not request.libraries else []
        if not record.get("program") and request.cases != RunRequest.cases:
            options += [word for folder in request.cases for word in ("--cases", str(folder))]
        return again_command(record, options, self.places)


def select_cases(options: Mapping[str, Any], cluster: Cluster | None = None) -> Selection:
    """Return the cells of ``run`` for its options; with a `cluster`, its devices count."""
    context = _prepared(RunRequest.of(options, programs=tuple(programs_here())), cluster)
    request = context.request
    with context.trace.span("plan"):
        cells = cells_of(context)
    whole, in_plan = cells, None
    if request.shard:
        part = Shard.parse(request.shard)
        before = costs_of(read_records([request.costs]).records) if request.costs else None
        in_plan = part.in_plan(cells, before)
        cells = part.take(cells, before)
    elif request.costs:
        raise UsageError("--costs is for --shard: it says what cells took before")
    requested = requested_names(context)
    if request.where:
        whole = cells_of(context.asking(where=None))
    return Selection(cells=cells, context=context, requested=without_left_out(requested, whole, cells), shard=in_plan)


def select_files(options: Mapping[str, Any], files: Sequence[Path], cluster: Cluster | None = None) -> Selection:
    """Return the cells of ``try`` for its options."""
    from harness.cli.files import (  # imports the readers of projects, which cases do not need
        files_in,
        names_of,
        unreadable,
    )

    programs = files_in(files)
    # One unreadable file of a folder must not end the run; a named file must be readable.
    left_out = {file: why for file in programs if file not in files and (why := unreadable(file))}
    for sentence in left_out.values():
        hint(sentence)
    programs = [file for file in programs if file not in left_out]
    cases = requested_programs(programs, options)
    context = _prepared(program_request(options), cluster)
    whole, cells = _cells(context, cases)
    named = [
        RequestedName(kind="case", called="file", word=case.name, values=frozenset((case.name,))) for case in cases
    ]
    requested = [*named, *requested_names(context)]
    return Selection(
        cells=cells,
        context=context,
        requested=without_left_out(requested, whole, cells),
        places=names_of(programs, options["include"]),
        left_out=tuple(map(str, left_out)),
    )


def _prepared(request: RunRequest, cluster: Cluster | None) -> RunContext:
    context = prepare(request)
    return replace(context, devices=cluster.devices(request.device)) if cluster else context


def start(selection: Selection, cluster: Cluster | None = None) -> Run:
    """Install the missing parts and start the run here, or start it on the cluster, whose workers install."""
    if cluster:
        return cluster.start(selection.context, selection.cells)
    context = install_for(selection.cells, selection.context)
    return Run(context, context.request.jobs or usable_cores())


def requested_programs(files: Sequence[Path], options: Mapping[str, Any]) -> list[Case]:
    """Return a case per file, with the options that click has parsed."""
    from harness.cli.files import programs_of
    from harness.cli.options import rules_of

    rules = rules_of(options, options["extra"])
    cases = programs_of(
        files, include=options["include"], define=options["define"], rules=rules, signatures=options["signature"]
    )
    return of_build(cases, options["compile_commands"])


def of_build(cases: Sequence[Case], database: Path | None) -> list[Case]:
    """Return the programs with a build's options, if a database is named, and report omitted options."""
    if not database:
        return list(cases)
    from harness.cli.files import place_of, tried
    from harness.project.commands import unit_of
    from harness.project.detect import with_unit

    found = []
    for case in cases:
        source = next(iter(case.sources.values()))
        unit = unit_of(database, source)
        if unit.dropped:
            hint(f"{case.name}: of its command line in {database} is left out: {' '.join(unit.dropped)}")
        built = with_unit(case, unit, database)
        found.append(built if case.program else tried(built, place_of(source)))
    return found


def program_request(options: Mapping[str, Any]) -> RunRequest:
    """Return the request of options for programs."""
    from harness.cli.options import targets_of

    include = tuple(folder.resolve() for folder in options["include"])
    return RunRequest.of(options, cases=(), targets=targets_of(options), include=include)


def _cells(context: RunContext, cases: Sequence[Case]) -> tuple[list[Cell], list[Cell]]:
    """Return all cells of the files, and the selected ones; raise an error if no file has any."""
    whole: list[Cell] = []
    cells: list[Cell] = []
    nothing: NothingToRun | None = None
    reasons: dict[str, None] = {}
    console = console_for(sys.stderr)
    request, environment = context.request, context.environment
    unnamed = request.toolkits is None and not context.others
    newest = {
        info.name: newest_for(info, environment, context.store, offline=request.offline)
        for info in (choose_backends(request.backends, environment, context.others) if unnamed else ())
    }
    of_host = next((newest[name][0] for name in host_backends() if name in newest), "")
    for each in cases:
        asking, case = with_nvcc(context, each, console, of_host)
        fitting = (
            {name: chosen for name, chosen in newest.items() if BACKENDS[name].language(case)}
            if asking.request.toolkits is None
            else {}
        )
        for sentence in _reasons(fitting):
            reasons.setdefault(sentence)
        each_backend = [asking.asking(backends=name, toolkits=release) for name, (release, _) in fitting.items()]
        for one in each_backend or [asking]:
            try:
                whole += cells_of(one.asking(where=None), [case])
                cells += cells_of(one, [case])
            except NothingToRun as error:
                nothing = error
    if nothing and not cells:
        raise nothing
    for sentence in reasons:
        _say(console, sentence)
    return whole, cells


def _reasons(chosen: Mapping[str, tuple[str, str]]) -> list[str]:
    """Describe the selected toolkits of the backends with reasons; equal ones share a sentence."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, why in chosen.items():
        groups.setdefault(why, []).append(name)
    return [
        f"{', '.join(names)}: {named_toolkit(release)}, {why}; -t names others"
        for (release, why), names in groups.items()
    ]


DEVICE_ONLY = tuple(info.name for info in BACKENDS.values() if "cuda" in info.languages and not info.reads_host)
"""Backends for CUDA C++ without a host pass."""
_ALL_FOR_THE_DEVICE = ("-default-device", "--device-as-default-execution-space")


def with_nvcc(context: RunContext, case: Case, console: Console, newest: str = "") -> tuple[RunContext, Case]:
    """Adapt the context and the case to a host program; other programs are returned unchanged.

    Without ``-b``, backends for device code only are not applicable. Without ``-t``, the toolkit has an nvcc: `newest`,
    or the one that fits the environment. Backends that the user names still compile the program.
    """
    request, environment = context.request, context.environment
    named = None if request.backends in (None, "all") else choose_backends(request.backends, environment)
    signs = _signs(case, request.include)
    if not signs:
        return context, case
    what = f"a host program ({', '.join(signs)})"
    if named:
        names = ", ".join(info.name for info in named if info.name in DEVICE_ONLY)
        if names:
            _say(console, f"{case.name} is {what}: {names} will refuse it, nvcc compiles it (leave -b out)")
        return context, case
    toolkits = request.toolkits or newest or toolkit_with_nvcc(default_toolkit(environment), context.store)
    taken = "" if request.toolkits else f", of CUDA {toolkits}"
    _say(
        console, f"{case.name} is {what}: nvcc compiles it{taken}; NVRTC and CuPy, for device code alone, are left out"
    )
    rule = UnsupportedRule(
        when=Condition.parse(" or ".join(f'backend == "{name}"' for name in DEVICE_ONLY), {}),
        reason=f"{what}, and this backend compiles device code alone: nvcc is what compiles it",
    )
    chosen = [info.name for info in choose_backends(request.backends, environment, context.others)]
    backends = ",".join(dict.fromkeys([*chosen, *host_backends()]))
    return context.asking(backends=backends, toolkits=toolkits), replace(case, unsupported=(rule, *case.unsupported))


def _say(console: Console, text: str) -> None:
    console.print(one_line(text), markup=False, soft_wrap=True)


def _signs(case: Case, include: Iterable[Path]) -> list[str]:
    from harness.cases.preprocessor import host_signs

    flags = [flag for rule in case.options for flag in rule.values.get("flags", ())]
    if "cuda" not in case.sources or any(flag.startswith(_ALL_FOR_THE_DEVICE) for flag in flags):
        return []
    macros = {name: str(value) for name, value in case.variants[0].definitions.items()}
    found = host_signs(decoded(case.sources["cuda"].read_bytes()), macros)
    # -I may provide headers of these names for NVRTC.
    return [
        str(sign) for sign in found
        if sign.kind != "header" or not any((folder / sign.what.strip("<>")).is_file() for folder in include)
    ]  # fmt: skip
