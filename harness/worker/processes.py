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
"""Their number for "a process"; the next numbers mean a process group and a user."""
SCHEDULING = (*numbers_of("sched_setparam", "sched_setscheduler", "sched_setaffinity", "sched_setattr"), *BY_KIND)
"""Calls that name a process first, and those of `BY_KIND`."""

_TRIES = 100


def check_call(pid: int, call: int, arguments: Sequence[int]) -> None:
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


_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CLOSE_RANGE = 436
_LISTED = os.path.exists("/proc/thread-self/children")  # else it is a kernel without CONFIG_PROC_CHILDREN
_libc = ctypes.CDLL(None, use_errno=True)


def close_others(first: int = 3) -> None:
    """Close every file from number `first` on: by default, every file but standard input, output and errors."""
    if _libc.syscall(_CLOSE_RANGE, first, ctypes.c_uint(0xFFFFFFFF), 0) == 0:
        return
    for name in os.listdir("/proc/self/fd"):  # Linux before 5.9
        if int(name) >= first:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the folder itself


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
    """Processes that a process, in any of its threads, has started or adopted; none after its end."""
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


_EVERY = 0.1  # seconds between two looks
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Peak:
    """The most that a process and its descendants were seen to have in memory at the same time.

    A rise that is over between two looks is not seen; what the kernel counts for the largest process (getrusage(2)) is therefore the
    least that a caller should go by. Pages that processes have in common since one was forked count for each.

    Parameters
    ----------
    root : int
        The process.

    Attributes
    ----------
    bytes : int
        Resident memory of all; 0 as long as there was one process only.
    """

    def __init__(self, root: int) -> None:
        self.bytes = 0
        self._root = root
        self._pids: set[int] = set()
        self._next = 0.0

    def look(self) -> None:
        """Look, unless that was just done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        pids = _tree(self._root)
        # A process that has just been forked, and runs another program next, seems to be as large as the one that it comes from.
        in_both, self._pids = self._pids.intersection(pids), set(pids)
        if len(in_both) > 1:
            self.bytes = max(self.bytes, _together(in_both))


def _together(pids: set[int]) -> int:
    """Memory of their own of all, and the largest part that one has in common with files and others."""
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
"""Of the limit: the last page that is wanted may be a large one."""


class Cgroup:
    """A group that limits the memory of all its processes together.

    Parameters
    ----------
    folder : str
        Where the kernel shows it; empty where there is none.
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        # Version 2 tells in the one file, version 1 in the other: asked once, for cells look often.
        names = ("memory.events", "memory.oom_control") if folder else ()
        self._events = next((name for name in names if Path(folder, name).exists()), "")
        self._kills = self._ooms = 0

    @classmethod
    def entered(cls, folder: str) -> Cgroup:
        """A group that counts this process and its future children; none if the kernel refuses."""
        try:
            if folder:
                Path(folder, "cgroup.procs").write_text(str(os.getpid()))
            return cls(folder)
        except OSError:
            return cls("")

    def begin(self) -> None:
        """From now on, `killed` and `exceeded` tell of the next cell."""
        self._kills, self._ooms = self._count("oom_kill"), self._count("oom")
        try:
            if self._folder and (self._folder / _PEAK).exists():
                (self._folder / _PEAK).write_text("0")
        except OSError:
            pass  # the peak of earlier cells counts as well

    def killed(self) -> bool:
        """Return whether the kernel has ended a process since `begin` for lack of memory: of the group's, or of the whole machine's."""
        return self._count("oom_kill") > self._kills

    def exceeded(self) -> bool:
        """Return whether it has, and the group exceeded its limit: the kernel also counts processes in the group that it ends for the machine's sake."""
        return self.killed() and (self._count("oom") > self._ooms or self._was_full())

    def _count(self, name: str) -> int:
        """The kernel's counters; version 1 has no ``oom``."""
        words = self._read(self._events).split()
        return int(words[words.index(name) + 1]) if name in words else 0

    def _was_full(self) -> bool:
        """Return whether the group reached its limit (version 1, whose count of failures Linux 6.18 leaves at 0)."""
        peak, limit = self._read(_PEAK), self._read("memory.limit_in_bytes")
        return bool(peak and limit) and int(peak) >= _FULL * int(limit)

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text() if self._folder and name else ""
        except OSError:
            return ""


def be_ended_first() -> None:
    """Let the kernel end this process and its children before the fork server and cumatrix itself when memory is short."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # a /proc that cannot be written to: the largest one is ended


def keep() -> None:
    """Fork: the child returns, to be the fork server; the parent waits for it, ends what is left below, and ends as it did.

    A fork server that is stopped would never be heard of again: it is ended.
    """
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the scheduler's to handle
    signal.signal(signal.SIGTERM, _leave)
    server = os.fork()
    if server == 0:
        return
    close_others()  # the fork server's end of the socket is the only one
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
    """End what is left below, and remove its folders.

    No further request to end interrupts that: it would wait for the locks that this has taken. There is one for each thread of the scheduler
    that ends, one after the other (prctl(2), PR_SET_PDEATHSIG).
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    end_descendants()
    process_output.remove_helper_folders()


def _leave(_number: int, _frame: FrameType | None) -> None:
    _end_all()
    os._exit(0)
