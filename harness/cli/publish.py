"""``cumatrix publish``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.options import cases_option, out_folder, results_argument
from harness.cli.terminal import say, say_json
from harness.errors import NothingToRun, PartUnavailable, UsageError, needs
from harness.protocol.text import counted

_SHOWN = 20
"""Number of pairs of values that ``--plan`` prints."""


@click.command(cls=Command)
@results_argument(required=False)
@out_folder("reports/matrix", "Folder of the matrix")
@cases_option("Folder of the results' cases")
@click.option("--plan", "show", is_flag=True, help="Show the coverage of OUT/plan.toml, and write nothing.")
@click.option(
    "--next", "following", type=click.IntRange(1, 1000), metavar="N",
    help="Print N commands that compile missing cells of OUT/plan.toml, the most useful first, and write nothing.",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0), metavar="S", help="With --next: the compile time of all commands together."
)  # fmt: skip
@click.option(
    "--watch",
    is_flag=True,
    help="With --plan or --next: include new releases on the index; their commands come first.",
)
@click.option(
    "--wheels", is_flag=True,
    help="Read the newest releases of the packages in OUT/plan.toml from the index into OUT/wheels.json; known releases are kept.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="With --plan or --next: as JSON.")
def publish(
    results: tuple[Path, ...],
    out: Path,
    cases: Path,
    show: bool,
    following: int | None,
    seconds: float | None,
    watch: bool,
    wheels: bool,
    as_json: bool,
) -> int:
    """Pack records for `ask` and `report`.

    RESULTS are .jsonl or .parquet files, folders of them, or an earlier published matrix to extend. The output is
    results.parquet (every record, without most logs), answers.json.gz (for `cumatrix ask`) and manifest.json (runs,
    commands, versions, and a digest of each case). publish omits and names cases whose program has changed.

    plan.toml in the folder of the matrix names the axes that it crosses. --plan and --next compare it with RESULTS, by
    default the matrix.

    \b
    cumatrix publish reports/*.jsonl
    cumatrix publish reports/matrix tonight.jsonl --out reports/matrix
    cumatrix publish --next 5 --seconds 3600
    cumatrix publish --wheels
    """
    if wheels:
        if results or show or following is not None or seconds is not None or watch or as_json:
            raise UsageError("--wheels goes with --out alone")
        return _write_wheels(out)
    reads = show or following is not None
    if show and following is not None:
        raise UsageError("--plan and --next exclude each other")
    if seconds is not None and following is None:
        raise UsageError("--seconds is for --next")
    if (as_json or watch) and not reads:
        raise UsageError("--json and --watch are for --plan and --next")
    if not results and not reads:
        raise UsageError("name the records to publish: cumatrix publish reports/*.jsonl")
    if not cases.is_dir():
        raise UsageError(f"there is no folder {cases}: name that of the cases with --cases")
    if reads:
        return _compare(results or (out,), out, cases, following, seconds, watch=watch, as_json=as_json)
    return _write(results, out, cases)


def _write_wheels(out: Path) -> int:
    """Read new releases; return 4 if a package could not be read."""
    from harness.environments.index import Index
    from harness.matrix_plan.coverage import PLAN, read_wheel_plan
    from harness.records.files import check_writable, replace_files
    from harness.toolkits.store import data_folder
    from harness.wheels.published import WHEELS, packed, read_wheels, update

    if not (out / PLAN).is_file():
        raise UsageError(f"there is no {out / PLAN}, which names the packages")
    wanted, path = read_wheel_plan(out / PLAN), out / WHEELS
    check_writable(path)
    known = {package.name: package for package in read_wheels(path)} if path.is_file() else {}
    problems = 0

    def tell(sentence: str) -> None:
        say(f"cumatrix: {sentence}", err=True)

    def refuse(reason: str) -> None:
        nonlocal problems
        problems += 1
        tell(f"not read: {reason}")

    found = dict(known)
    for package in update(wanted.packages, wanted.releases, known, Index(data_folder() / "index"), tell, refuse):
        found[package.name] = package
        # Writing after each package keeps the results of an interrupted run.
        replace_files({path: packed(list(found.values()))})
    names = [name for names in wanted.packages.values() for name in names]
    replace_files({path: packed([found[name] for name in names])})
    count = sum(len(found[name].releases) for name in names)
    say(f"{counted(count, 'wheel')} of {counted(len(names), 'package')}: {path.stat().st_size / 1e6:.2f} MB", err=True)
    say(path)
    return PartUnavailable.exit_code if problems else 0


def _write(results: Sequence[Path], out: Path, cases: Path) -> int:
    try:
        from harness.report.publish import publish as write
    except ImportError as error:
        raise needs("a matrix to publish", "report", error) from None
    from harness.matrix_plan.coverage import PLAN, coverage_table
    from harness.matrix_plan.proposals import compare

    plan = out / PLAN
    table = (lambda records: coverage_table(compare(plan, cases, records).coverages)) if plan.is_file() else None
    done = write(results, out, cases, coverage=table)
    for note in done.notes:
        say(f"cumatrix: {note}", err=True)
    if done.stale:
        say("left out, because these cases are other programs now:", err=True)
        for case, count in done.stale.items():
            say(f"  {case}: {counted(count, 'cell')}", err=True)
    sizes = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in done.sizes.items())
    say(f"{counted(done.cells, 'cell')}, {done.answered:,} of them answered by a compiler: {sizes}", err=True)
    say(out)
    return 0


def _compare(
    results: Sequence[Path],
    out: Path,
    cases: Path,
    following: int | None,
    seconds: float | None,
    *,
    watch: bool,
    as_json: bool,
) -> int:
    try:
        from harness.report.publish import current_records
    except ImportError as error:
        raise needs("publish", "report", error) from None
    from harness.matrix_plan.coverage import PLAN, coverage_table, pairs_of
    from harness.matrix_plan.proposals import compare

    new = _new_releases() if watch else {}
    whole = compare(out / PLAN, cases, current_records(results, cases), new)
    if following is not None:
        proposals = whole.next(following, seconds)
        if not proposals:
            raise NothingToRun("nothing of the plan is missing" if seconds is None else "nothing fits into this time")
        if as_json:
            say_json([proposal.to_json() for proposal in proposals])
            return 0
        for proposal in proposals:
            say(
                f"{counted(proposal.cells, 'cell')}, {proposal.seconds:,.0f} s, separates {proposal.separates:,.1f}",
                err=True,
            )
            say(shlex.join(["cumatrix", *proposal.argv]))
        return 0
    if as_json:
        say_json([coverage.to_json() for coverage in whole.coverages])
        return 0
    for line in coverage_table(whole.coverages).splitlines():
        say(line)
    _say_pairs(pairs_of(whole.coverages))
    return 0


def _new_releases() -> dict[str, list[str]]:
    """Return new releases by library, and print a line per release on stderr."""
    from harness.environments.index import Index
    from harness.matrix_plan.proposals import new_releases
    from harness.toolkits.store import data_folder

    found: dict[str, list[str]] = {}
    for release in new_releases(Index(data_folder() / "index")):
        say(f"cumatrix: {release}", err=True)
        if not release.pinned:
            found.setdefault(release.name, []).append(release.version)
    return found


def _say_pairs(lines: Sequence[str]) -> None:
    if lines:
        say("")
        say("confounded, with the number of squares:")
        for line in lines[:_SHOWN]:
            say(f"  {line}")
        if len(lines) > _SHOWN:
            say(f"  and {len(lines) - _SHOWN:,} more pairs (--json)")
