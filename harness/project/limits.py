"""Limits of cells that a configuration sets."""

from __future__ import annotations

from harness.project.config import Config
from harness.protocol.wire import Limits

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def limits_of(config: Config) -> Limits:
    """What a cell may use, for those that have no options of their own for it."""
    limits = Limits()
    seconds, memory = config.values.get("timeout"), config.values.get("memory")
    return Limits(
        seconds=float(seconds) if seconds is not None else limits.seconds,
        memory=int(memory[:-1]) * _UNITS[memory[-1]] if memory is not None else limits.memory,
    )
