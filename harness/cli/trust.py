"""``cumatrix trust``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.terminal import say
from harness.errors import UsageError
from harness.project.config import read_config
from harness.project.discovery import OWN, PYPROJECT, found
from harness.project.trust import entries, line_of, revoke, shown
from harness.project.trust import trust as allow


@click.command(cls=Command)
@click.argument("place", required=False, type=click.Path(path_type=Path, exists=True), metavar="[DIR|FILE]")
@click.option("--list", "listed", is_flag=True, help="Print what is trusted, and allow nothing.")
@click.option("--revoke", "revoked", is_flag=True, help="Forget the trust in this folder's configuration.")
def trust(*, place: Path | None, listed: bool, revoked: bool) -> int:
    """Allow a folder's configuration to name programs.

    A configuration (cumatrix.toml, or [tool.cumatrix] in pyproject.toml) may name programs that cumatrix then runs with your rights: an
    interpreter (python), a compiler (host-compiler, toolkit), a build (with), compiler options that start programs (flags). In a
    folder that you have just cloned, run, try and pytest therefore stop before they run any of it. Look at the file, then allow it
    once. When what it names changes, or the folder moves, they stop again. A configuration that names nothing of the kind
    needs no trust, and neither does what you write on the command line or into variables yourself.

    \b
    cumatrix trust                       allow what the configuration of this folder names
    cumatrix trust ../project            the same for another folder, or for a file
    cumatrix trust --list                what is trusted
    cumatrix trust --revoke              forget it
    CUMATRIX_TRUST=1 cumatrix run        in CI, where only reviewed code runs; or folders, as in PATH
    cumatrix run --trust                 this time only
    """
    if listed and revoked:
        raise UsageError("--list and --revoke exclude each other")
    if listed:
        for entry in entries():
            say(shown(entry.file))
            for line in entry.named:
                say(f"  {shown(line)}")
        return 0
    file = _file(place or Path.cwd(), gone=revoked)
    if revoked:
        count = revoke(file)
        say(f"{shown(os.path.relpath(file))}: {'no longer trusted' if count else 'was not trusted'}")
        return 0
    config = read_config(file)
    named = allow(config)
    say(f"{shown(config.shown)}: {'trusted' if named else 'names nothing that needs trust'}")
    for each in named:
        say(f"  {line_of(each)}")
    return 0


def _file(place: Path, *, gone: bool) -> Path:
    """The configuration in a folder or file; a deleted one can still be revoked."""
    if place.is_file():
        return place.absolute()
    file = found(place.absolute())
    if file is None:
        if gone and (known := [e.file for e in entries() if Path(e.file).parent == place.resolve()]):
            return Path(known[0])
        raise UsageError(f"{place} has no configuration: neither {OWN}, nor {PYPROJECT} with [tool.cumatrix]")
    return file
