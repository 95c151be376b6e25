"""Records that a run keeps for its summary: small, however many there are."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Iterator, Sequence
from typing import overload

from harness.diagnostics import telling_part
from harness.matrix.kinds import kind_of
from harness.records import Record

_BLOCK = 64
"""Records that are packed together: they are much alike, and so take a tenth of the room and of the time."""


_UNREAD = ("title", "features", "links", "toolchain", "command", "device")
"""What a summary does not read of a record that is as expected: most of it."""


def without_log(record: Record) -> Record:
    """A record with as much of its log as a summary reads."""
    first = record["diagnostics"][0]["message"] if record["diagnostics"] else ""
    return {**record, "log": telling_part(first, record["log"])}


def _for_summary(record: Record) -> Record:
    short = without_log(record)
    if kind_of(record).as_expected:
        for key in _UNREAD:
            del short[key]  # type: ignore[misc]
    return short


class KeptRecords(Sequence[Record]):
    """Records in the order in which they came, with what a summary reads of them: whole but for their logs only where they are not as expected.

    They are kept compressed, a block of them at a time: one takes a few hundred bytes in place of 8 KiB. Whoever wants several had better go over them once.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._last: list[Record] = []

    def append(self, record: Record) -> None:
        """Keep one more."""
        self._last.append(_for_summary(record))
        if len(self._last) == _BLOCK:
            self._packed.append(zlib.compress(marshal.dumps(self._last), level=1))
            self._last = []

    def __len__(self) -> int:
        return len(self._packed) * _BLOCK + len(self._last)

    def __iter__(self) -> Iterator[Record]:
        for number in range(len(self._packed)):
            yield from self._block(number)
        yield from self._last

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return list(self)[place]
        number = range(len(self))[place]
        return self._block(number // _BLOCK)[number % _BLOCK]

    def _block(self, number: int) -> list[Record]:
        """One block; the last one is not packed yet."""
        if number == len(self._packed):
            return self._last
        # What this process has packed itself: ten times as fast as JSON.
        block: list[Record] = marshal.loads(zlib.decompress(self._packed[number]))  # noqa: S302
        return block
