"""``cumatrix bisect``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from harness.bisection.ends import Ends
from harness.bisection.kept import kept_for
from harness.bisection.search import Search
from harness.bisection.tell import groups_of, tell
from harness.bisection.tries import Bisection
from harness.cli.axes import axes
from harness.cli.bisect_show import Progressing, show_found, show_table, to_json
from harness.cli.bisect_what import again, axis_of, program_of
from harness.cli.habits import TryCommand, habits
from harness.cli.program_options import program_options, program_request
from harness.cli.terminal import console_for, say_json
from harness.diagnostics import one_line
from harness.engine.session import context_for


@click.command(cls=TryCommand)
@click.argument("what", metavar="CASE|FILE")
@click.option(
    "--over",
    required=True,
    metavar="AXIS",
    help="What to search: cupy, numba, numba-cuda, torch, cuda, headers, cutlass, cccl, git:PATH.",
)
@click.option("--good", metavar="V", help="A release that is as it should be. Default: the oldest.")
@click.option("--bad", metavar="V", help="A release that is not. Default: the newest.")
@click.option("--releases", metavar="V,…", help="Only these releases: 12.0..12.9, 0.57.1,0.58.1.")
@click.option("--every", is_flag=True, help="Try every release, and not only those that the search needs.")
@axes
@habits
@program_options
@click.option(
    "--cases", type=click.Path(path_type=Path), default=Path("cases"), show_default=True, help="Folder of cases."
)
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Also keep the records in a file."
)
def bisect(what: str, over: str, good: str | None, bad: str | None, releases: str | None, every: bool, cases: Path, out: Path | None,
           as_json: bool, jobs: int | None, **options: Any) -> int:  # fmt: skip
    """Since when does this happen?"""
    case, request = program_of(what, cases, options), program_request(options, cases=cases)
    context = context_for(request)
    axis = axis_of(over, request, case, context, releases, errors := console_for(sys.stderr))
    title = axis.called("").strip()
    ends = Ends.of(axis.versions, good, bad, title)
    kept = kept_for(case, context, [over, *ends.versions])
    interrupted = False
    with Progressing(errors) as watch:
        found = Bisection(axis, Search(ends.versions, every=every), watch, kept, jobs or 0, out)
        try:
            found.run()
        except KeyboardInterrupt:
            interrupted = True
    good_of = partial(ends.good_of, found.seen)
    groups = groups_of(found.seen, good_of)
    told = tell(ends.versions, groups, found.search.borders, axis.called, good_of)
    contradiction = ends.contradiction(found.seen, [lane for group in groups for lane in group.lanes])
    places = sorted({place for each in told for place in (each.border.before, each.border.after)})
    command = again(sys.argv[1:], over, [ends.versions[place] for place in places])
    if as_json:
        say_json(to_json(over, found, groups, told, command, contradiction=contradiction, interrupted=interrupted))
    else:
        console = console_for(sys.stdout)
        show_table(console, found, groups)
        show_found(console, over, found, groups, told)
        if contradiction:
            console.print(Text(one_line(contradiction), "bold yellow"), soft_wrap=True)
        console.print(Text(f"again: {one_line(command, 2000)}", "dim"), soft_wrap=True)
    if interrupted:
        errors.print("interrupted: the same command goes on from here", markup=False)
        return 130
    return 1 if contradiction else 0
