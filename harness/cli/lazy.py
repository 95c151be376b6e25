"""A group that imports a command when it is asked for, so that ``--help`` and completion do not wait for all of them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group of commands that are in modules of their own.

    Parameters
    ----------
    commands_in : Mapping of str to str
        By the name of each command, where it is: ``package.module:function``.
    """

    def __init__(self, *args: Any, commands_in: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self.commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of the alphabet."""
        return sorted(self.commands_in)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command, imported now; None where there is none of this name."""
        if cmd_name not in self.commands_in:
            return None
        module, _, name = self.commands_in[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands that begin so, with their help, and the group's own options; none of them is imported for that."""
        from click.shell_completion import CompletionItem

        return [
            *(
                CompletionItem(
                    name, help=_Documented(name, help=_docstring(self.commands_in[name])).get_short_help_str()
                )
                for name in self.list_commands(ctx)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the first sentence of each one's help, which is read without importing it."""
        width = formatter.width - 6 - max(map(len, self.commands_in))
        rows = [
            (name, _Documented(name, help=_docstring(self.commands_in[name])).get_short_help_str(width))
            for name in self.list_commands(ctx)
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class _Documented(click.Command):
    """Stands for a command where only its help is wanted."""


def _docstring(where: str) -> str:
    module, _, name = where.partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None
    tree = ast.parse(Path(spec.origin).read_text("utf-8"))
    return next(ast.get_docstring(node) or "" for node in tree.body if getattr(node, "name", None) == name)  # type: ignore[arg-type]
