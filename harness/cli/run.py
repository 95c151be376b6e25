"""``cumatrix run``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from harness.cli import complete
from harness.cli.command import Command
from harness.cli.nvcc_options import TryCommand, habits
from harness.cli.options import ORDERS, RESULTS, all_cases_option, axes, dask_option, program_options
from harness.errors import UsageError
from harness.project.current import here


@click.command(cls=Command)
@click.argument("selection", nargs=-1, metavar="[CASE]…", shell_complete=complete.cases)
@axes
@dask_option
@all_cases_option()
@click.option(
    "--page",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write the page, as cumatrix report does, when all cells are done.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File of records, which keeps those of other cells. Default: reports/ENVIRONMENT.jsonl.",
)
@click.option("--fresh", is_flag=True, help="Forget what earlier runs left in the file of records.")
@click.option(
    "--order", type=click.Choice(ORDERS), default="plan", help="Order of the cells; outcomes do not depend on it."
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run one part of the cells only, such as 2/5, the second of five; the parts together are all of them.",
)
@click.option(
    "--costs",
    type=click.Path(path_type=Path, exists=True),
    metavar="RESULTS",
    help="Records of an earlier run, by whose seconds parts are made equally long; the same for every part.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Compile nothing: say how many cells there are, how many need a compiler, and how long it may take.",
)
def run(
    selection: tuple[str, ...],
    cases: tuple[Path, ...],
    page: Path | None,
    out: Path | None,
    fresh: bool,
    order: str,
    shard: str | None,
    costs: Path | None,
    dry_run: bool,
    dask: str | None,
    as_json: bool,
    jobs: int | None,
    **options: Any,
) -> int:
    """Run cases through backends, toolkits and targets.

    CASE is a case's name (wmma/fragments), a topic (wmma), or the path of either; without one, all cases run. So do the programs that
    [tool.cumatrix] in pyproject.toml, or cumatrix.toml, names; what stands there is the default of these options (cumatrix config).

    \b
    cumatrix run wmma -b nvrtc -t 11.8,12.4..13.0 -a sm_70..sm_90
    cumatrix run wmma --with cupy=12,13.0,13.1..14 -t 12.4,12.9
    cumatrix run -b all -t all --shard 2/5
    cumatrix run --dry-run -t 12.4..13.0
    cumatrix run -b all -t all --dask tcp://head-node:8786
    cumatrix run csrc/softmax.cu --page reports/html
    cumatrix run --where 'fragment == "tf32" and backend != "cupy-jitify"' --json | jq .status
    """
    # What compiles is imported when it is asked for: help and completion need not wait.
    from harness.engine.probes import begin_own

    begin_own(options["python"])
    from harness.cli.execute import perform
    from harness.cli.selection import cells_of_cases, cluster_for, ready_for
    from harness.records.files import check_writable

    if out:
        check_writable(out)
    with ExitStack() as stack:
        cluster = cluster_for(dask, jobs, stack)
        chosen = cells_of_cases(
            options, selection=selection, cases=cases, order=order, shard=shard, costs=costs, cluster=cluster
        )
        if dry_run:
            from harness.cli.execute import forecast

            return forecast(chosen.cells, chosen.context, jobs=jobs, as_json=as_json)
        if out is None and not as_json:
            out = (here().option("results") or RESULTS) / f"{chosen.context.name}.jsonl"
            check_writable(out)
        if page and out is None:
            raise UsageError("--page needs a file of records: name one with --out beside --json")
        context = ready_for(chosen, cluster, options)
        code = perform(
            chosen.cells, context, out=out, as_json=as_json, jobs=jobs, fresh=fresh, asked=chosen.asked, shard=chosen.shard,
            cluster=cluster,
        )  # fmt: skip
    if page and out and code != 130:
        from harness.cli.report import write_page

        write_page([out], page, cases, artifacts=options["keep_artifacts"])
    return code


@click.command("try", cls=TryCommand)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path, exists=True),
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
    help="Also keep the records in a file, beside those of other cells.",
)
@click.option("--fresh", is_flag=True, help="Forget what earlier runs left in that file.")
def try_(
    files: tuple[Path, ...],
    out: Path | None,
    fresh: bool,
    dask: str | None,
    as_json: bool,
    jobs: int | None,
    **options: Any,
) -> int:
    """Where does this file compile?

    FILE is CUDA C++ (.cu, .cuh), a module with Numba kernels or a program of CuPy's own API (.py: ReductionKernel, cupyx.jit), Python
    with CUDA C++ in texts (RawKernel, RawModule, load_inline: each is compiled as it stands there, and messages name the Python file
    and its line), or a folder with any of them. It is compiled as it stands: the toolkit's own include
    directories are added and nothing else, unless asked for. Several files are programs of their own, and so is a file with other
    options. Everything that a compiler refuses exits with 1.

    nvcc's options mean what they mean there: -std=c++17, -G, -lineinfo, --use_fast_math, -maxrregcount=N, -Xptxas OPTION, -rdc=true,
    -arch, -gencode, -ftz, -fmad and the like reach every compiler; those for the host (-O3, -g, -Xcompiler) reach nvcc.

    Without -t, each backend compiles with the newest CUDA that it can use, and it is said which that is and why.

    A program of the host (with main(), launches, headers such as <vector>) is compiled by nvcc, of a toolkit that has one;
    NVRTC and CuPy compile device code alone, and are asked for it only where -b names them.

    \b
    cumatrix try kernel.cu -t 11.8,12.4,13 -a sm_70..sm_120
    cumatrix try kernel.cu --with cupy=12,13.0,13.1,14 -a sm_80,sm_90
    cumatrix try kernel.cu -t 11.8,12.9 --where 'toolkit >= "12.8" or cc < "10.0"'
    cumatrix try csrc ops.py -t 13.0
    cumatrix try --compile-commands build/compile_commands.json src/a.cu
    cumatrix try kernel.cu -Iinclude -DN=4 -std=c++20 -lineinfo --option nvcc:-Werror=all-warnings
    """
    # What compiles is imported when it is asked for: help and completion need not wait.
    from harness.engine.probes import begin_own

    begin_own(options["python"])
    from harness.cli.execute import perform
    from harness.cli.selection import cells_of_files, cluster_for, ready_for
    from harness.records.files import check_writable

    if out:
        check_writable(out)
    with ExitStack() as stack:
        cluster = cluster_for(dask, jobs, stack)
        chosen = cells_of_files(options, files, cluster)
        context = ready_for(chosen, cluster, options)
        return perform(
            chosen.cells, context, out=out, as_json=as_json, jobs=jobs, fresh=fresh, table=True, asked=chosen.asked,
            cluster=cluster,
        )  # fmt: skip
