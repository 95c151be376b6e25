"""``cumatrix cache``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text

from harness.cli.command import CommandGroup
from harness.cli.options import Size
from harness.cli.terminal import console_for, say, say_json
from harness.engine.cache import ResultCache
from harness.protocol.text import counted


@click.group(cls=CommandGroup)
def cache() -> None:
    """Show or clear the outcomes of earlier runs.

    They are in a folder of the user's, or in CUMATRIX_CACHE, which any number of runs may use at the same time. What has not been asked for
    longest goes first when it is full.
    """


@cache.command("info")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def info(as_json: bool) -> int:
    """Show its folder, entries, size and size limit."""
    store = ResultCache()
    folder, entries, used, limit = store.folder, store.entries, store.size, store.limit
    store.close()
    if as_json:
        say_json({"folder": str(folder), "entries": entries, "bytes": used, "limit_bytes": limit})
        return 0
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_row("folder", Text(str(folder)))
    table.add_row("entries", f"{entries}")
    table.add_row("size", f"{used / 2**20:.1f} MiB of {limit / 2**20:.0f} MiB")
    console_for(sys.stdout).print(table)
    return 0


@cache.command("prune")
@click.option(
    "--to",
    "most",
    type=Size(),
    default="0",
    show_default=True,
    metavar="SIZE",
    help="Keep so much of what was asked for last: 500M.",
)
def prune(most: int) -> int:
    """Forget outcomes: all of them, or those that have not been asked for longest.

    Runs that are under way go on, and compile again what they no longer find.
    """
    store = ResultCache()
    before = store.size
    gone = store.prune(most)
    after, folder = store.size, Path(store.folder)
    store.close()
    say(
        f"{counted(gone, 'outcome')} forgotten, {(before - after) / 2**20:.1f} MiB; {after / 2**20:.1f} MiB are left in {folder}"
    )
    return 0
