"""Records that a run keeps for its summary: small, however many there are."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import overload

from harness.records import Record


class KeptRecords(Sequence[Record]):
    """Records in the order in which they came, without their logs.

    Each is kept as compressed JSON, with the first one as the dictionary (RFC 1950): records of a run are much alike, so one takes about
    350 bytes in place of 8 KiB. Whoever asks for one gets a new object.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []
        self._alike = b""

    def append(self, record: Record) -> None:
        """Keep one more."""
        data = json.dumps({**record, "log": ""}, separators=(",", ":")).encode()
        self._alike = self._alike or data
        packer = zlib.compressobj(level=1, zdict=self._alike)
        self._packed.append(packer.compress(data) + packer.flush())

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[Record]:
        return map(self._unpacked, self._packed)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        if isinstance(place, slice):
            return [self._unpacked(packed) for packed in self._packed[place]]
        return self._unpacked(self._packed[place])

    def _unpacked(self, packed: bytes) -> Record:
        record: Record = json.loads(zlib.decompressobj(zdict=self._alike).decompress(packed))
        return record
