"""The record that wins when several runs report the same cell; an answered record beats an unanswered one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar

from harness.model import Status

_R = TypeVar("_R", bound=Mapping[str, Any])


def weight(record: Mapping[str, Any]) -> int:
    """2 where a compiler had its say, 1 where the combination is not applicable, 0 where a part was missing or cumatrix failed."""
    return _weight(record["status"])


@cache
def _weight(word: str) -> int:
    status = Status(word)
    if status.answered:
        return 2
    return 1 if status is Status.UNSUPPORTED else 0


def choose(records: Sequence[_R]) -> _R:
    """The record that counts, of those of one cell from the oldest to the newest: the newest of those that say most."""
    most = max(map(weight, records))
    found: _R = next(record for record in reversed(records) if weight(record) == most)
    return found
