"""From options, as click reads them, to the cells of ``run`` and ``try``, and to what they are run with.

The commands and `cumatrix`, the public package, begin here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cli.progress import install_for
from harness.cli.request import request_of
from harness.cli.terminal import console_for
from harness.diagnostics import one_line
from harness.engine.cluster import Cluster
from harness.engine.context import RunContext
from harness.engine.install import with_made
from harness.engine.plan import Shard, choose_backends, costs_of, newest_for
from harness.engine.proof import RequestedName, asked_of, without_left_out
from harness.engine.request import Request, cells_of, context_for
from harness.errors import NothingToRun, UsageError
from harness.model import Case, Cell
from harness.project.current import here
from harness.project.programs import configured
from harness.records import read_records


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The selected cells and their parts.

    Parameters
    ----------
    cells : list of Cell
        The chosen cells.
    context : RunContext
        What there is; what is missing is not installed yet.
    asked : list of RequestedName
        What was named, and has to be answered for.
    shard : Mapping or None
        Which part of a run the cells are, as plans have it.
    """

    cells: list[Cell]
    context: RunContext
    asked: list[RequestedName]
    shard: Mapping[str, Any] | None = None


def cells_of_cases(
    options: Mapping[str, Any], *, selection: Sequence[str], cases: Sequence[Path], order: str, shard: str | None, costs: Path | None,
    cluster: Cluster | None = None,
) -> Chosen:  # fmt: skip
    """The cells of ``run``; parameters are called as its options are. On a `cluster`, its devices count."""
    programs = tuple(configured(here()))
    request = request_of(options, cases=tuple(cases), programs=programs, selection=tuple(selection), order=order)
    context = _with_devices(context_for(request), cluster, request.device)
    environments = (context.environment, None, context.devices, context.others)
    with context.trace.span("plan"):
        cells = cells_of(request, *environments)
    part = Shard.parse(shard) if shard else None
    whole, in_plan = cells, None
    if part:
        before = costs_of(read_records([costs]).records) if costs else None
        in_plan = part.in_plan(cells, before)
        cells = part.take(cells, before)
    elif costs:
        raise UsageError("--costs is for --shard: it says what cells took before")
    asked = asked_of(request, context.environment, context.devices)
    if request.where:
        whole = cells_of(replace(request, where=None), *environments)
    return Chosen(cells=cells, context=context, asked=without_left_out(asked, whole, cells), shard=in_plan)


def cells_of_files(options: Mapping[str, Any], files: Sequence[Path], cluster: Cluster | None = None) -> Chosen:
    """The cells of ``try``."""
    from harness.cli.files import files_in
    from harness.cli.request import program_request, programs_asked  # for which cases need not wait

    cases = programs_asked(files_in(files), options)
    request = program_request(options)
    context = _with_devices(context_for(request), cluster, request.device)
    whole, cells = _cells(request, cases, context)
    asked = [*_files(cases), *asked_of(request, context.environment, context.devices)]
    return Chosen(cells=cells, context=context, asked=without_left_out(asked, whole, cells))


def _with_devices(context: RunContext, cluster: Cluster | None, device: str) -> RunContext:
    return replace(context, devices=cluster.devices(device)) if cluster else context


def _cells(request: Request, cases: Sequence[Case], context: RunContext) -> tuple[list[Cell], list[Cell]]:
    """Cells of every file, all of them and those that are chosen; a file that no backend takes is reported where others have any."""
    from harness.cli.request import with_nvcc  # as above

    whole: list[Cell] = []
    cells: list[Cell] = []
    nothing: NothingToRun | None = None
    said: dict[str, None] = {}
    console = console_for(sys.stderr)
    store, environment = context.store, context.environment
    left = request.toolkits is None and not context.others
    newest = {
        info.name: newest_for(info, environment, store, offline=request.offline)
        for info in (choose_backends(request.backends, environment, context.others) if left else ())
    }
    for each in cases:
        nvcc = newest.get("nvcc", ("", ""))[0]
        asking, case = with_nvcc(request, each, environment, store, console, context.others, nvcc)
        fitting = (
            {name: chosen for name, chosen in newest.items() if BACKENDS[name].language(case)}
            if asking.toolkits is None
            else {}
        )
        for sentence in _reasons(fitting):
            said.setdefault(sentence)
        asked = [replace(asking, backends=name, toolkits=release) for name, (release, _) in fitting.items()] or [asking]
        for one in asked:
            try:
                whole += cells_of(replace(one, where=None), environment, [case], context.devices, context.others)
                cells += cells_of(one, environment, [case], context.devices, context.others)
            except NothingToRun as error:
                nothing = error
    if nothing and not cells:
        raise nothing
    for sentence in said:
        console.print(one_line(sentence), markup=False, soft_wrap=True)
    return whole, cells


def _reasons(chosen: Mapping[str, tuple[str, str]]) -> list[str]:
    """The selected toolkits of the backends, with reasons; equal ones share a sentence."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, why in chosen.items():
        groups.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: CUDA {release}, {why}; -t names others" for (release, why), names in groups.items()]


def _files(cases: Sequence[Case]) -> list[RequestedName]:
    return [RequestedName(kind="case", called="file", word=case.name, values=frozenset((case.name,))) for case in cases]


def cluster_for(place: str | None, jobs: int | None, stack: ExitStack) -> Cluster | None:
    """The cluster that is named, which is left when `stack` ends; None where none is."""
    return stack.enter_context(Cluster(place, jobs)) if place else None


def ready_for(chosen: Chosen, cluster: Cluster | None, options: Mapping[str, Any]) -> RunContext:
    """Install here what the cells need, or tell the cluster what they are; the context that they are run with."""
    if cluster is None:
        return install_for(chosen.cells, chosen.context, offline=options["offline"])
    cluster.begin(chosen.context, chosen.cells, device=options["device"], offline=options["offline"])
    return with_made(chosen.context)
