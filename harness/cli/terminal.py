"""Output to the terminal, without sequences that act on a terminal or a CI.

Names, titles, messages and paths come from records, cases and compilers. This module removes escape sequences, control
characters and characters that reorder text (`harness.protocol.text.clean`), and no line is a command to a CI
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
"""Columns of a stream that is not a terminal."""


def console_for(stream: TextIO, *, log_width: int = _WIDTH) -> Console:
    """Return a console that colours and folds only on a terminal; rich reads ``NO_COLOR`` and ``FORCE_COLOR``."""
    from harness.cli.console import SafeConsole  # takes a tenth of a second, which --help and completion save

    console = SafeConsole.on(stream)
    return console if console.is_terminal else SafeConsole.on(stream, width=log_width)


def say(text: object, *, err: bool = False) -> None:
    """Print one line on stdout or stderr; line breaks in the text become spaces, so no line imitates cumatrix's."""
    click.echo(_line(text), err=err)


def _line(text: object) -> str:
    return no_command(clean(str(text)).replace("\n", " "))


def say_rows(rows: Iterable[Sequence[str]], bold: Collection[int] = ()) -> None:
    """Print rows in columns on stdout, folded to the width of a terminal, and to 200 columns elsewhere.

    The rows with numbers in `bold` are bold. rich's tables fold and colour more, but take longer to load than a long
    list takes to print.
    """
    from harness.cli.console import columns  # for the same reason

    width = _WIDTH
    if sys.stdout.isatty():
        import shutil  # imports compression modules

        width = shutil.get_terminal_size().columns
    cells = [[clean(text) for text in row] for row in rows]
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    for number, lines in enumerate(columns(cells, width)):
        for line in map(_line, lines):
            sys.stdout.write((click.style(line, bold=True) if coloured and number in bold else line) + "\n")
    sys.stdout.flush()


def printable(text: str, plain: str, encoding: str | None = None) -> str:
    """Return `text` if the encoding, by default stdout's, can represent it; else the ASCII text `plain`."""
    try:
        text.encode(encoding or sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return plain
    return text


def say_commands(commands: Iterable[str]) -> None:
    """Print cumatrix's own commands to a CI, one line each; the text after ``::`` cannot contain another command."""
    for command in commands:
        click.echo("::" + no_command(clean(command.removeprefix("::")).replace("\n", " ")))


def say_json(value: Any) -> None:
    """Print one line of JSON on stdout, in ASCII and without control characters."""
    # json leaves DEL unescaped, and sequences that a CI treats as commands.
    sys.stdout.write(json.dumps(value).replace("\x7f", "\\u007f").replace("##", "#\\u0023") + "\n")
    sys.stdout.flush()


def open_streams() -> None:
    """Make stdin, stdout and stderr safe to use.

    A closed stream (``>&-``) is redirected to the null device, since the next opened file would otherwise take its
    number. Characters outside a stream's encoding are written as escapes.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        stream: Any = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif number and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_streams() -> bool:
    """Write buffered output; return False if that fails, for which Python would print a traceback at exit."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            whole = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return whole
