"""Reading what a cell's process left: a stranger's files, which may be links, pipes, endless, or not there."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

from harness.protocol.plain import Unreadable, read_plain
from harness.protocol.printed import KEPT


def read_file(path: Path, folder: Path, most: int, *, ends: bool = False) -> bytes:
    """Content of a file in a cell's folder.

    Parameters
    ----------
    path, folder : Path
        The file, and the folder that it must lie in, links resolved.
    most : int
        Largest size that is read, in bytes.
    ends : bool
        Whether a larger file is read without its middle.

    Raises
    ------
    Unreadable
        When it lies elsewhere, is no plain file, or is larger and has to be read as a whole.
    OSError
        When it cannot be opened.
    """
    if path.parent == folder:
        try:
            return read_plain(path, most, os.O_NOFOLLOW, ends=ends)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise Unreadable(f"{path.name} lies outside of the cell's folder")
    return read_plain(path, most, ends=ends)


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
    """Text of such a file, of a long one the first and the last part; empty where it cannot be read."""
    try:
        return read_file(path, folder, KEPT, ends=True).decode("utf-8", "replace")
    except (OSError, Unreadable):
        return ""
