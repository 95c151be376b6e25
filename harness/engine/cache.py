"""Outcomes by content key, failures included, in a folder that any number of processes may share."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import diskcache
import platformdirs

from harness.errors import UsageError
from harness.model import Outcome, Status

_SIZE = 2 << 30
# What a busy machine or a broken setup may have caused is asked again.
_FLEETING = (Status.TIMED_OUT, Status.UNAVAILABLE, Status.HARNESS_ERROR)


class ResultCache:
    """The cache in ``$CUMATRIX_CACHE``, or in the user's cache folder.

    Parameters
    ----------
    folder : Path, optional
        Another place.

    Raises
    ------
    UsageError
        When the folder cannot be used.
    """

    def __init__(self, folder: Path | None = None) -> None:
        named = os.environ.get("CUMATRIX_CACHE")
        self.folder = (
            folder or (Path(named).expanduser() if named else platformdirs.user_cache_path("cumatrix")) / "results"
        )
        try:
            # Values are texts of JSON: diskcache stores those as they are, and nothing is ever unpickled.
            self._store = diskcache.Cache(str(self.folder), size_limit=_SIZE, eviction_policy="least-recently-used")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"cannot use the cache in {self.folder}: {error}; pass --no-cache or set CUMATRIX_CACHE"
            ) from None

    def outcome(self, key: str) -> Outcome | None:
        """The outcome kept under a key; an entry that cannot be read counts as missing."""
        value = self.fact(key)
        try:
            return Outcome.from_json(value) if value is not None else None
        except (KeyError, TypeError, ValueError):
            return None

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome, unless another try might give another one."""
        if outcome.status not in _FLEETING and outcome.signal != signal.SIGKILL:
            self.keep_fact(key, outcome.to_json())

    def fact(self, key: str) -> dict[str, Any] | None:
        """A JSON object kept under a key."""
        try:
            text = self._store.get(key)
            return json.loads(text) if isinstance(text, str) else None
        except (sqlite3.Error, OSError, ValueError):
            return None

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object; a full disk costs the next run time, not this one its results."""
        try:
            self._store.set(key, json.dumps(value))
        except (sqlite3.Error, OSError):
            return

    def close(self) -> None:
        """Close the files."""
        self._store.close()
