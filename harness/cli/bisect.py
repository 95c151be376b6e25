"""``cumatrix bisect``."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from harness.bisection.commits import CommitLog
from harness.bisection.ends import Ends
from harness.bisection.git import Checkout
from harness.bisection.kept import kept_for, place_for
from harness.bisection.offline import not_there
from harness.bisection.search import Search
from harness.bisection.seen import Lane
from harness.bisection.tell import Findings, groups_of, tell
from harness.bisection.tries import Bisection
from harness.cli.axes import Seconds, axes
from harness.cli.bisect_git import GitBisection, findings_of, search, step
from harness.cli.bisect_show import Progressing, show
from harness.cli.bisect_what import again, as_meant, axis_of, program_of, without
from harness.cli.habits import TryCommand, habits
from harness.cli.install import install_for
from harness.cli.places import cases_option
from harness.cli.program_options import program_options
from harness.cli.program_request import program_request
from harness.cli.terminal import console_for
from harness.engine.context import RunContext
from harness.engine.cores import usable_cores
from harness.engine.run import Run
from harness.engine.session import cells_of, context_for, own_python, record_of
from harness.errors import UsageError
from harness.model import Case
from harness.records import Record

_OPTIONS: list[Any] = [
    click.option(
        "--over", required=True, metavar="AXIS",
        help="What to search: cupy, numba, numba-cuda, torch, cuda (whole toolkits), headers (a toolkit's headers under one compiler), "
        "cutlass, cccl, git:PATH (the commits of a checkout).",
    ),
    click.option("--good", metavar="V", help="A release that is as it should be: the search begins there. Default: the oldest."),
    click.option("--bad", metavar="V", help="A release that is not: the search ends there. Default: the newest; of a checkout HEAD."),
    click.option("--releases", metavar="V,…", help="Only these releases: 12.0..12.9, or 0.57.1,0.58.1,0.59.0."),
    click.option("--every", is_flag=True, help="Try every release, and not only those that the search needs."),
    click.option("--build", "build_command", default="", metavar="COMMAND", help="Of a checkout: what builds a commit; the shell runs it in there."),
    click.option("--build-timeout", type=Seconds(1, 7 * 86400), default=3600.0, show_default=True, metavar="S", help="Seconds that this may take."),
    cases_option(),
    click.option(
        "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
        help="Also keep the records in a file, beside those of other cells; not with git:PATH.",
    ),
    click.option("--git-step", nargs=2, hidden=True),
]  # fmt: skip


def _options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=TryCommand)
@click.argument("what", metavar="CASE|FILE")
@_options
@axes
@habits
@program_options
def bisect(what: str, over: str, good: str | None, bad: str | None, cases: Path, as_json: bool, **options: Any) -> int:
    """Since when does this fail?

    Tries releases for real, installing what is missing, and tells with which of them the outcome changes. An outcome is more than good
    or bad: status, stage and the compiler's first message count, so that a history that goes to and fro is told as it is.

    First comes a coarse sweep (both ends, the first release of each series); then what lies between any two that differ, until they are
    neighbours. What lies between two that show the same is not tried, unless you say --every. Releases that cannot be tried (no wheel,
    cannot be imported) are skipped, and told. Interrupted, the same command goes on where it was.

    CASE is a case, with [name=value] for some of its variants; FILE is CUDA C++ (.cu) or Python (.py), with the options that try has.
    Several targets, backends and variants are searched together, and told apart.

    \b
    cumatrix bisect cooperative/numba-9432 --over numba
    cumatrix bisect 'shared-memory/static[bytes=49156]' --over cuda -b nvrtc -a sm_80
    cumatrix bisect kernel.cu --over cuda --good 12.3 --bad 13.0
    cumatrix bisect kernel.cu --over headers -t 13.0
    cumatrix bisect kernel.cu -I ../lib/include --over git:../lib --good v1.2 --build make

    Without --good and --bad, "broke" and "mended" go by what the case expects (a file is expected to be built); a refusal that is
    expected is told without either. Of a checkout, `git bisect run` does the search: commits without changes, back to where it was afterwards.

    \b
    Exit codes: 0 the search came to its end, whatever it found; 1 --good or --bad contradict what is seen;
    2 bad usage; 3 no compiler answered; 4 nothing could be tried, or what --good or --bad names;
    130 interrupted (what was tried is kept).
    """
    errors = console_for(sys.stderr)
    git = over.removeprefix("git:") if over.startswith("git:") else None
    if options["git_step"]:
        folder, old = options["git_step"]
        tried = partial(_records, what, cases, options, errors)
        return step(
            Checkout.at(git or ".", clean=False), CommitLog(Path(folder)), old, tried,
            options["build_command"], options["build_timeout"], errors,
        )  # fmt: skip
    case, request = program_of(what, cases, options), program_request(options, cases=cases)
    if git is not None:
        if options["releases"] or options["every"] or options["out"]:
            raise UsageError("--releases, --every and --out are not for --over git:PATH, whose commits git chooses")
        return _over_git(over, case, context_for(request), good, bad, errors, as_json=as_json)
    if options["build_command"]:
        raise UsageError("--build is for --over git:PATH: releases come as wheels")
    # Environments of libraries are made for the releases that are tried.
    context = context_for(replace(request, libraries=(), python=own_python(replace(request, libraries=(over,)))))
    axis = axis_of(over, request, case, context, options["releases"], errors)
    ends = Ends.of(axis.versions, good, bad, axis.called("").strip())
    hopeless = dict(axis.hopeless)
    if request.offline:
        lacking, wanted = not_there(axis, ends.versions)
        hopeless |= lacking
        if lacking:
            errors.print(f"cumatrix: {wanted.offline}", soft_wrap=True, markup=False)
    interrupted = False
    with Progressing(errors) as watch:
        kept = kept_for(case, context, [over])
        install = partial(install_for, offline=request.offline)
        found = Bisection(
            axis,
            Search[Lane](ends.versions, every=options["every"], hopeless=hopeless),
            watch,
            install,
            kept,
            options["jobs"] or 0,
            options["out"],
        )
        try:
            found.run()
        except KeyboardInterrupt:
            interrupted = True
    places = range(len(ends.versions))
    reasons = {place: why for place in places if (why := hopeless.get(ends.versions[place]))} | found.reasons
    good_of = partial(ends.good_of, found.seen)
    groups = groups_of(found.seen, good_of)
    borders = tell(ends.versions, groups, found.search.borders, axis.called, good_of)
    findings = Findings(
        over=over,
        versions=ends.versions,
        names=ends.versions,
        called=axis.called,
        tried=sorted(found.search.tried),
        reasons=reasons,
        lacking=found.lacking,
        groups=groups,
        borders=borders,
        contradiction=ends.contradiction(found.seen, reasons),
        interrupted=interrupted,
    )
    command = again(sys.argv[1:], over, findings.sides)
    return show(findings, command, as_json=as_json)


def _over_git(
    over: str, case: Case, context: RunContext, good: str | None, bad: str | None, errors: Console, *, as_json: bool
) -> int:
    checkout = Checkout.at(over.removeprefix("git:"))
    argv = without(sys.argv[1:], {"--good", "--bad", "--json"})
    kept = place_for(case, context, [str(checkout.path), *argv], outside=checkout.path)
    with ExitStack() as stack:
        folder = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cumatrix-bisect-")))
        folder.mkdir(exist_ok=True)
        asked = GitBisection.of(checkout, good, bad, CommitLog(folder))
        asked.log.forget_untestable()
        found = findings_of(asked, over, *search(asked, argv, errors))
        return show(found, again(sys.argv[1:], over, found.sides), as_json=as_json)


def _records(what: str, cases: Path, options: Mapping[str, Any], errors: Console) -> list[Record]:
    """Compile what is checked out now."""
    case, request = program_of(what, cases, options), program_request(options, cases=cases)
    context = context_for(request)
    request, case = as_meant(request, case, context, errors)
    cells = cells_of(request, context.environment, [case], context.devices, context.others)
    context = install_for(cells, context, offline=request.offline)
    with Run(context, options["jobs"] or usable_cores()) as run:
        return [record_of(result, "bisect") for result in run.results(cells)]
