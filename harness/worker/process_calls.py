"""System calls that act on a process by its number: a cell reaches its own processes, and no others.

The kernel asks for the rights of ptrace(2) in calls that look into a process; these are Landlock's to refuse. Calls here need no more
than the same user.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

_TO_DESCRIPTOR = 424  # pidfd_send_signal
SIGNALS = (62, 129, 200, 234, 297, _TO_DESCRIPTOR)
"""kill, rt_sigqueueinfo, tkill, tgkill, rt_tgsigqueueinfo and pidfd_send_signal: Landlock covers them from Linux 6.12 on."""

BY_KIND = {141: 0, 251: 1}
"""setpriority and ioprio_set, with their number for "a process"; the next numbers mean a process group and a user."""
SCHEDULING = (142, 144, 203, 314, *BY_KIND)
"""sched_setparam, sched_setscheduler, sched_setaffinity and sched_setattr, which name a process first, and those of `BY_KIND`."""

_TRIES = 100


def check(pid: int, call: int, arguments: Sequence[int]) -> None:
    """Let a process below this one act on others below this one.

    Raises
    ------
    OSError
        When it names another process, or one that does not exist.
    """
    number = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
    group = number < 0
    if call in BY_KIND:
        kind, number = number - BY_KIND[call], ctypes.c_int(arguments[1] & 0xFFFFFFFF).value
        if kind not in (0, 1):
            raise PermissionError(errno.EPERM, "")  # all processes of a user
        group = kind == 1
    elif call == _TO_DESCRIPTOR:
        number = _process_of(pid, number)
        group = False
    if number == 0:
        return  # itself, or its own group, in a session of the cell's own
    named = _group(abs(number)) if group else [number]
    if not named:
        raise ProcessLookupError(errno.ESRCH, "")
    if not all(map(_below, named)):
        raise PermissionError(errno.EPERM, "")


def _below(pid: int) -> bool:
    """Return whether a process or thread was started below this process.

    Raises
    ------
    ProcessLookupError
        When none has that number: another process could get it before the kernel makes the call.
    """
    for _ in range(_TRIES):
        above = pid
        try:
            while above > 1:
                above = int(_stat(above)[1])
                if above == os.getpid():
                    return True
            return False
        except (OSError, IndexError):
            if not os.path.exists(f"/proc/{pid}"):
                raise ProcessLookupError(errno.ESRCH, "") from None
        # A process between the two has ended, and another one is the parent now.
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
