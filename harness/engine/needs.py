"""What cells are known to need, and what they are expected to need: memory and time."""

from __future__ import annotations

from dataclasses import dataclass

from harness.backends import BACKENDS
from harness.cases.options import options_for
from harness.engine.cache import ResultStore
from harness.engine.key import Key
from harness.model import Cell, Outcome

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size(text: str) -> int:
    """Bytes of a size as case files write it: ``3G``."""
    return int(text[:-1]) * _UNITS[text[-1]]


@dataclass(frozen=True)
class Need:
    """What a cell takes.

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
    """What cells need, by variant and toolchain.

    Parameters
    ----------
    cache : ResultStore or None
        What earlier runs saw.
    """

    def __init__(self, cache: ResultStore | None) -> None:
        self._cache = cache
        self._known: dict[str, Need] = {}

    def of(self, cell: Cell) -> Need:
        """What compiling a cell may need: as other architectures of it did, as the case says, or by its backend."""
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
