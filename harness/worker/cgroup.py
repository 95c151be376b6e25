"""The control group (cgroups(7)) of a fork server and its cells: what the kernel counts, and whom it has ended for want of memory."""

from __future__ import annotations

import os
from pathlib import Path


class Cgroup:
    """A group that limits the memory of all its processes together.

    Parameters
    ----------
    folder : str
        Where the kernel shows it; empty where there is none.
    """

    def __init__(self, folder: str) -> None:
        # Version 2 tells in the one file, version 1 in the other.
        names = ("memory.events", "memory.oom_control") if folder else ()
        self._events = next((path for path in (Path(folder, name) for name in names) if path.exists()), None)
        self._killed = 0

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
        """From now on, `exceeded` tells of the next cell."""
        self._killed = self._kills()

    def exceeded(self) -> bool:
        """Whether the kernel has ended a process since `begin`, since all together took more than they may."""
        return self._kills() > self._killed

    def _kills(self) -> int:
        try:
            words = self._events.read_text().split() if self._events else []
        except OSError:
            return self._killed
        return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else 0


def be_ended_first() -> None:
    """Where memory is short, the kernel ends this process and what it starts before the fork server and cumatrix itself."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # a /proc that cannot be written to: the largest one is ended
