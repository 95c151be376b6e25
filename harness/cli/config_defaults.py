"""Option defaults from the project's configuration, and the prompt to trust it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import click

from harness.cli.terminal import say
from harness.project.current import here
from harness.project.keys import AXES, WHEEL
from harness.project.trust import PROGRAMS, Untrusted, require_trust, shown, trust


def ask(error: Untrusted) -> bool:
    """Ask on a terminal whether to trust a configuration, and store a yes. Return False without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{shown(error.config.shown)} is not trusted. With it, cumatrix", err=True)
    for each in error.named:
        say(f"  {each.does} {shown(each.value)} ({each.key}, line {each.line})", err=True)
    if not click.confirm("Allow it in this folder from now on?", default=False, err=True):
        return False
    trust(error.config)
    return True


_ALL = {setting.parameter: name for name, setting in AXES.items()}

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "run": {**_ALL, "cases": "cases", "page": "page", "artifacts": "artifacts"},
    "try": {**{name: key for name, key in _ALL.items() if key != "where"}, "artifacts": "artifacts"},
    "report": {"results": "results", "out": "page", "cases": "cases", "artifacts": "artifacts"},
    "annotate": {"results": "results", "cases": "cases"},
    "merge": {"results": "results"},
    "explain": {"results": "results"},
    "repro": {"results": "results"},
    "cases list": {"root": "cases"},
    "cases check": {"root": "cases"},
    "cases new": {"root": "cases"},
    "wheel": {setting.parameter: f"wheel.{name}" for name, setting in WHEEL.items()},
}
"""Parameters of each command with a key in the configuration."""

_HELP = {"--help", "-h"}


def take_defaults(ctx: click.Context, args: list[str]) -> None:
    """Set the project's settings as defaults of a command's options; environment variables override them in click.

    Raises
    ------
    CaseError
        If the configuration is invalid.
    """
    wanted = COMMANDS.get(ctx.command_path.removeprefix("cumatrix "))
    if not wanted or _HELP & set(args):
        return
    config = here()
    found = {name: config.option(key) for name, key in wanted.items()}
    ctx.default_map = {**(ctx.default_map or {}), **_spelled(ctx, found)}


def check_trust(ctx: click.Context) -> None:
    """Raise `Untrusted` if a command would run untrusted programs of the configuration; on a terminal, ask first.

    Raises
    ------
    Untrusted
        If the user does not allow it. Values from the command line and the environment need no trust.
    """
    name = ctx.command_path.removeprefix("cumatrix ")
    used = {
        key
        for parameter, key in COMMANDS.get(name, {}).items()
        if ctx.get_parameter_source(parameter) is click.core.ParameterSource.DEFAULT_MAP
    }
    compiles = name in ("run", "try", "bisect") or (name == "repro" and (ctx.params["check"] or ctx.params["reduced"]))
    if name not in ("run", "try"):
        used &= {"page"}  # the other settings of other commands name files to read
    if compiles:
        used.add(PROGRAMS)
    if name == "run" and not ctx.params["out"]:
        used.add("results")
    if not used:
        return
    try:
        require_trust(here(), used, trusted=ctx.params.get("trust", False))
    except Untrusted as error:
        from harness.cli.config_defaults import ask

        if ctx.parent is None or not ask(error):  # without a parent, `import cumatrix` created the command
            raise


def _spelled(ctx: click.Context, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in click's form: lists for repeatable parameters."""
    several = {each.name for each in ctx.command.params if each.nargs == -1 or getattr(each, "multiple", False)}
    spelled: dict[str, Any] = {}
    for name, value in found.items():
        if value is not None:
            one = value if isinstance(value, tuple) else (value,)
            spelled[name] = (
                list(map(str, one)) if name in several else value if not isinstance(value, tuple) else value[0]
            )
    return spelled
