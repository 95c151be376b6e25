"""Modes of files, which Landlock does not cover: the fork server changes them for a cell, in the cell's own folders.

It changes the very file that it has looked at, so that nothing can be exchanged in between.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2 = 90, 91, 268, 452
CALLS = (_CHMOD, _FCHMOD, _FCHMODAT, _FCHMODAT2)
"""The system calls."""
_HERE, _NOFOLLOW, _EMPTY_PATH = 0xFFFFFF9C, 0x100, 0x1000  # AT_FDCWD, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH
_LONGEST, _PAGE = 4096, 4096


def change(pid: int, call: int, arguments: Sequence[int], folders: Sequence[str]) -> None:
    """Do what a process asks for with one of these calls, if it is about something in these folders, or these themselves.

    Raises
    ------
    OSError
        With the error that the call is to have.
    """
    mode = arguments[2 if call in (_FCHMODAT, _FCHMODAT2) else 1] & 0o7777
    handle = _open(pid, call, arguments)
    try:
        if not within(handle, folders):
            raise PermissionError(errno.EPERM, "")
        os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


def within(handle: int, folders: Sequence[str]) -> bool:
    """Whether what is open belongs to the cell; what has no name any more, or never had one, can be nobody else's."""
    path = os.readlink(f"/proc/self/fd/{handle}")
    if os.fstat(handle).st_nlink == 0 or not path.startswith("/"):
        return True
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def _open(pid: int, call: int, arguments: Sequence[int]) -> int:
    """A handle on what a process names in a call."""
    proc = f"/proc/{pid}"
    if call == _FCHMOD:
        return os.open(f"{proc}/fd/{descriptor(arguments[0])}", os.O_PATH | os.O_CLOEXEC)
    at, address = (_HERE, arguments[0]) if call == _CHMOD else (arguments[0] & 0xFFFFFFFF, arguments[1])
    flags = arguments[3] if call == _FCHMODAT2 else 0
    base = f"{proc}/cwd" if at == _HERE else f"{proc}/fd/{descriptor(at)}"
    path = _read(pid, address)
    if not path:
        if not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "")
        return os.open(base, os.O_PATH | os.O_CLOEXEC)
    # These mean whoever asks for them.
    for own in (b"/proc/self/", b"/proc/thread-self/"):
        if path.startswith(own):
            path = os.fsencode(f"{proc}/") + path[len(own) :]
    if path.startswith(b"/dev/fd/"):
        path = os.fsencode(f"{proc}/fd/") + path[8:]
    follow = os.O_NOFOLLOW if flags & _NOFOLLOW else 0
    if path.startswith(b"/"):
        return os.open(path, os.O_PATH | os.O_CLOEXEC | follow)
    folder = os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return os.open(path, os.O_PATH | os.O_CLOEXEC | follow, dir_fd=folder)
    finally:
        os.close(folder)


def descriptor(value: int) -> int:
    """A descriptor, as the kernel reads it."""
    number = ctypes.c_int(value & 0xFFFFFFFF).value
    if number < 0:
        raise OSError(errno.EBADF, "")
    return number


def _read(pid: int, address: int) -> bytes:
    """A path in another process's memory."""
    found = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        while len(found) < _LONGEST:
            try:
                # The next page may be none of its.
                part = os.pread(memory.fileno(), _PAGE - address % _PAGE, address)
            except (OSError, OverflowError):
                part = b""
            if not part:
                raise OSError(errno.EFAULT, "")
            end = part.find(b"\0")
            if end >= 0:
                return found + part[:end]
            found, address = found + part, address + len(part)
    raise OSError(errno.ENAMETOOLONG, "")
