"""Output to the terminal, free of anything that acts on a terminal or a CI.

Names, titles, messages and paths come out of records, cases and compilers. Escape sequences, control characters and those that
reorder what is read are taken out here (`harness.protocol.text.clean`), and no line is a command to the CI that keeps it
(`harness.protocol.text.no_command`), whichever module prints it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from harness.protocol.text import clean, no_command

if TYPE_CHECKING:
    from rich.console import Console


_WIDTH = 200
"""Columns of what is no terminal."""


def console_for(stream: TextIO, *, log_width: int = _WIDTH) -> Console:
    """A console that colours and folds on a terminal only (``NO_COLOR`` and ``FORCE_COLOR`` are rich's own)."""
    from harness.cli.console import SafeConsole  # takes a tenth of a second; --help and completion stay fast

    console = SafeConsole.on(stream)
    return console if console.is_terminal else SafeConsole.on(stream, width=log_width)


def say(text: object, *, err: bool = False) -> None:
    """Print one line on stdout, or on stderr: a text that has more must not make lines that are not cumatrix's."""
    click.echo(_line(text), err=err)


def _line(text: object) -> str:
    return no_command(clean(str(text)).replace("\n", " "))


def say_rows(rows: Iterable[Sequence[str]], bold: Collection[int] = ()) -> None:
    """Print rows in columns on stdout, folded to the width of a terminal, and to 200 elsewhere; those of some numbers in bold.

    A long list is printed so: rich's tables, which fold and colour more, take longer to load than the list takes to print.
    """
    from harness.cli.console import columns  # as above

    width = _WIDTH
    if sys.stdout.isatty():
        import shutil  # with all that packs and unpacks

        width = shutil.get_terminal_size().columns
    cells = [[clean(text) for text in row] for row in rows]
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for number, lines in enumerate(columns(cells, width)):
        for line in map(_line, lines):
            sys.stdout.write((click.style(line, bold=True) if coloured and number in bold else line) + "\n")
    sys.stdout.flush()


def printable(text: str, plain: str, encoding: str | None = None) -> str:
    """Return a text where an encoding has it, by default that of stdout; else what stands for it in ASCII."""
    try:
        text.encode(encoding or sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return plain
    return text


def say_commands(commands: Iterable[str]) -> None:
    """Print lines that are commands to a CI, each of cumatrix's own making; in what stands behind its ``::`` there is no other."""
    for command in commands:
        click.echo("::" + no_command(clean(command.removeprefix("::")).replace("\n", " ")))


def say_json(value: Any) -> None:
    """Print one line of JSON on stdout, in ASCII and without control characters."""
    # json leaves DEL as it is, and what a CI would take for a command.
    sys.stdout.write(json.dumps(value).replace("\x7f", "\\u007f").replace("##", "#\\u0023") + "\n")
    sys.stdout.flush()


def open_streams() -> None:
    """Make stdin, stdout and stderr what can be read and written without fear.

    One that is closed (``>&-``) leads nowhere from now on: the next file that is opened would take its place. A character that the
    encoding of a stream does not have is written as an escape.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> bool:
    """Write what is left to be written; False where that cannot be. Python would say so on its way out, with a traceback."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            whole = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return whole
