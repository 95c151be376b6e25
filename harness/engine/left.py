"""Reading what a cell's process left: a stranger's files, which may be links, pipes, endless, or not there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

_MOST = 64 << 20


class Unreadable(Exception):
    """A file that is not what it should be; the message says how."""


def read_file(path: Path, folder: Path, most: int = _MOST) -> bytes:
    """Content of a file in a cell's folder.

    Parameters
    ----------
    path, folder : Path
        The file, and the folder that it must lie in, links resolved.
    most : int
        Largest size that is read, in bytes.

    Raises
    ------
    Unreadable
        When it lies elsewhere, is no plain file, or is larger.
    OSError
        When it cannot be opened.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise Unreadable(f"{path.name} lies outside of the cell's folder")
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer would wait for one
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path.name} is no plain file")
        if found.st_size > most:
            raise Unreadable(f"{path.name} has {found.st_size} bytes, which is more than {most}")
        return file.read(found.st_size)  # a buffer of the size that is asked for is made at once


def remove(folder: Path) -> None:
    """Remove a folder with all that a cell left in it: closed folders, or so many in each other that Python cannot follow."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        if not folder.exists():
            return
        for argv in (["chmod", "-R", "u+rwx", str(folder)], ["rm", "-rf", str(folder)]):
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read_text(path: Path, folder: Path) -> str:
    """Text of such a file; empty where it cannot be read."""
    try:
        return read_file(path, folder).decode("utf-8", "replace")
    except (OSError, Unreadable):
        return ""
