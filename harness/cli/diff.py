"""``cumatrix diff``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from harness.cli.command import Command
from harness.cli.complete import where_option
from harness.cli.options import cases_option
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.errors import NothingToRun, PartUnavailable
from harness.matrix.axes import TOOLCHAIN
from harness.project.current import here
from harness.project.programs import configured

if TYPE_CHECKING:
    from harness.analysis.diff import Change, Changes, Unexpected

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
    help="Compare cells that differ in this: with library, those of CuPy 13 with those of CuPy 14.",
)
@cases_option("Judge both by the expectations that these cases have now")
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

    OLD and NEW are .jsonl files, folders of them, a results.parquet, or runs of a history. The exit code is 1 if there is a regression: an
    unexpected cell that was expected before, or failed less severely. The last line counts all unexpected cells of NEW.

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
        raise PartUnavailable(f"diff needs {error.name}: pip install 'cumatrix[report]'") from None
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
            # Nothing changed is not the same as all is well.
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
