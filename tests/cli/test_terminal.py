"""Printed text contains no CI command, at any line break."""

from __future__ import annotations

import io
import json
import sys

import pytest
from in_process import commands
from rich.table import Table
from rich.text import Text

from harness.cli.terminal import console_for, say, say_json

TEXT = "::error::x"


@pytest.mark.parametrize("colour", [False, True])
def test_lines_that_are_folded_and_laid_out(monkeypatch: pytest.MonkeyPatch, colour: bool) -> None:
    """Rich decides the line breaks: in a long text, in a table, after a style."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("FORCE_COLOR" if colour else "NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    console = console_for(stream, log_width=30)
    console.print(TEXT)
    console.print(Text(f"two\nlines\n   {TEXT}"))
    console.print(Text.assemble(("", "bold"), (TEXT, "bold red")))
    console.print("a" * 25, TEXT)
    console.print(f"{'b' * 28} {TEXT}", soft_wrap=True)
    console.print("##[error]x", "##vso[x]", style="bold")
    table = Table.grid()
    table.add_row(TEXT, "c")
    table.add_row(f"{'d ' * 20}{TEXT}", f"{'e ' * 20}")
    console.print(table)
    said = stream.getvalue()
    assert said.count("error") == 7 + 1
    assert ("\x1b[" in said) is colour
    assert commands(said) == []


def test_one_line_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    values = [TEXT, f"a\n{TEXT}", "##[error]x", "###[group]", "\x7f"]
    for value in values:
        say(value)
        say(value, err=True)
    out, err = capsys.readouterr()
    assert out == err
    assert out.splitlines()[1] == f"a {TEXT}"
    assert commands(out) == []
    say_json(values)
    out = capsys.readouterr().out
    assert json.loads(out) == values
    assert commands(out) == []


def test_the_stream_is_the_stream() -> None:
    """The wrapper forwards questions about the terminal and its characters to the underlying stream."""
    assert console_for(sys.stdout).is_terminal is sys.stdout.isatty()
    assert console_for(io.TextIOWrapper(io.BytesIO(), "ascii")).encoding == "ascii"
