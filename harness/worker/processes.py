"""Processes of a cell: inherited file descriptors, started and adopted processes, and signals to exactly those."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from harness.protocol import process_output
from harness.worker.system_calls import number_of, numbers_of

_TO_DESCRIPTOR = number_of("pidfd_send_signal")
SIGNALS = (*numbers_of("kill", "rt_sigqueueinfo", "tkill", "tgkill", "rt_tgsigqueueinfo"), _TO_DESCRIPTOR)
"""Calls that send signals: Landlock covers them from Linux 6.12 on."""

BY_KIND = {number_of("setpriority"): 0, number_of("ioprio_set"): 1}
"""The value that selects a process in each call; the next values select a process group and a user."""
SCHEDULING = (*numbers_of("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"), *BY_KIND)
"""Calls whose first argument is a process, and those of `BY_KIND`."""

_TRIES = 100


def check_call(pid: int, call: int, arguments: Sequence[int]) -> None:
    """Check that a call of a cell's process affects only processes below this one.

    Raises
    ------
    OSError
        If the call names another process, or one that does not exist.
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
        return  # the caller, or its own group in the cell's session
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
        If the process does not exist: another one could get its number before the kernel makes the call.
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
        # A process in between has ended, and its child has a new parent.
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
    """Return state, parent, group and more of a process."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLOSE_RANGE = 436
_LISTED = os.path.exists("/proc/thread-self/children")  # otherwise the kernel lacks CONFIG_PROC_CHILDREN
_libc = ctypes.CDLL(None, use_errno=True)


def close_others(first: int = 3) -> None:
    """Close every descriptor from `first` on; by default, all except standard input, output and error."""
    if _libc.syscall(_CLOSE_RANGE, first, ctypes.c_uint(0xFFFFFFFF), 0) == 0:
        return
    for name in os.listdir("/proc/self/fd"):  # Linux before 5.9
        if int(name) >= first:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the folder itself


def become_reaper() -> None:
    """Adopt all orphans below this process, and receive SIGTERM when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants(meanwhile: Callable[[], None] = lambda: None) -> int:
    """Kill all processes below this one, which is their reaper; return their number.

    Parameters
    ----------
    meanwhile : callable
        Called after each process, as there may be many.
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
    """Return the processes that a process has started or adopted in any of its threads; none after its end."""
    if not _LISTED:
        return [each for each in map(int, filter(str.isdigit, os.listdir("/proc"))) if _parent(each) == pid]
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has ended in the meantime
    return found


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


_EVERY = 0.1  # seconds between two measurements
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """The peak memory of a process and its descendants together, by sampling.

    A peak between two samples is missed, so the kernel's peak of the largest process (getrusage(2)) is a lower bound
    for callers. Pages that processes share since a fork count for each process.

    Parameters
    ----------
    root : int
        The process.

    Attributes
    ----------
    bytes : int
        Resident memory of all processes; 0 while there is only one.
    """

    def __init__(self, root: int) -> None:
        self.bytes = 0
        self._root = root
        self._pids: set[int] = set()
        self._next = 0.0

    def look(self) -> None:
        """Take a sample, unless the last one is recent."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        pids = _tree(self._root)
        # A process between fork and exec appears as large as its parent.
        in_both, self._pids = self._pids.intersection(pids), set(pids)
        if len(in_both) > 1:
            self.bytes = max(self.bytes, _together(in_both))


def _together(pids: set[int]) -> int:
    """Return the private memory of all processes, plus the largest shared part of any of them."""
    own, common = 0, 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm") as file:
                resident, shared = map(int, file.read().split()[1:3])
        except (OSError, ValueError):
            continue  # it has ended
        own += resident - shared
        common = max(common, shared)
    return (own + common) * _PAGE


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        found.append(waiting.pop())
        waiting += children_of(found[-1])
    return found


_PEAK = "memory.max_usage_in_bytes"
_FULL = 0.98
"""Fraction of the limit that counts as full: the last requested page may be a large one."""


class Cgroup:
    """A control group that limits the memory of all its processes together.

    Parameters
    ----------
    folder : str
        The group's folder; empty for none.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        # Version 2 has the first file, version 1 the second; determined once, as cells are checked often.
        names = ("memory.events", "memory.oom_control") if folder else ()
        self._events = next((name for name in names if Path(folder, name).exists()), "")
        self._kills = self._ooms = 0

    @classmethod
    def entered(cls, folder: str) -> Cgroup:
        """Move this process and its future children into a group; return an empty group if the kernel refuses."""
        try:
            if folder:
                Path(folder, "cgroup.procs").write_text(str(os.getpid()))
            return cls(folder)
        except OSError:
            return cls("")

    def begin(self) -> None:
        """Reset `killed` and `exceeded` for the next cell."""
        self._kills, self._ooms = self._count("oom_kill"), self._count("oom")
        try:
            if self._folder and (self._folder / _PEAK).exists():
                (self._folder / _PEAK).write_text("0")
        except OSError:
            pass  # the peak of earlier cells counts as well

    def killed(self) -> bool:
        """Return whether the kernel has killed a process since `begin` because the group or the machine is out of memory."""
        return self._count("oom_kill") > self._kills

    def exceeded(self) -> bool:
        """Return whether the kernel has killed a process and the group exceeded its limit.

        The kernel also counts processes of the group that it kills because the machine is out of memory.
        """
        return self.killed() and (self._count("oom") > self._ooms or self._was_full())

    def _count(self, name: str) -> int:
        """Return one of the kernel's counters; version 1 has no ``oom``."""
        words = self._read(self._events).split()
        return int(words[words.index(name) + 1]) if name in words else 0

    def _was_full(self) -> bool:
        """Return whether the group reached its limit (version 1, whose failure counter Linux 6.18 leaves at 0)."""
        peak, limit = self._read(_PEAK), self._read("memory.limit_in_bytes")
        return bool(peak and limit) and int(peak) >= _FULL * int(limit)

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text() if self._folder and name else ""
        except OSError:
            return ""


def be_ended_first() -> None:
    """Make the kernel kill this process and its children before the fork server and cumatrix when memory is short."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # /proc is read-only: the kernel kills the largest process


def keep() -> None:
    """Fork; the child returns to become the fork server.

    The parent, its keeper, waits for the child, kills its remaining processes and ends the same way.

    The keeper kills a fork server that is stopped, because it would never respond again.
    """
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the scheduler handles Ctrl-C
    signal.signal(signal.SIGTERM, _leave)
    server = os.fork()
    if server == 0:
        return
    close_others()  # only the fork server keeps its end of the socket
    status = _wait(server)
    _end_all()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 70)


def _wait(server: int) -> int:
    while True:
        pid, status = os.waitpid(-1, os.WUNTRACED)
        if pid != server:
            continue
        if not os.WIFSTOPPED(status):
            return status
        print(f"it was stopped by signal {os.WSTOPSIG(status)}", file=sys.stderr, flush=True)
        os.kill(server, signal.SIGKILL)


def _end_all() -> None:
    """Kill the remaining processes, and remove their folders.

    Further SIGTERMs are ignored, as their handler would wait for locks that this function holds. Each ending thread of
    the scheduler sends one, in turn (prctl(2), PR_SET_PDEATHSIG).
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    process_output.remove_helper_folders()


def _leave(_number: int, _frame: FrameType | None) -> None:
    _end_all()
    os._exit(0)
