"""``cumatrix run``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from harness.cli import complete
from harness.cli.axes import ORDERS, axes, dask_option
from harness.cli.command import Command
from harness.cli.places import RESULTS, all_cases_option
from harness.errors import UsageError
from harness.project.here import here


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
    from harness.engine.probe_process import begin_own

    begin_own(options["python"])
    from harness.cli.chosen import cells_of_cases
    from harness.cli.cluster import cluster_for, ready_for
    from harness.cli.perform import perform
    from harness.records.atomic import check_writable

    if out:
        check_writable(out)
    with ExitStack() as stack:
        cluster = cluster_for(dask, jobs, stack)
        chosen = cells_of_cases(
            options, selection=selection, cases=cases, order=order, shard=shard, costs=costs, cluster=cluster
        )
        if dry_run:
            from harness.cli.forecast import forecast

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
