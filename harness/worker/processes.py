"""What a process has of others: files that it inherited, processes that it started or that were left to it."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLOSE_RANGE = 436
_LISTED = os.path.exists("/proc/thread-self/children")  # else it is a kernel without CONFIG_PROC_CHILDREN
_libc = ctypes.CDLL(None, use_errno=True)


def close_others() -> None:
    """Close every file but standard input, output and errors."""
    if _libc.syscall(_CLOSE_RANGE, 3, ctypes.c_uint(0xFFFFFFFF), 0) == 0:
        return
    for name in os.listdir("/proc/self/fd"):  # Linux before 5.9
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # the one by which the folder was read


def become_reaper() -> None:
    """Have all orphans below come to this process, and be asked to end (SIGTERM) when the one that started it goes away."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants(meanwhile: Callable[[], None] = lambda: None) -> int:
    """Kill everything below this process, which is the reaper of it; returns how many that were.

    Parameters
    ----------
    meanwhile : callable
        Called after each of them: there may be many.
    """
    count = 0
    while True:
        found = children_of(os.getpid())
        if not found:
            return count
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                continue
            count += 1
            meanwhile()


def children_of(pid: int) -> list[int]:
    """Processes that a process, whichever of its threads, has started or been left; none where it has ended."""
    if not _LISTED:
        return [each for each in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(each) == pid]
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has ended meanwhile
    return found


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
