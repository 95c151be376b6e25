"""``cumatrix history``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table
from rich.text import Text

from harness.cli.command import CommandGroup
from harness.cli.complete import where_option
from harness.cli.options import one_cell
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.errors import NothingToRun, PartUnavailable
from harness.protocol.text import counted
from harness.records import read_records

if TYPE_CHECKING:
    from harness.analysis.history import History


@click.group(cls=CommandGroup)
def history() -> None:
    """Keep runs over time, and show what changed."""


def _folder(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--history", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path("history"), show_default=True,
        envvar="CUMATRIX_HISTORY", metavar="DIR", help="Folder of the history.",
    )(command)  # fmt: skip


_WHERE = where_option(
    """'toolkit >= "13.0" and topic == "wmma"'""", "Only cells for which this holds in the last run that has them"
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else there.")


@history.command()
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True), metavar="RESULTS…")
@_folder
@click.option("--commit", default="", metavar="SHA", help="Commit that was tested, for runs whose plan does not say.")
def add(results: tuple[Path, ...], folder: Path, commit: str) -> int:
    """Add the runs in RESULTS; a run that is there already is replaced, unless the history knows more of it.

    \b
    cumatrix history add reports --history history
    """
    _needs_pandas()
    from harness.analysis.history import append

    read = read_records(results)
    for warning in read.warnings:
        say(f"cumatrix: {warning}", err=True)
    if not read.records and not read.plans:
        raise NothingToRun("there are no records in these files")
    runs = append(folder, read.records, read.plans, commit=commit)
    say(f"{len(runs)} run{'s' if len(runs) > 1 else ''} in {folder}: {', '.join(map(one_line, runs))}", err=True)
    return 0


@history.command("list")
@_folder
@_WHERE
@_JSON
def list_(folder: Path, where: str | None, as_json: bool) -> int:
    """Runs and environments, oldest first.

    \b
    cumatrix history list --where 'backend == "cupy-jitify"'
    """
    read = _read(folder, ["started", "commit", "environment", "mark", "outcome", "seconds", "cell"], where)
    from harness.analysis.history import trend

    rows = json.loads(trend(read).to_json(orient="records"))
    if as_json:
        say_json(rows)
        return 0
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("run", "started", "commit", "environment"):
        table.add_column(name, no_wrap=True)
    for name in ("cells", "built", "bad", "missing"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            *(Text(one_line(str(row[name]), 40)) for name in ("run", "started", "commit", "environment")),
            *(Text(str(row[name]), "bold red" if name in ("bad", "missing") and row[name] else "") for name in ("cells", "built", "bad", "missing")),
        )  # fmt: skip
    console_for(sys.stdout).print(table)
    return 0


@history.command()
@click.argument("cell")
@_folder
@_WHERE
@_JSON
def cell(cell: str, folder: Path, where: str | None, as_json: bool) -> int:
    """Follow CELL (an id, or a unique part of one) from run to run.

    \b
    cumatrix history cell cupy-8156 --where 'backend == "nvrtc" and toolkit == "12.4" and cc == "9.0"'
    """
    read = _read(folder, None, where)
    from harness.analysis.history import cell_history

    name = one_cell(cell, list(read.table["cell"].unique()))
    events = cell_history(read, name)
    if as_json:
        say_json({"cell": name, "events": [vars(event) for event in events]})
        return 0
    console = console_for(sys.stdout)
    console.print(Text(one_line(name)))
    for event in events:
        sign = "->" if event.changed else "  "
        text = f"{sign} {event.started[:16]} {event.run} {event.commit[:12]} {event.outcome} {event.verdict} {event.message}"
        console.print(Text(one_line(text), "bold" if event.changed else ""), soft_wrap=True)
    return 0


@history.command()
@_folder
@_WHERE
@_JSON
def broken(folder: Path, where: str | None, as_json: bool) -> int:
    """Cells that are not as expected now, with the last good and the first bad run, and those that are flaky.

    \b
    cumatrix history broken --where 'backend == "numba-cuda" and status == "crashed"'
    """
    read = _read(folder, ["mark", "outcome", "fingerprint", "started"], where)
    from harness.analysis.history import breaks, unsteady

    bad, flaky = breaks(read), unsteady(read)
    if as_json:
        say_json({"broken": [vars(item) for item in bad], "unsteady": [vars(item) for item in flaky]})
        return 0
    console = console_for(sys.stdout)
    for item in bad:
        good = f"good in {item.last_good}" if item.last_good else "never good"
        runs = f"{item.runs} run{'s' if item.runs > 1 else ''}"
        said = one_line(f"{item.mark}: {good}, bad since {item.first_bad} ({item.since[:10]}), {runs}")
        console.print(Text.assemble(("! ", "bold red"), one_line(item.cell)), soft_wrap=True)
        console.print(Text(f"    {said}"), soft_wrap=True)
    for each in flaky:
        word = "flaky" if each.flaky else "unsteady"
        console.print(
            Text.assemble((f"~ {word} ", "yellow"), one_line(each.cell), f": {one_line(', '.join(each.outcomes))}"),
            soft_wrap=True,
        )
    console.print(f"{counted(len(bad), 'cell')} broken, {sum(item.flaky for item in flaky)} flaky", markup=False)
    return 0


def _read(folder: Path, columns: list[str] | None, where: str | None) -> History:
    _needs_pandas()
    from harness.analysis.cell_sets import COLUMNS, choose_in_history
    from harness.analysis.history import read_history

    read = read_history(folder, columns and [*columns, *(COLUMNS if where else ())])
    for warning in read.warnings:
        say(f"cumatrix: {warning}", err=True)
    if read.table.empty:
        raise NothingToRun(f"there are no runs in {folder}")
    return choose_in_history(read, where) if where else read


def _needs_pandas() -> None:
    try:
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise PartUnavailable(f"a history needs {error.name}: pip install 'cumatrix[report]'") from None
