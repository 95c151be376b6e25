"""``cumatrix try``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from harness.cli.axes import axes
from harness.cli.habits import TryCommand, habits
from harness.cli.host import with_nvcc
from harness.cli.install import install_for
from harness.cli.perform import perform
from harness.cli.program_options import program_options, program_request, programs_asked
from harness.cli.terminal import console_for
from harness.engine.context import RunContext
from harness.engine.session import Request, cells_of, context_for
from harness.engine.unanswered import Asked, asked_of, without_left_out
from harness.errors import NothingToRun
from harness.model import Case, Cell


@click.command("try", cls=TryCommand)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE…",
)
@axes
@habits
@program_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also keep the records in a file, beside those of other cells.",
)
@click.option("--fresh", is_flag=True, help="Forget what earlier runs left in that file.")
def try_(
    files: tuple[Path, ...], out: Path | None, fresh: bool, as_json: bool, jobs: int | None, **options: Any
) -> int:
    """Where does this file compile?

    FILE is CUDA C++ (.cu, .cuh), or Python (.py) with Numba kernels or CuPy's own API (ReductionKernel, cupyx.jit). It is compiled as it stands: the toolkit's own include
    directories are added and nothing else, unless asked for. Several files are programs of their own, and so is a file with other
    options. Everything that a compiler refuses exits with 1.

    nvcc's options mean what they mean there: -std=c++17, -G, -lineinfo, --use_fast_math, -maxrregcount=N, -Xptxas OPTION, -rdc=true,
    -arch, -gencode, -ftz, -fmad and the like reach every compiler; those for the host (-O3, -g, -Xcompiler) reach nvcc.

    A program of the host (with main(), launches, headers such as <vector>) is compiled by nvcc, of a toolkit that has one;
    NVRTC and CuPy compile device code alone, and are asked for it only where -b names them.

    \b
    cumatrix try kernel.cu -t 11.8,12.4,13 -a sm_70..sm_120
    cumatrix try kernel.cu --with cupy=12,13.0,13.1,14 -a sm_80,sm_90
    cumatrix try kernel.cu -t 11.8,12.9 --where 'toolkit >= "12.8" or cc < "10.0"'
    cumatrix try kernel.cu -Iinclude -DN=4 -std=c++20 -lineinfo --option nvcc:-Werror=all-warnings
    """
    cases = programs_asked(files, options)
    request = program_request(options)
    context = context_for(request)
    whole, cells = _cells(request, cases, context)
    asked = [*_files(cases), *asked_of(request, context.environment, context.devices, context.others)]
    asked = without_left_out(asked, whole, cells)
    context = install_for(cells, context, offline=request.offline)
    return perform(cells, context, out=out, as_json=as_json, jobs=jobs, fresh=fresh, table=True, asked=asked)


def _cells(request: Request, cases: Sequence[Case], context: RunContext) -> tuple[list[Cell], list[Cell]]:
    """Cells of every file, all of them and those that are chosen; a file that no backend takes is reported where others have any."""
    whole: list[Cell] = []
    cells: list[Cell] = []
    nothing: NothingToRun | None = None
    console = console_for(sys.stderr)
    for each in cases:
        asking, case = with_nvcc(request, each, context.environment, context.store, console, context.others)
        try:
            whole += cells_of(replace(asking, where=None), context.environment, [case], context.devices, context.others)
            cells += cells_of(asking, context.environment, [case], context.devices, context.others)
        except NothingToRun as error:
            nothing = error
    if nothing and not cells:
        raise nothing
    return whole, cells


def _files(cases: Sequence[Case]) -> list[Asked]:
    return [Asked(kind="case", called="file", word=case.name, values=frozenset((case.name,))) for case in cases]
