"""Options that name files and folders, as several commands have them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorated = Callable[[Callable[..., Any]], Callable[..., Any]]

RESULTS = Path("reports")
"""Where records are looked for when nobody says where."""


def results_argument(*, required: bool = True) -> Decorated:
    """RESULTS…: files and folders of records that are there."""
    return click.argument(
        "results", nargs=-1, required=required, type=click.Path(path_type=Path, exists=True),
        metavar="RESULTS…" if required else "[RESULTS…]",
    )  # fmt: skip


def cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """--cases DIR, one folder; `words` says what for."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=Path("cases"), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip


def all_cases_option(words: str = "Folder of cases", name: str = "cases") -> Decorated:
    """--cases DIR, any number of times."""
    return click.option(
        "--cases", name, type=click.Path(path_type=Path), default=[Path("cases")], multiple=True, metavar="DIR",
        help=f"{words}; several times for several folders. Default: cases.",
    )  # fmt: skip


def out_folder(default: str, words: str) -> Decorated:
    """--out DIR, a folder that is written."""
    return click.option(
        "--out", type=click.Path(path_type=Path, file_okay=False), default=Path(default), show_default=True, metavar="DIR", help=f"{words}.",
    )  # fmt: skip
