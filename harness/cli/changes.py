"""``cumatrix diff`` and ``cumatrix history``: changes between two sets of records and over time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli.command import Command, CommandGroup
from harness.cli.complete import where_option
from harness.cli.options import cases_option, one_cell
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.errors import NothingToRun, needs
from harness.matrix.axes import TOOLCHAIN
from harness.project.current import here
from harness.project.programs import configured
from harness.protocol.text import counted
from harness.records import read_records

if TYPE_CHECKING:
    from harness.analysis.diff import Change, Changes, Unexpected
    from harness.analysis.history import History


_STYLES = {"regression": "bold red", "fix": "green", "changed": "yellow", "lost": "magenta", "found": "cyan",
           "diagnostics": "yellow", "resources": "blue", "appeared": "cyan", "vanished": "magenta"}  # fmt: skip
_SIGNS = {"regression": "!", "fix": "+", "changed": "~", "lost": "?", "found": ".", "diagnostics": "d", "resources": "r",
          "appeared": ">", "vanished": "<"}  # fmt: skip


@click.command(cls=Command)
@click.argument("old")
@click.argument("new")
@click.option(
    "--history",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="OLD and NEW may then be runs of this history, latest or previous.",
)
@click.option(
    "--across",
    multiple=True,
    type=click.Choice(TOOLCHAIN),
    help="Compare cells that differ in this: with library, cells of CuPy 13 with cells of CuPy 14.",
)
@cases_option("Folder of cases, whose current expectations judge both")
@where_option("""'backend == "numba" and cc >= "8.0"'""", "Only cells for which this holds in OLD or in NEW")
@click.option(
    "--only", "kinds", multiple=True, metavar="KIND", help="Show only this kind of change; the exit code stays."
)
@click.option(
    "--limit", type=click.IntRange(0), default=40, show_default=True, help="Changes to show of each kind; 0 for all."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there.")
def diff(
    old: str,
    new: str,
    history: Path | None,
    across: tuple[str, ...],
    cases: Path,
    where: str | None,
    kinds: tuple[str, ...],
    limit: int,
    as_json: bool,
) -> int:
    """Show what changed between two sets of records.

    OLD and NEW are .jsonl files, folders of them, a results.parquet, or runs of a history. The exit code is 1 if there
    is a regression: an unexpected cell that was expected before, or failed less severely. The last line counts all
    unexpected cells of NEW.

    \b
    cumatrix diff yesterday.jsonl today.jsonl
    cumatrix diff --history history previous latest
    cumatrix diff yesterday.jsonl today.jsonl --where 'toolkit == "13.0" and topic == "wmma"'
    cumatrix diff --across library reports/cupy13.jsonl reports/cupy14.jsonl
    """
    try:
        from harness.analysis.cell_sets import choose_in_sets, load_set
        from harness.analysis.diff import CHANGE_KINDS, changes, unexpected
    except ImportError as error:
        raise needs("diff", "report", error) from None
    from harness.analysis.cell_sets import rejudger

    for kind in kinds:
        if kind not in CHANGE_KINDS:
            raise click.BadParameter(f"{kind!r} is not one of {', '.join(CHANGE_KINDS)}", param_hint="--only")
    rejudge = rejudger(cases, configured(here()))
    sets = [load_set(place, history, rejudge) for place in (old, new)]
    for each in sets:
        for warning in each.warnings:
            say(f"cumatrix: {warning}", err=True)
        if each.table.empty:
            raise NothingToRun(f"there are no cells in {each.name}")
    if where:
        sets = choose_in_sets(sets, where, across)
    tables = sets[0].table, sets[1].table
    found = changes(*tables, across=across)
    bad = unexpected(*tables, across=across)
    if as_json:
        value = {
            "schema": 1,
            "old": sets[0].name,
            "new": sets[1].name,
            "across": list(across),
            "counts": found.counts,
            "same": found.same,
            "unexpected": [item.to_json() for item in bad],
            "changes": [item.to_json() for item in found.items if not kinds or item.kind in kinds],
        }
        say_json(value)
    else:
        console = console_for(sys.stdout)
        _show(console, found, kinds, limit)
        if bad:
            # Unchanged cells may still be unexpected.
            console.print(Text(_standing(bad), "bold red"), soft_wrap=True)
    return 1 if found.regressions else 0


def _show(console: Console, found: Changes, kinds: tuple[str, ...], limit: int) -> None:
    from harness.analysis.diff import MEANINGS

    for kind, count in found.counts.items():
        if kinds and kind not in kinds:
            continue
        console.print(Text.assemble((f"{count} {kind}", _STYLES[kind]), f": {MEANINGS[kind]}"))
        shown = found.of(kind)[: limit or None]
        for item in shown:
            console.print(Text.assemble((f"  {_SIGNS[kind]} ", _STYLES[kind]), one_line(item.cell)), soft_wrap=True)
            for line in _details(item):
                console.print(Text(f"      {line}"), soft_wrap=True)
        if count > len(shown):
            console.print(f"    … and {count - len(shown)} more: --limit 0", markup=False)
    words = ", ".join(f"{count} {kind}" for kind, count in found.counts.items())
    console.print(Text(f"{words or 'nothing changed'}; {found.same} cells are the same"))


def _standing(bad: Sequence[Unexpected]) -> str:
    before = sum(not item.new for item in bad)
    cells = "1 cell of NEW is" if len(bad) == 1 else f"{len(bad)} cells of NEW are"
    return f"{cells} not as expected: {len(bad) - before} new, {before} as before"


def _details(item: Change) -> list[str]:
    lines = []
    if item.old and item.new:
        if item.old.outcome != item.new.outcome or item.old.verdict != item.new.verdict:
            lines.append(f"{_state(item.old)} -> {_state(item.new)}")
        if item.old.cell != item.cell:
            lines.append(f"compared with {one_line(item.old.cell)}")
    shown = item.new or item.old
    if shown and shown.message and (item.diagnostics or item.kind in ("regression", "appeared", "changed", "found")):
        lines.append(one_line(shown.message, 200))
    lines += [
        f"{one_line(each.kernel, 60)}: {each.resource} {_number(each.old)} -> {_number(each.new)}"
        for each in item.resources
    ]
    return lines


def _state(state: Any) -> str:
    outcome = state.outcome.replace("_", " ")
    return f"{outcome} ({state.verdict})" if state.verdict else outcome


def _number(value: int | None) -> str:
    return "unknown" if value is None else str(value)


@click.group(cls=CommandGroup)
def history() -> None:
    """Keep runs over time, and show changes."""


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
@click.option("--commit", default="", metavar="SHA", help="Tested commit, for runs without one in their plan.")
def add(results: tuple[Path, ...], folder: Path, commit: str) -> int:
    """Add the runs in RESULTS. A known run is replaced, unless the history has more of its records.

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
    """List runs and environments, oldest first.

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
    """List cells that do not meet their expectation, with the last good and the first bad run, and flaky cells.

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
        line = one_line(f"{item.mark}: {good}, bad since {item.first_bad} ({item.since[:10]}), {runs}")
        console.print(Text.assemble(("! ", "bold red"), one_line(item.cell)), soft_wrap=True)
        console.print(Text(f"    {line}"), soft_wrap=True)
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
        raise needs("a history", "report", error) from None
