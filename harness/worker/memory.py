"""How much memory a cell's processes take together: looked at now and then, since the kernel counts each by itself."""

from __future__ import annotations

import os
import time

from harness.worker.processes import children_of

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
        self._seen: set[int] = set()
        self._next = 0.0

    def look(self) -> None:
        """Look, unless that was just done."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        pids = _tree(self._root)
        # A process that has just been forked, and runs another program next, seems to be as large as the one that it comes from.
        seen_twice, self._seen = self._seen.intersection(pids), set(pids)
        if len(seen_twice) > 1:
            self.bytes = max(self.bytes, _together(seen_twice))


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
