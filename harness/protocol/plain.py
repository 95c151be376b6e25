"""Reading a file that a stranger may have put there: no pipe is waited for, and nothing endless is read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from harness.protocol.printed import left_out


class Unreadable(ValueError):
    """A file that is not what it should be; the message says how."""


def read_plain(path: Path, most: int, flags: int = 0, *, ends: bool = False) -> bytes:
    """Content of a plain file.

    Parameters
    ----------
    path : Path
        The file.
    most : int
        Largest size that is read, in bytes.
    flags : int
        Further flags of ``open(2)``, such as ``os.O_NOFOLLOW``.
    ends : bool
        Whether a larger file is read without its middle, with a line in its place that counts what was left out.

    Raises
    ------
    Unreadable
        When it is no plain file, or is larger and has to be read as a whole.
    OSError
        When it cannot be opened.
    """
    # A pipe without a writer would wait for one.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise Unreadable(f"{path.name} is no plain file")
        if found.st_size > most and ends:
            half = most // 2
            head = file.read(half)
            file.seek(found.st_size - half)
            return head + left_out(found.st_size - 2 * half) + file.read(half)
        if found.st_size > most:
            raise Unreadable(f"{path.name} has {found.st_size} bytes, which is more than {most}")
        return file.read(found.st_size)  # a buffer of the size that is asked for is made at once
