"""The result cache: outcomes by content key, failures included, shared by any number of processes.

The folder contains one SQLite database with one table. A row is a key and the bytes of a JSON object; nothing in it is
ever executed. The file may come from an untrusted source (a CI cache, a shared folder), so everything in it is checked
before use.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from harness.diagnostics import hint
from harness.errors import UsageError
from harness.model import Outcome, Status
from harness.process_locks import lock_exclusively, lock_file
from harness.tables import cache_folder

UNREAD = ("plain", "crash")
"""Fingerprints of diagnostics that do not come from a compiler (`harness.engine.collect`)."""

_T = TypeVar("_T")
_NAME = "results.db"
_VERSION = 1
_SCHEMA = (
    "CREATE TABLE entries (key TEXT PRIMARY KEY, used REAL NOT NULL, value BLOB NOT NULL)",
    "CREATE INDEX by_use ON entries (used)",
)
_SIZE = 2 << 30
_LARGEST_VALUE = 64 << 20  # as in `_READ`
_LARGEST_BATCH = 256 << 20
_BATCH = 500
_NOTED = 3600.0
"""Seconds within which another use of an entry is not recorded."""
_PATIENCE = 5.0
"""Seconds to wait for another process that locks the database."""
_UNREAD = object()
# All statements are fixed: if SQLite rejects one, the file is damaged.
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# `typeof` and `length` of a blob read only the head of a row, so a row that is too large is never loaded.
_READ = (
    "SELECT key, rowid, used, value FROM entries"
    " WHERE key IN ({marks}) AND typeof(value) = 'blob' AND length(value) <= 67108864"
)
_NOTE = "UPDATE entries SET used = ? WHERE rowid IN ({marks})"
_WRITE = "INSERT OR REPLACE INTO entries (key, used, value) VALUES (?, ?, ?)"
_EVICT = "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries ORDER BY used LIMIT 64)"
# Messages of the C library, of compilers and of Python about trouble with the machine.
_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Cannot allocate memory|Too many open files|File too large|Input/output error"
    r"|Resource temporarily unavailable|Read-only file system|Permission denied|cannot create temp|out of memory|MemoryError"
    r"|memory exhausted|Memory allocation failure|bad_alloc|(?:can't|cannot|couldn't|unable to) (?:create|open|write)[^\n]{0,40}(?:temporary|output)|Killed\b",
    re.IGNORECASE,
)


def lasting(outcome: Outcome) -> bool:
    """Return whether an outcome would be the same again: built, unsupported, or refused by a compiler.

    A refusal counts if it has an error in the compiler's own words, and no sign of trouble with the machine. Crashes
    and timeouts may be accidental.
    """
    if outcome.status in (Status.BUILT, Status.UNSUPPORTED):
        return True
    recognised = any(d.severity in ("error", "fatal") and d.fingerprint not in UNREAD for d in outcome.diagnostics)
    return outcome.status is Status.REJECTED and recognised and not _MACHINE.search(outcome.log)


class ResultStore(Protocol):
    """A store of outcomes and facts: the cache, alone or with other results."""

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome under a key."""

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome that is `lasting`."""

    def fact(self, key: str) -> dict[str, Any] | None:
        """Return the JSON object under a key."""

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object."""

    def read_ahead(self, keys: Iterable[str]) -> None:
        """Read the values of the next keys with few queries."""

    def note_use(self) -> None:
        """Record when entries were used."""

    def taken_from(self, key: str) -> str:
        """Return the origin of the outcome under a key; empty for the cache's own."""

    def why_not(self, cell: str, program: str) -> str:
        """Return the reason why a cell's record in other results was not reused; empty without a record."""


class CacheUnavailable(UsageError):
    """A cache that this run does without: its disk is full, or a newer cumatrix created it."""


class ResultCache:
    """The cache in ``$CUMATRIX_CACHE``, or in the user's cache folder; thread-safe.

    Parameters
    ----------
    folder : Path, optional
        Another folder.

    Raises
    ------
    CacheUnavailable
        If its disk is full, or a newer cumatrix created it.
    UsageError
        If the folder cannot be used for another reason.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or cache_folder() / "results"
        self.limit = _SIZE
        self._path = self.folder / _NAME
        self._file: tuple[int, int] | None = None
        self._lock = threading.RLock()
        self._ahead: dict[str, Any] = {}
        self._used: list[int] = []
        self._connection: sqlite3.Connection | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._connection = _open(self._path)
            self._file = _file(self._path)
        except (OSError, sqlite3.Error) as error:
            kind = CacheUnavailable if _is_full(error, self.folder) else UsageError
            raise kind(
                f"cannot use the cache in {self.folder}: {error}; pass --no-cache or set CUMATRIX_CACHE"
            ) from None

    def outcome(self, key: str) -> Outcome | None:
        """Return the outcome under a key; an unreadable entry counts as missing."""
        value = self.fact(key)
        try:
            return Outcome.from_json(value) if value is not None else None
        except (KeyError, TypeError, ValueError):
            return None

    def keep_outcome(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome that is `lasting`."""
        self.keep_fact(key, outcome.to_json())

    def fact(self, key: str) -> dict[str, Any] | None:
        """Return the JSON object under a key; any other entry counts as missing."""
        text = self._ahead.pop(key, _UNREAD)
        if text is _UNREAD:
            text = (self._try(partial(self._values, keys=[key]), None) or {}).get(key)
        return _object(text) if text is not None else None

    def keep_fact(self, key: str, value: dict[str, Any]) -> None:
        """Keep a JSON object; if the disk is full, this run goes on and the next run takes longer."""
        self._ahead.pop(key, None)
        text = json.dumps(value).encode("ascii")
        if len(text) <= _LARGEST_VALUE:
            self._try(partial(self._write, key=key, text=text), None)

    def read_ahead(self, keys: Iterable[str]) -> None:
        """Read the values of the next keys with few queries; each value serves one request."""
        ahead: dict[str, Any] = {}
        size = 0
        for some in batches(keys, _BATCH):
            found = self._try(partial(self._values, keys=some), None)
            if found is None or (size := size + sum(map(len, found.values()))) > _LARGEST_BATCH:
                break
            ahead.update(dict.fromkeys(some) | found)
        self._ahead = ahead

    def note_use(self) -> None:
        """Record when entries were used; the least recently used ones are evicted first."""
        self._ahead = {}
        used, self._used = self._used, []
        if used:
            self._try(partial(_note, rows=used), None)

    def taken_from(self, key: str) -> str:
        """Return an empty string: the cache's own outcomes have no other origin."""
        return ""

    def why_not(self, cell: str, program: str) -> str:
        """Return an empty string: the cache reuses no other results."""
        return ""

    @classmethod
    def if_there_is_room(cls) -> ResultCache | None:
        """Return the cache, or None and a message on stderr if its disk is full or a newer cumatrix created it.

        Raises
        ------
        UsageError
            If the folder cannot be used for another reason.
        """
        try:
            return cls()
        except CacheUnavailable as error:
            hint(f"{error}. Until then, cumatrix compiles everything and caches nothing")
            return None

    @property
    def entries(self) -> int:
        """Number of entries."""
        return self._try(partial(_number, query="SELECT count(*) FROM entries"), 0)

    @property
    def size(self) -> int:
        """Bytes in use."""
        return self._try(_bytes, 0)

    def prune(self, most: int) -> int:
        """Evict the least recently used entries until `most` bytes are left.

        Parameters
        ----------
        most : int
            Bytes to keep. 0 also removes a damaged database that was moved aside, and the files of earlier cache
            formats.

        Returns
        -------
        int
            Number of evicted entries.
        """
        if not most:
            _remove_unused(self.folder)

        def evict(connection: sqlite3.Connection) -> int:
            with _transaction(connection):
                gone = _evict(connection, most) if most else connection.execute("DELETE FROM entries").rowcount
            connection.executescript("PRAGMA incremental_vacuum")  # `execute` frees one page
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return gone

        return self._try(evict, 0)

    def close(self) -> None:
        """Record the use of entries, and close the database."""
        self.note_use()
        with self._lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    def _values(self, connection: sqlite3.Connection, keys: Sequence[str]) -> dict[str, bytes]:
        """Return values by key, and collect entries for `note_use` whose use was not recorded within the last hour."""
        found: dict[str, bytes] = {}
        size, now = 0, time.time()
        for key, row, used, value in connection.execute(_READ.format(marks=_marks(keys)), keys):
            found[key.decode("utf-8", "replace")] = value
            if not (isinstance(used, float) and now - _NOTED < used <= now):
                self._used.append(row)
            if (size := size + len(value)) > _LARGEST_BATCH:
                break
        return found

    def _write(self, connection: sqlite3.Connection, key: str, text: bytes) -> None:
        with _transaction(connection):
            connection.execute(_WRITE, (key, time.time(), text))
            if _bytes(connection) > self.limit:
                _evict(connection, self.limit)
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE * 1000:.0f}")

    def _try(self, work: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """Use the database; a damaged one is replaced, and any other failure returns `otherwise`."""
        with self._lock:
            if self._connection is None:
                return otherwise
            try:
                return work(self._connection)
            except (sqlite3.Error, OSError, ValueError, MemoryError) as error:
                if _code(error) in _BUSY:
                    # Another process locks the database for too long: further entries do not wait for it again.
                    self._connection.execute("PRAGMA busy_timeout = 0")
                elif _code(error) in _DAMAGED:
                    self._replace(str(error))
                return otherwise

    def _replace(self, damage: str) -> None:
        """Continue with a new database, or without one if that fails."""
        if self._connection:
            self._connection.close()
        self._connection, self._used = None, []
        with contextlib.suppress(sqlite3.Error, OSError, UsageError):
            self._connection = _open(self._path, damage, self._file)
            self._file = _file(self._path)


class _Damaged(Exception):
    """The file is not a database of cumatrix."""


def _open(path: Path, damage: str = "", damaged: tuple[int, int] | None = None) -> sqlite3.Connection:
    """Open the database; a missing one is created, and a damaged one is moved aside first, with a message on stderr.

    Parameters
    ----------
    path : Path
        The database.
    damage : str
        Known damage of the database; empty if none is known.
    damaged : tuple of int, optional
        The damaged file.
    """
    if not damage:
        with contextlib.suppress(_Damaged):
            if connection := _connect(path):
                return connection
    with _alone(path):
        connection = None
        if not damage or _file(path) != damaged:  # another process may have created or replaced it
            try:
                connection, damage = _connect(path), ""
            except _Damaged as error:
                damage = str(error)
        if connection is None:
            if damage:
                _move_aside(path, damage)
            _create(path)
            connection = _connect(path)
        if connection is None:
            raise OSError(f"{path.name} does not keep what is written to it")
        return connection


def _connect(path: Path) -> sqlite3.Connection | None:
    """Connect to a database with the schema of this version; return None if the file is missing or empty.

    Raises
    ------
    _Damaged
        If the file is not a database of cumatrix.
    CacheUnavailable
        If a newer cumatrix created it.
    """
    for each in (path, *_companions(path)):
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(each)
            # SQLite would follow a link to any file, and block on a FIFO.
            if not stat.S_ISREG(found.st_mode):
                raise _Damaged(f"{each.name} is no plain file")
            if found.st_uid == os.geteuid() and not found.st_mode & stat.S_IRUSR:
                raise _Damaged(f"{each.name} cannot be read")
            if not os.access(each, os.R_OK | os.W_OK):
                raise OSError(f"{each.name} cannot be read and written")
    # This cache keeps rollback journals in memory. A journal on disk is foreign, and could name files for SQLite to
    # delete.
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    if not path.exists() or not path.stat().st_size:
        return None
    connection = _sqlite(path, "rw")
    try:
        _harden(connection)
        version = _number(connection, "PRAGMA user_version")
        if version > _VERSION:
            raise CacheUnavailable(
                f"cannot use the cache in {path.parent}: it is of a newer cumatrix; upgrade cumatrix or set CUMATRIX_CACHE"
            )
        # A trigger, a view or a generated column would appear in these texts.
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchmany(len(_SCHEMA) + 1)
        if rows or version:
            if version != _VERSION or [sql for (sql,) in rows] != [sql.encode() for sql in _SCHEMA]:
                raise _Damaged(f"{path.name} has another schema")
            _set_journal(connection)
            return connection
    except sqlite3.Error as error:
        connection.close()
        if _code(error) in _DAMAGED:
            raise _Damaged(str(error)) from None
        raise
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


def _create(path: Path) -> None:
    """Create an empty database atomically: no other process sees a partial one."""
    new = path.with_name(f"new-{os.getpid()}-{path.name}")
    try:
        _remove(new)
        connection = _sqlite(new, "rwc")
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL").fetchall()
            _set_journal(connection)
            with _transaction(connection):
                for statement in (*_SCHEMA, f"PRAGMA user_version = {_VERSION}"):
                    connection.execute(statement)
        finally:
            connection.close()
        for each in _companions(path):
            _remove(each)
        os.replace(new, path)
    finally:
        for each in (new, *_companions(new)):
            _remove(each)


def _sqlite(path: Path, mode: str) -> sqlite3.Connection:
    """Open a connection for all threads, in autocommit mode."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        timeout=_PATIENCE,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = bytes  # texts may not be UTF-8
    return connection


def _harden(connection: sqlite3.Connection) -> None:
    """Configure SQLite for an untrusted file."""
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    # If another process truncates a mapped file, the process that mapped it dies.
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "synchronous = NORMAL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _set_journal(connection: sqlite3.Connection) -> None:
    """Use write-ahead logging, or journals in memory if the file system has no shared memory."""
    if connection.execute("PRAGMA journal_mode").fetchone() != (b"wal",):
        connection.execute("PRAGMA journal_mode = MEMORY").fetchall()
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if _code(error) in (*_DAMAGED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY):
                raise
    connection.execute(f"PRAGMA journal_size_limit = {64 << 20}").fetchall()


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from creating or replacing the database; no effect without file locks or after a timeout."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            lock_exclusively(stack.enter_context(lock_file(path.with_suffix(".lock"))), _PATIENCE)
        yield


def _move_aside(path: Path, damage: str) -> None:
    """Rename the database and the files that SQLite keeps next to it; an earlier damaged database is removed."""
    for each in (path, *_companions(path)):
        aside = each.with_name(f"damaged-{each.name}")
        if each.is_symlink() or each.exists():
            _remove(aside)
            os.rename(each, aside)
    aside = path.with_name(f"damaged-{path.name}")
    hint(f"the cache in {path.parent} is damaged ({damage}): moved to {aside.name}, and a new one is used")


def _remove_unused(folder: Path) -> None:
    """Remove databases that were moved aside, and the files of earlier cache formats."""
    for name in (_NAME, "cache.db"):
        path = folder / name
        for each in (path, *_companions(path)):
            _remove(each.with_name(f"damaged-{each.name}" if name == _NAME else each.name))
    for path in folder.glob(f"new-*-{_NAME}*"):
        _remove(path)
    two = "[0-9a-f]" * 2
    for value in folder.glob(f"{two}/{two}/*.val"):
        with contextlib.suppress(OSError):
            value.unlink()
    for below in (*folder.glob(f"{two}/{two}"), *folder.glob(two)):
        with contextlib.suppress(OSError):
            below.rmdir()  # fails unless it is empty


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _companions(path: Path) -> Iterator[Path]:
    return (path.with_name(f"{path.name}-{name}") for name in ("wal", "shm", "journal"))


def _file(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _note(connection: sqlite3.Connection, rows: Sequence[int]) -> None:
    now = time.time()
    with _transaction(connection):
        for some in batches(rows, _BATCH):
            connection.execute(_NOTE.format(marks=_marks(some)), (now, *some))


def _evict(connection: sqlite3.Connection, most: int) -> int:
    """Delete the least recently used entries until `most` bytes are in use; return their number."""
    gone = 0
    while _bytes(connection) > most and (deleted := connection.execute(_EVICT).rowcount) > 0:
        gone += deleted
    return gone


def _bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages = _number(connection, "PRAGMA page_count") - _number(connection, "PRAGMA freelist_count")
    return pages * _number(connection, "PRAGMA page_size")


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _code(error: Exception) -> int:
    """Return SQLite's primary code of an error; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _object(text: bytes) -> dict[str, Any] | None:
    """Parse a JSON object; return None for any other bytes."""
    try:
        try:
            value = orjson.loads(text)
        except ValueError:
            # orjson rejects lone surrogates, which a log may contain.
            value = json.loads(text.decode(), parse_int=_int, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _int(text: str) -> int:
    number = int(text) if len(text) <= 20 else 1 << 64
    if number.bit_length() > 63:
        raise ValueError("an integer has more than 64 bits")
    return number


def _refuse(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _marks(items: Sequence[object]) -> str:
    return ",".join("?" * len(items))


def batches(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield lists of at most `size` items, as `itertools.batched` of Python 3.12."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _is_full(error: Exception, folder: Path) -> bool:
    """Return whether an error comes from a full disk; SQLite has several names for it, some with other causes."""
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
