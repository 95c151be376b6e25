"""Help that fits on a screen: options in groups, one line each; ``cumatrix help COMMAND`` shows all of it."""

from __future__ import annotations

import inspect
import re

import click

from harness.cli.terminal import say

_OPTION_GROUPS = {
    "Search": ("over", "good", "bad", "releases", "every", "build_command"),
    "Cells": ("backends", "toolkits", "targets", "libraries", "header_libraries", "host_compilers", "where", "shard"),
    "Program": ("include", "define", "std", "extra", "compile_commands", "signature"),
    "Run": ("device", "jobs", "timeout", "memory", "offline", "python", "trust", "earlier", "dask", "dry_run"),
    "Output": ("as_json", "out", "page", "artifacts"),
}  # fmt: skip
"""Names of parameters; options in none of them are listed by name."""

_WIDTH = 32


def format_briefly(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write usage, the first two paragraphs, examples, and one line for each option that is in a group."""
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


@click.command("help")
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
    say(formatter.getvalue().rstrip("\n"))
