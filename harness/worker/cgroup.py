"""The control group (cgroups(7)) of a fork server and its cells: what the kernel counts, and whom it has ended for want of memory."""

from __future__ import annotations

import os
from pathlib import Path

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
        """A group in which this process, and all that it starts from now on, are counted; none where the kernel does not let it in."""
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
        """Whether the kernel has ended a process since `begin` for want of memory: of the group's, or of the whole machine's."""
        return self._count("oom_kill") > self._kills

    def exceeded(self) -> bool:
        """Whether it has, and the group wanted more than it may: the kernel counts those that it ends for the machine's sake in the group, too."""
        return self.killed() and (self._count("oom") > self._ooms or self._was_full())

    def _count(self, name: str) -> int:
        """What the kernel has counted; version 1 has no ``oom``."""
        words = self._read(self._events).split()
        return int(words[words.index(name) + 1]) if name in words else 0

    def _was_full(self) -> bool:
        """Whether the group came up to its limit (version 1, whose count of failures Linux 6.18 leaves at 0)."""
        peak, limit = self._read(_PEAK), self._read("memory.limit_in_bytes")
        return bool(peak and limit) and int(peak) >= _FULL * int(limit)

    def _read(self, name: str) -> str:
        try:
            return (self._folder / name).read_text() if self._folder and name else ""
        except OSError:
            return ""


def be_ended_first() -> None:
    """Where memory is short, the kernel ends this process and what it starts before the fork server and cumatrix itself."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # a /proc that cannot be written to: the largest one is ended
