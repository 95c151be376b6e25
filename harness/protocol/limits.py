"""Resource limits of a cell (getrlimit(2)): all of them follow from the request and from the hard limits of the machine.

So no soft limit of a user's shell reaches a compiler, and a hard one that does is known beforehand.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping

RLIMITS = {
    "cpu": resource.RLIMIT_CPU,
    "data": resource.RLIMIT_DATA,
    "fsize": resource.RLIMIT_FSIZE,
    "nofile": resource.RLIMIT_NOFILE,
    "nproc": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}
"""Limits that users may set, by the names of ``ulimit`` and getrlimit(2)."""

EVERY_LIMIT = {**RLIMITS, "as": resource.RLIMIT_AS, "memlock": resource.RLIMIT_MEMLOCK, "rss": resource.RLIMIT_RSS}
"""Limits that a cell is given, or that reach it from the machine."""

_MAX_FILE = 4 << 30
# Soft limits that Linux gives to the first process; programs raise them up to the hard one if they need more.
_USUAL = {"stack": 8 << 20, "nofile": 1024}


def limits_of_cell(memory: int, wanted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Soft and hard limits of a cell, by name.

    Parameters
    ----------
    memory : int
        Address space of each process in bytes; 0 for as much as the machine allows.
    wanted : Mapping[str, int]
        What the user asked for, by the names of `RLIMITS`: both limits become that.

    Returns
    -------
    dict
        Never above the hard limit that this process itself has.
    """
    asked = {"fsize": _MAX_FILE, **({"as": memory} if memory else {}), **wanted}
    limits = {}
    for name, which in EVERY_LIMIT.items():
        hard = resource.getrlimit(which)[1]
        if name in asked:
            hard = lower(asked[name], hard)
            limits[name] = (hard, hard)
        else:
            limits[name] = (lower(_USUAL[name], hard) if name in _USUAL else hard, hard)
    return limits


def lower(value: int, hard: int) -> int:
    """The lower of a value and a hard limit."""
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
