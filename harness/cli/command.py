"""Commands: options given twice are errors, and the project's configuration sets defaults."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from harness.cli.help import format_briefly
from harness.project.discovery import found

_SCREEN = 60


class Command(click.Command):
    """A command whose single-valued options may be given once, and whose help fits on a screen."""

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
            As click does, and where an option that has one value is given several.
        """
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, count in Counter(order).items():
            if count > 1 and isinstance(parameter, click.Option) and not parameter.multiple and not parameter.is_flag:
                # Lists are called so in the help: "V,…".
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


class CommandGroup(click.Group):
    """A group of such commands."""

    command_class = Command
