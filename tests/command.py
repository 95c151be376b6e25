"""The command as users run it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
from in_process import call


class Command:
    """The command ``cumatrix`` as users run it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = Path(sys.executable).with_name("cumatrix")

    def argv(self, *arguments: str | Path) -> list[str]:
        """Return the words of the command line."""
        return [str(self.script), *map(str, arguments)]

    def __call__(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 800
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        return subprocess.run(
            self.argv(*arguments), cwd=self.folder, capture_output=True, text=True, timeout=timeout,
            stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})},
        )  # fmt: skip

    def records(self, *arguments: str | Path, **keywords: Any) -> list[dict[str, Any]]:
        """Run with ``--json`` and return the records by cell, since cells finish in any order. Every line must be a record."""
        done = self(*arguments, "--json", **keywords)
        assert done.returncode in (0, 1, 3, 4), done.stderr
        return sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda record: record["cell"])


class Called(Command):
    """Call the command as a function: its imports, most of a second, happen once.

    The result lacks output that a tool writes to the process's own streams, and writing never waits for a reader.
    """

    def __call__(
        self, *arguments: str | Path, env: Mapping[str, str] | None = None, timeout: float = 800
    ) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        with (
            contextlib.chdir(self.folder),
            # No terminal, like the process.
            patch.dict(os.environ, {"COLUMNS": "80", **(env or {})}),
            open(os.devnull) as nothing,
            patch.object(sys, "stdin", nothing),
        ):
            done = call(*arguments, seconds=int(timeout))
        return subprocess.CompletedProcess(self.argv(*arguments), done.code, done.out, done.err)


def commands_of(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Return every command below a group, by its words: ``history add``."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_of(command, *path, name)
        else:
            yield " ".join((*path, name)), command
