"""To whom the processes of a cell may send signals, where no Landlock sees to that: to those below the fork server."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

_TO_DESCRIPTOR = 424  # pidfd_send_signal
CALLS = (62, 129, 200, 234, 297, _TO_DESCRIPTOR)
"""The system calls: kill, rt_sigqueueinfo, tkill, tgkill, rt_tgsigqueueinfo, each of which names a process first, and that of a descriptor."""


def check(pid: int, call: int, arguments: Sequence[int]) -> None:
    """Let a process below this one send signals to others below this one.

    Raises
    ------
    PermissionError
        When it names somebody else.
    """
    number = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
    if call == _TO_DESCRIPTOR:
        number = _process_of(pid, number)
    if number == 0:
        return  # its own group, in a session of the cell's own
    named = _group(-number) if number < 0 else [number]
    if not all(map(_below, named)):
        raise PermissionError(errno.EPERM, "")


def _below(pid: int) -> bool:
    """Whether a process or thread was started below this process; one that is not there any more is nobody's."""
    me = os.getpid()
    while pid > 1:
        try:
            pid = int(_stat(pid)[1])
        except (OSError, IndexError):
            return True
        if pid == me:
            return True
    return False


def _group(number: int) -> list[int]:
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            if int(_stat(pid)[2]) == number:
                found.append(pid)
        except (OSError, IndexError):
            continue
    return found


def _process_of(pid: int, descriptor: int) -> int:
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}") as file:
            found = next(int(line.split()[1]) for line in file if line.startswith("Pid:"))
    except (OSError, StopIteration):
        raise OSError(errno.EBADF, "") from None
    return max(found, 1) if found else 1


def _stat(pid: int) -> list[bytes]:
    """State, parent, group and more of a process."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()
