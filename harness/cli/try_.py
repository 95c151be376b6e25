"""``cumatrix try``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from harness.cli.axes import axes, dask_option
from harness.cli.habits import TryCommand, habits
from harness.cli.program_options import program_options


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
    from harness.engine.probe_process import begin_own

    begin_own(options["python"])
    from harness.cli.chosen import cells_of_files
    from harness.cli.cluster import cluster_for, ready_for
    from harness.cli.perform import perform
    from harness.records.atomic import check_writable

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
