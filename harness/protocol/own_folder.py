"""Folders that a fork server makes for itself, in its temporary folder: its keeper removes them, however the fork server ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "fork-server-"


def make() -> Path:
    """A new folder, in a fork server.

    Raises
    ------
    OSError
        Where there is no room.
    """
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getppid()}-"))


def remove_all() -> None:
    """Remove every folder that the fork server below this keeper has made."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{os.getpid()}-*"):
        shutil.rmtree(path, ignore_errors=True)
