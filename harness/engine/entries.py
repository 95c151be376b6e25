"""Many entries of the cache at a time, read straight from the table in which diskcache keeps them.

diskcache is asked for one entry at a time, each in a transaction in which it also notes that the entry was asked for: that costs more than
all else of an answer. Here one query reads hundreds, and when they were asked for is noted once at the end, and not again within an
hour. Entries in files of their own, and a table that looks otherwise, are left to diskcache.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import diskcache

_T = TypeVar("_T")
_AT_A_TIME = 500
_NOTED = 3600.0
"""Seconds within which it is not noted again that an entry was asked for."""
# Nothing but the key is a condition: with more of them SQLite takes another index, and goes through all entries.
_READ = (
    "SELECT key, rowid, access_time, expire_time, mode, filename, value FROM Cache WHERE raw = 1 AND key IN ({marks})"
)
_NOTE = "UPDATE Cache SET access_time = ? WHERE rowid IN ({marks})"
_WAIT = 5.0  # seconds for the lock of whoever writes


class Entries:
    """The table of a cache in a folder.

    Parameters
    ----------
    folder : Path
        Of a `diskcache.Cache`, which is there.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / diskcache.core.DBNAME
        self._connection: sqlite3.Connection | None = None
        self._used: list[int] = []

    def read(self, keys: Iterable[str]) -> dict[str, str | None]:
        """Texts by key; None for a key under which nothing stands. What has to be asked of diskcache is left out."""
        found: dict[str, str | None] = {}
        try:
            for some in batches(keys, _AT_A_TIME):
                rows = self._open().execute(_READ.format(marks=_marks(some)), some)
                there = {row[0]: row[1:] for row in rows}
                found.update((key, None) for key in some if key not in there)
                now = time.time()
                for key, (number, asked, expires, mode, filename, value) in there.items():
                    here = mode == diskcache.core.MODE_RAW and filename is None and expires is None
                    if here and isinstance(value, str):
                        found[key] = value
                        if not now - _NOTED < asked <= now:
                            self._used.append(number)
        except sqlite3.Error:
            return {}
        return found

    def close(self) -> None:
        """Note what was asked for; where others hold the table for too long, it stays unnoted."""
        try:
            if self._used:
                now, connection = time.time(), self._open()
                for some in batches(self._used, _AT_A_TIME):
                    connection.execute(_NOTE.format(marks=_marks(some)), (now, *some))
                connection.commit()
        except sqlite3.Error:
            pass
        finally:
            self._used = []
            if self._connection:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            # Runners have threads of their own; only who plans comes here.
            self._connection = sqlite3.connect(
                f"{self._path.absolute().as_uri()}?mode=rw", timeout=_WAIT, uri=True, check_same_thread=False
            )
            for pragma in ("synchronous = NORMAL", "mmap_size = 268435456"):
                self._connection.execute(f"PRAGMA {pragma}")
        return self._connection


def _marks(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """So many at a time; as `itertools.batched` of Python 3.12."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
