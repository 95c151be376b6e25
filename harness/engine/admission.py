"""Admission by memory: cells whose compilers need much run one after another where the machine has little."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.backends import BACKENDS
from harness.cases.rules import options_for
from harness.engine.cache import ResultStore
from harness.engine.fingerprints import Key
from harness.model import Cell, Outcome

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
    """Memory that concurrent cells may use together.

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
        """Wait until `needed` bytes fit with the other cells, and hold them; a lone cell always fits."""
        with self._free:
            self._free.wait_for(lambda: self._used == 0 or self._used + needed <= self.total)
            self._used += needed
        try:
            yield
        finally:
            with self._free:
                self._used -= needed
                self._free.notify_all()


def usable_cores() -> int:
    """Cores that this process may run on: of a machine's, those that taskset, a container (``--cpuset-cpus``) or a batch system left it; see sched_getaffinity(2)."""
    return len(os.sched_getaffinity(0)) or 1


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Bytes of a size as case files write it: ``3G``."""
    return int(text[:-1]) * _UNITS[text[-1]]


@dataclass(frozen=True)
class Need:
    """Memory and time of a cell.

    Parameters
    ----------
    memory : int
        Bytes that its processes have at a time.
    seconds : float
        Time on the wall; 0 where it was never seen.
    """

    memory: int
    seconds: float = 0.0


class Needs:
    """Memory and time estimates for cells, by variant and toolchain.

    Parameters
    ----------
    cache : ResultStore or None
        What earlier runs saw.
    """

    def __init__(self, cache: ResultStore | None) -> None:
        self._cache = cache
        self._known: dict[str, Need] = {}

    def of(self, cell: Cell) -> Need:
        """Memory estimate of a cell: measured on its other architectures, declared by the case, or guessed for its backend."""
        key = self._key(cell)
        if key not in self._known:
            kept = self._cache.fact(key) if self._cache else None
            declared = options_for(cell).get("memory")
            default = size(declared) if declared else BACKENDS[cell.toolchain.backend].memory
            self._known[key] = _read(kept, default) if kept else Need(default)
        return self._known[key]

    def learn(self, cell: Cell, outcome: Outcome) -> None:
        """Remember what a cell needed, for the others of its variant and for later runs."""
        if outcome.peak_bytes:
            key = self._key(cell)
            self._known[key] = Need(outcome.peak_bytes, outcome.seconds or 0.0)
            if self._cache:
                self._cache.keep_fact(key, {"bytes": outcome.peak_bytes, "seconds": outcome.seconds or 0.0})

    @staticmethod
    def _key(cell: Cell) -> str:
        key = Key("needs").add("toolchain", cell.toolchain.name)
        return key.add("variant", [cell.case.name, cell.variant.name]).hex()


def _read(kept: dict[str, object], default: int) -> Need:
    memory, seconds = kept.get("bytes"), kept.get("seconds")
    return Need(
        memory if isinstance(memory, int) else default, float(seconds) if isinstance(seconds, int | float) else 0.0
    )
