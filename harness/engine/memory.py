"""Admission by memory: cells whose compilers need much run one after another where the machine has little."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")
_KEPT_FREE = 0.1


def available(meminfo: Path = Path("/proc/meminfo"), cgroup: Path = _CGROUP) -> int:
    """Bytes that this machine, or the container around this process, has to give; a tenth is left to others.

    Parameters
    ----------
    meminfo : Path
        The kernel's table (proc_meminfo(5)); ``MemAvailable`` counts.
    cgroup : Path
        Folder with ``memory.max`` and ``memory.current`` (cgroups(7), version 2), if there is one.
    """
    lines = meminfo.read_text("ascii", "replace").splitlines()
    found = [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    try:
        found.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no limit: the file is not there, or says "max"
    return int(min(found, default=8 << 30) * (1 - _KEPT_FREE))


class Memory:
    """What the cells that run at the same time may need together.

    Parameters
    ----------
    total : int
        In bytes.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._free = threading.Condition()

    @contextmanager
    def taken(self, needed: int) -> Iterator[None]:
        """Wait until `needed` bytes fit beside the other cells, and hold them; alone, every cell fits."""
        with self._free:
            self._free.wait_for(lambda: self._used == 0 or self._used + needed <= self.total)
            self._used += needed
        try:
            yield
        finally:
            with self._free:
                self._used -= needed
                self._free.notify_all()
