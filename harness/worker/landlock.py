"""Landlock (https://docs.kernel.org/userspace-api/landlock.html): a process gives up rights, for itself and all that it starts.

Called through its three system calls, which have the same numbers on every architecture; the C library knows them by no name.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

from harness.protocol.wire import CLAIMED_LANDLOCK

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1
_SCOPED = 0b11  # abstract Unix sockets, signals

_WRITE_FILE, _TRUNCATE, _IOCTL_DEV = 1 << 1, 1 << 14, 1 << 15
# Removing and making of everything but devices, by the bits of the interface.
_REMOVE_DIR, _REMOVE_FILE, _MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER = (
    1 << bit for bit in range(4, 14)
)
_IN_FILE = _WRITE_FILE | _TRUNCATE | _IOCTL_DEV
_IN_FOLDER = (
    _IN_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM | _REFER
)
SIGNALS = 6
"""The first version that keeps signals within."""
_LEAST = 2
"""The first version lets nothing be moved from one folder to another, not even within what may be written."""

_libc = ctypes.CDLL(None, use_errno=True)


@cache  # asked once, in the process that cells are forked from
def version() -> int:
    """Version of the kernel's interface; 0 where there is none, or where it was not allowed to ask."""
    found = max(0, int(_libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)))
    return min(found, int(os.environ.get(CLAIMED_LANDLOCK, found)))


def restrict(folders: Iterable[str], files: Iterable[str]) -> bool:
    """Let this process write in these folders and to these files only, and reach no process but itself and what it starts.

    Reading is not restricted; what the kernel's version does not know is not either. The process must have given up
    gaining privileges (PR_SET_NO_NEW_PRIVS).

    Parameters
    ----------
    folders, files : iterable of str
        Those that are not there are left out.

    Returns
    -------
    bool
        Whether that is so now; nothing has changed where it is not.
    """
    handled, scoped = _handled(version())
    if not handled:
        return False
    attributes = struct.pack("=QQQ", handled, 0, scoped)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((folders, _IN_FOLDER), (files, _IN_FILE)):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        return bool(_libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def _handled(found: int) -> tuple[int, int]:
    """Rights that are taken away, and scopes, in a version of the interface."""
    if found < _LEAST:
        return 0, 0
    handled = _IN_FOLDER | _MAKE_CHAR | _MAKE_BLOCK
    handled &= ~(_TRUNCATE if found < 3 else 0)
    handled &= ~(_IOCTL_DEV if found < 5 else 0)
    return handled, _SCOPED if found >= SIGNALS else 0


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = struct.pack("=Qi", rights, handle)
        _libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)
