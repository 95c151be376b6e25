"""The question whether a configuration may name programs, on a terminal."""

from __future__ import annotations

import sys

import click

from harness.cli.terminal import say
from harness.project.trust import Untrusted, shown, trust


def ask(error: Untrusted) -> bool:
    """Ask on a terminal whether to trust a configuration, and store a yes. False without a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{shown(error.config.shown)} is not trusted. With it, cumatrix", err=True)
    for each in error.named:
        say(f"  {each.does} {shown(each.value)} ({each.key}, line {each.line})", err=True)
    if not click.confirm("Allow it in this folder from now on?", default=False, err=True):
        return False
    trust(error.config)
    return True
