"""How many cells compile at the same time where nobody says."""

from __future__ import annotations

import os


def usable_cores() -> int:
    """Cores that this process may run on: of a machine's, those that taskset, a container (``--cpuset-cpus``) or a batch system left it; see sched_getaffinity(2)."""
    return len(os.sched_getaffinity(0)) or 1
