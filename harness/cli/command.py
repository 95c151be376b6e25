"""Base classes of commands: repeated options are errors, the configuration sets defaults, and help fits on a screen."""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import click

from harness.cli.terminal import say
from harness.project.discovery import found

_OPTION_GROUPS = {
    "Search": ("over", "good", "bad", "releases", "every", "build_command"),
    "Cells": ("backends", "toolkits", "targets", "libraries", "header_libraries", "host_compilers", "where", "shard"),
    "Program": ("include", "define", "std", "extra", "compile_commands", "signature"),
    "Run": ("device", "jobs", "timeout", "memory", "offline", "python", "trust", "earlier", "dask", "dry_run"),
    "Output": ("as_json", "out", "page", "artifacts"),
}  # fmt: skip
"""Option groups of the brief help, by parameter name. The help only names all other options."""

_WIDTH = 32
_TEXT = re.compile(r"(?P<file>.+\.py):(?P<text>.+)", re.DOTALL)


class ProgramFile(click.Path):
    """A file or folder, or one program among the strings of a Python file: ``ops.py:scale``."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, exists=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check that the file exists."""
        file, text = split_program(Path(value))
        path = super().convert(str(file), param, ctx)
        return Path(f"{os.fspath(file)}:{text}") if text else path


def split_program(path: Path) -> tuple[Path, str]:
    """Return the file, and the name of a program in it; empty for the whole file."""
    found = _TEXT.fullmatch(str(path))
    if not found or path.exists():
        return path, ""
    return Path(found["file"]), found["text"]


def format_briefly(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write usage, the first two paragraphs, examples, and one line per grouped option."""
    command.format_usage(ctx, formatter)
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    shown = [*paragraphs[:2], *(each for each in paragraphs[2:] if each.startswith("\b"))]
    with formatter.indentation():
        for paragraph in shown:
            formatter.write_paragraph()
            formatter.write_text(paragraph)
    options = {
        each.name: each for each in command.get_params(ctx) if isinstance(each, click.Option) and not each.hidden
    }
    for title, names in _OPTION_GROUPS.items():
        if rows := [_line(options.pop(name), ctx) for name in names if name in options]:
            with formatter.section(title):
                formatter.write_dl(rows, col_max=_WIDTH)
    formatter.write_paragraph()
    formatter.write_text(f"Further options: {', '.join(each.opts[0] for each in options.values())}")
    formatter.write_paragraph()
    formatter.write_text(f"`cumatrix help {command.name}` explains all of them.")


def _line(option: click.Option, ctx: click.Context) -> tuple[str, str]:
    names, words = option.get_help_record(ctx) or ("", "")
    return names.replace("INTEGER RANGE", "N"), re.split(r"\.(?: |$)", words, maxsplit=1)[0]


class _WithHelp(click.Command):
    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the help option: click would cache those of the first context."""
        return ["-h", "--help"]


@click.command("help", cls=_WithHelp)
@click.argument("words", nargs=-1, metavar="[COMMAND]…")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Explain a command with all of its options."""
    root = ctx.find_root()
    command, here = root.command, root
    for word in words:
        found = command.get_command(here, word) if isinstance(command, click.Group) else None
        if not found:
            raise click.UsageError(f"no command {' '.join(words)[:100]!r}: `cumatrix help` lists them", ctx)
        command, here = found, click.Context(found, info_name=word, parent=here)
    formatter = here.make_formatter()
    click.Command.format_help(command, here, formatter)
    for line in formatter.getvalue().rstrip("\n").split("\n"):
        say(line)


_SCREEN = 60


class Command(_WithHelp):
    """A command that rejects repeated single-valued options, and whose help fits on a screen."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the whole help if it is short, else the brief one."""
        whole = ctx.make_formatter()
        super().format_help(ctx, whole)
        if whole.getvalue().count("\n") < _SCREEN:
            formatter.write(whole.getvalue())
        else:
            format_briefly(self, ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the command line.

        Raises
        ------
        click.UsageError
            As in click, and if a single-valued option is repeated.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, count in Counter(order).items():
            if count > 1 and isinstance(parameter, click.Option) and not parameter.multiple and not parameter.is_flag:
                # The help shows lists as "V,…".
                hint = ": name all in one, with commas between" if "," in (parameter.metavar or "") else ""
                raise click.UsageError(
                    f"{'/'.join(parameter.opts)} is given {count} times and has one value{hint}", ctx
                )
        if not found(Path.cwd()):
            return super().parse_args(ctx, args)
        from harness.cli.config_defaults import (  # only with a configuration
            check_trust,
            take_defaults,
        )

        take_defaults(ctx, args)
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:  # completion runs nothing
            check_trust(ctx)
        return rest


class CommandGroup(_WithHelp, click.Group):
    """A group of `Command` commands."""

    command_class = Command
