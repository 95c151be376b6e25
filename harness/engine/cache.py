"""Outcomes by content key, failures included, in a folder that any number of processes may share."""

from __future__ import annotations

import errno
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import diskcache
import orjson

from harness.engine.entries import Entries
from harness.errors import UsageError
from harness.hints import hint
from harness.model import Outcome, Status
from harness.user_folders import cache_folder

UNREAD = ("plain", "crash")
"""Fingerprints of diagnostics that are not a compiler's: see `harness.engine.collect`."""

_SIZE = 2 << 30
_UNREAD = object()
# A tool that was kept from doing its work by the machine, in the words of the C library, of compilers and of Python.
_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|Too many open files|File too large|Input/output error"
    r"|Resource temporarily unavailable|Read-only file system|Permission denied|cannot create temp|out of memory|MemoryError"
    r"|memory exhausted|Memory allocation failure|bad_alloc|(?:can't|cannot|couldn't|unable to) (?:create|open|write)[^\n]{0,40}(?:temporary|output)|Killed\b",
    re.IGNORECASE,
)


def lasting(outcome: Outcome) -> bool:
    """Whether an outcome would be the same again: what was built, what is not applicable, and what a compiler refused.

    A refusal counts where an error was read in the compiler's own words, and nothing says that the machine stood in its way. How
    a process died, or that it took too long, may have been the moment's fault.
    """
    if outcome.status in (Status.BUILT, Status.UNSUPPORTED):
        return True
    recognised = any(d.severity in ("error", "fatal") and d.fingerprint not in UNREAD for d in outcome.diagnostics)
    return outcome.status is Status.REJECTED and recognised and not _MACHINE.search(outcome.log)


class Facts(Protocol):
    """Where outcomes and what is known beside them are found again: the cache, or that and results of others."""

    def outcome(self, key: str) -> Outcome | None:
        """The outcome kept under a key."""

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome that `lasting` holds for."""

    def fact(self, key: str) -> dict[str, Any] | None:
        """A JSON object kept under a key."""

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object."""

    def read_ahead(self, keys: Iterable[str]) -> None:
        """Read what stands under keys that are asked for next, in one go."""

    def note_use(self) -> None:
        """Keep what is known of when entries were asked for."""

    def taken_from(self, key: str) -> str:
        """Whose results gave the outcome under a key; empty for the cache's own."""


class CacheFull(UsageError):
    """A cache on a disk that has no room left, which costs time and is no reason not to run."""


class ResultCache:
    """The cache in ``$CUMATRIX_CACHE``, or in the user's cache folder.

    Parameters
    ----------
    folder : Path, optional
        Another place.

    Raises
    ------
    CacheFull
        When its disk is full.
    UsageError
        When the folder cannot be used for another reason.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "results"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Values are texts of JSON: diskcache stores those as they are, and nothing is ever unpickled.
            self._store = diskcache.Cache(str(self.folder), size_limit=_SIZE, eviction_policy="least-recently-used")
        except (OSError, sqlite3.Error) as error:
            kind = CacheFull if _is_full(error, self.folder) else UsageError
            raise kind(
                f"cannot use the cache in {self.folder}: {error}; pass --no-cache or set CUMATRIX_CACHE"
            ) from None
        self._entries = Entries(self.folder)
        self._ahead: dict[str, Any] = {}

    def outcome(self, key: str) -> Outcome | None:
        """The outcome kept under a key; an entry that cannot be read counts as missing."""
        value = self.fact(key)
        try:
            return Outcome.from_json(value) if value is not None else None
        except (KeyError, TypeError, ValueError):
            return None

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome; see `lasting`."""
        self.keep_fact(key, outcome.to_json())

    def fact(self, key: str) -> dict[str, Any] | None:
        """A JSON object kept under a key."""
        try:
            text = self._ahead.pop(key, _UNREAD)
            text = self._store.get(key) if text is _UNREAD else text
            return _read(text) if isinstance(text, str) else None
        except (sqlite3.Error, OSError, ValueError):
            return None

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object; a full disk costs the next run time, not this one its results."""
        self._ahead.pop(key, None)
        try:
            self._store.set(key, json.dumps(value))
        except (sqlite3.Error, OSError):
            return

    def read_ahead(self, keys: Iterable[str]) -> None:
        """Read what stands under keys that are asked for next, in one go: each is then answered once out of that."""
        self._ahead = dict(self._entries.read(keys))

    def note_use(self) -> None:
        """Note when what was read ahead was asked for: what has not been for longest goes first."""
        self._ahead = {}
        self._entries.close()

    def taken_from(self, key: str) -> str:
        """The cache's own outcomes are nobody else's."""
        return ""

    @classmethod
    def if_there_is_room(cls) -> ResultCache | None:
        """The cache, or None and a sentence on stderr where its disk is full.

        Raises
        ------
        UsageError
            When the folder cannot be used for another reason.
        """
        try:
            return cls()
        except CacheFull as error:
            hint(f"{error}. Until then everything is compiled, and nothing kept")
            return None

    @property
    def entries(self) -> int:
        """How many there are."""
        return len(self._store)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return int(self._store.volume())

    @property
    def limit(self) -> int:
        """Bytes that it may take; above that, what has not been asked for longest goes."""
        return int(self._store.size_limit)

    def prune(self, most: int) -> int:
        """Forget what has not been asked for longest until `most` bytes are left; returns how many entries that were."""
        if not most:
            return int(self._store.clear())
        before, kept = self.entries, self._store.size_limit
        self._store.size_limit = most
        try:
            self._store.cull()
        finally:
            self._store.size_limit = kept
        return before - self.entries

    def close(self) -> None:
        """Close the files."""
        self._entries.close()
        self._store.close()


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)  # a lone surrogate in a log: orjson takes none


def _is_full(error: Exception, folder: Path) -> bool:
    """Whether an error comes of a full disk; SQLite calls that by several names, of which some have other causes, too."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if getattr(error, "sqlite_errorname", "").startswith("SQLITE_FULL"):
        return True
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            file.write(bytes(1 << 16))
            file.flush()
    except OSError as failed:
        return failed.errno in (errno.ENOSPC, errno.EDQUOT)
    return False
