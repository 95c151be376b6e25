"""Which files a cell may lock: its own. Whoever may read a file may lock it, and so hold up those whose lock it is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence

from harness.worker.modes import descriptor, within

_FCNTL, _FLOCK = 72, 73
# F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW
CALLS: dict[int, tuple[int, ...]] = {_FLOCK: (), _FCNTL: (6, 7, 37, 38)}
"""The system calls, with their commands; no commands stand for the whole call. Each names a descriptor first."""


def check(pid: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Let a process lock or unlock a file in these folders; what is neither a file nor a folder is nobody's to wait for.

    A thread that puts another file in the place of the one that was looked at may still lock that: it delays whoever waits, and reaches nothing.

    Raises
    ------
    OSError
        When the file lies elsewhere: ``ENOLCK``, as of a file system that knows no locks, which programs go on without.
    """
    handle = os.open(f"/proc/{pid}/fd/{descriptor(arguments[0])}", os.O_PATH | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and not within(handle, folders):
            raise OSError(errno.ENOLCK, "")
    finally:
        os.close(handle)
