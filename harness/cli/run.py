"""``cumatrix run``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from harness.cli import complete
from harness.cli.command import Command, ProgramFile
from harness.cli.options import (
    ORDERS,
    RESULTS,
    TryCommand,
    all_cases_option,
    axes,
    dask_option,
    habits,
    program_options,
)
from harness.errors import UsageError
from harness.project.current import here

if TYPE_CHECKING:
    from harness.cluster.client import Cluster


@click.command(cls=Command)
@click.argument("selection", nargs=-1, metavar="[CASE]…", shell_complete=complete.cases)
@axes
@dask_option
@all_cases_option()
@click.option(
    "--page",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the page when all cells are done.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File of records. It keeps records of other cells. Default: reports/ENVIRONMENT.jsonl.",
)
@click.option("--fresh", is_flag=True, help="Drop earlier records from the file.")
@click.option(
    "--order", type=click.Choice(ORDERS), default="plan", help="Order of the cells. Outcomes do not depend on it."
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run one part of the cells. 2/5 is the second of five; together the parts are all cells.",
)
@click.option(
    "--costs",
    type=click.Path(path_type=Path, exists=True),
    metavar="RESULTS",
    help="Balance shards by an earlier run's times. Use the same records for every shard.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Count cells and estimate the time. Compiles nothing.",
)
def run(
    page: Path | None, out: Path | None, fresh: bool, dry_run: bool, dask: str | None, as_json: bool, **options: Any
) -> int:
    """Compile cases with every backend, toolkit and target.

    CASE is a case (wmma/fragments), a topic (wmma) or a path. Without one, all cases and the project's own programs run. The project's
    configuration sets the defaults of these options (`cumatrix config`).

    \b
    cumatrix run wmma -b nvrtc -t 11.8,12.4..13.0 -a sm_70..sm_90
    cumatrix run wmma --with cupy=12,13.0,13.1..14 -t 12.4,12.9
    cumatrix run -b all -t all --shard 2/5
    cumatrix run --dry-run -t 12.4..13.0
    cumatrix run csrc/softmax.cu --page reports/html
    cumatrix run --where 'fragment == "tf32" and cc >= "8.0"' --json | jq .status
    """
    # This late import keeps help and completion fast.
    from harness.engine.environment import begin_own

    begin_own(options["python"])
    from harness.cli.execute import forecast, perform
    from harness.cli.selection import select_cases, start
    from harness.records.files import check_writable

    if out:
        check_writable(out)
    with ExitStack() as stack:
        cluster = _cluster(dask, options["jobs"], stack)
        selection = select_cases(options, cluster)
        if dry_run:
            return forecast(selection, as_json=as_json)
        if out is None and not as_json:
            out = (here().option("results") or RESULTS) / f"{selection.context.name}.jsonl"
            check_writable(out)
        if (
            page
            and out is None
            and click.get_current_context().get_parameter_source("page") is not ParameterSource.COMMANDLINE
        ):
            page = None  # the configured page is only for stored records
        if page and out is None:
            raise UsageError("--page needs a file of records: name one with --out in addition to --json")
        code = perform(selection, start(selection, cluster), out=out, as_json=as_json, fresh=fresh)
    if page and out and code != 130:
        from harness.cli.report import write_page

        write_page([out], page, options["cases"], artifacts=options["artifacts"])
    return code


def _cluster(place: str | None, jobs: int | None, stack: ExitStack) -> Cluster | None:
    """Return the cluster of ``--dask``; the end of `stack` closes it."""
    if not place:
        return None
    from harness.cluster.client import Cluster  # imports Dask

    return stack.enter_context(Cluster(place, jobs))


@click.command("try", cls=TryCommand)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=ProgramFile(),
    metavar="FILE…",
)
@axes
@habits
@program_options
@dask_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the records to a file. It keeps records of other cells.",
)
@click.option("--fresh", is_flag=True, help="Drop earlier records from that file.")
def try_(
    files: tuple[Path, ...], out: Path | None, fresh: bool, dask: str | None, as_json: bool, **options: Any
) -> int:
    """Find out where a file compiles.

    FILE is CUDA C++ (.cu, .cuh), Python with Numba kernels, with CuPy's API (ReductionKernel, cupyx.jit) or with CUDA C++ in strings
    (RawKernel, load_inline), or a folder. ops.py:scale is one program of a file. Each refusal by a compiler counts: the exit code is 1.

    \b
    cumatrix try kernel.cu -t 11.8,12.4,13 -a sm_70..sm_120
    cumatrix try kernel.cu --with cupy=12,13.0,13.1,14 -a sm_80,sm_90
    cumatrix try csrc ops.py -t 13.0
    cumatrix try --compile-commands build/compile_commands.json src/a.cu
    cumatrix try kernel.cu -Iinclude -DN=4 -std=c++20 -lineinfo

    cumatrix compiles the file unchanged. It adds only the toolkit's include directories. Each file is a program. The
    same file with other options is another program. Messages about a string in a Python file name the file and its
    line.

    nvcc's options have their nvcc meaning: -std=c++17, -G, -lineinfo, --use_fast_math, -maxrregcount=N, -Xptxas OPTION,
    -rdc=true, -arch, -gencode, -ftz and -fmad apply to every compiler. Host options (-O3, -g, -Xcompiler) apply to
    nvcc.

    Without -t, each backend uses the newest CUDA that it supports, and the output names it.

    A program for the host (with main(), launches, or headers such as <vector>) needs nvcc. NVRTC and CuPy compile
    device code only, and compile such a program only if -b names them.
    """
    # This late import keeps help and completion fast.
    from harness.engine.environment import begin_own

    begin_own(options["python"])
    from harness.cli.execute import perform
    from harness.cli.selection import select_files, start
    from harness.records.files import check_writable

    if out:
        check_writable(out)
    with ExitStack() as stack:
        cluster = _cluster(dask, options["jobs"], stack)
        selection = select_files(options, files, cluster)
        return perform(selection, start(selection, cluster), out=out, as_json=as_json, fresh=fresh, table=True)
