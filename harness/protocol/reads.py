"""The worker's half of read tracking: the files that a process and its children open or look up.

A small library (``native/reads.c``), preloaded into the worker, writes a record for each file. The worker's own
records, from loading a backend, go to a file. Those of a cell go through a FIFO, which needs no disk space and is not
subject to the cell's limits. `harness.engine.reads` parses the records.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "CUMATRIX_READS"
"""Environment variable with the path of the file or FIFO for records."""

_LIMIT, _LONGEST = 32 << 20, 8 << 20
"""Limits on a cell's records in bytes: of all records, and of distinct ones."""
_AT_ONCE = 8 << 20
"""Bytes after which the reader pauses, because a cell could fill the pipe as fast as it is read."""
_F_SETPIPE_SZ = 1031  # fcntl.F_SETPIPE_SZ, which requires Python 3.10
_PIECE = 4096  # PIPE_BUF: size of an atomic write
_GONE = " (deleted)"
_reported: set[str] = set()
"""Libraries in the own records of the fork server; they are not reported again for its cells."""


def followed() -> bool:
    """Return whether the library is loaded into this process."""
    return bool(os.environ.get(VARIABLE)) and hasattr(ctypes.CDLL(None), "cumatrix_reads_to")


def lost() -> int:
    """Return the number of this process's records that could not be written."""
    return ctypes.CDLL(None).cumatrix_reads_lost() if followed() else 0


def send_to(path: Path) -> bool:
    """Redirect the records of this process and its descendants; return False if reads are not followed."""
    if not followed():
        return False
    ctypes.CDLL(None).cumatrix_reads_to(os.fsencode(path))
    os.environ[VARIABLE] = str(path)
    return True


def paths_of(data: bytes) -> list[str]:
    """Return every path in records of files that were read, or looked up and missing."""
    paths = [record.split(" ", 6)[6] for record in unique(data) if record[0] in "RrM"]
    return [path for path in dict.fromkeys(paths) if "/__pycache__" not in path]


def note_mapped(paths: Iterable[str]) -> None:
    """Record files that are mapped into this process: the library does not see what the dynamic linker opens.

    The linker's own list has the names under which it found them, including links, and the places that it searched
    before. Libraries that the fork server has already reported (`own_records`) are skipped.
    """
    paths = [path for path in paths if path not in _reported]
    if paths and followed():
        _look_at(paths, remember=False)


def mapped(process: str = "self") -> list[str]:
    """Return the files that are mapped into a process, this one by default; removed files end with `_GONE`."""
    found: dict[str, None] = {}
    with open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path:
                found["/" + path] = None
    return list(found)


def _look_at(paths: Iterable[str], *, remember: bool) -> None:
    ctypes.CDLL(None).cumatrix_note_libraries(remember)
    for path in paths:
        if not path.endswith(_GONE):
            os.path.exists(path)


class Follower:
    """Receives the records of one cell after another, in the fork server.

    Without the library or a FIFO, it receives nothing, and `taken` returns None.
    """

    def __init__(self) -> None:
        self.reader = -1
        if not followed():
            return
        self.path = os.environ[VARIABLE] + ".cell"
        try:
            os.mkfifo(self.path, 0o600)
            self.reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            # With a writer of this process, the FIFO stays open between two processes of a cell.
            self._writer = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self.reader = -1
            return
        try:
            fcntl.fcntl(self.reader, _F_SETPIPE_SZ, 1 << 20)
        except OSError:
            pass  # a smaller pipe is drained more often
        self._data = bytearray()
        self._cut = False

    def begin_child(self) -> None:
        """In a forked child: send its records, and those of its descendants, to this follower."""
        if self.reader < 0:
            os.environ.pop(VARIABLE, None)
            return
        os.close(self.reader)
        os.close(self._writer)
        send_to(Path(self.path))

    def drain(self) -> None:
        """Read the available records, up to `_AT_ONCE` bytes."""
        left = _AT_ONCE
        while self.reader >= 0 and left > 0:
            try:
                data = os.read(self.reader, 1 << 16)
            except BlockingIOError:
                return
            left -= len(data)
            if len(self._data) < _LIMIT:
                self._data += data
            else:
                self._cut = True

    def taken(self) -> list[str] | None:
        """Return the records of the cell that has ended; None if they are incomplete."""
        if self.reader < 0:
            return None
        self.drain()
        data, cut = bytes(self._data), self._cut
        self._data, self._cut = bytearray(), False
        records = [] if cut else unique(data)
        return None if cut or sum(map(len, records)) > _LONGEST else records


def unique(data: bytes) -> list[str]:
    """Return records without duplicates, except for started programs, which `harness.engine.reads` counts."""
    records = [record.decode("utf-8", "surrogateescape") for record in data.split(b"\0") if record]
    kept: dict[str, None] = {}
    programs = []
    for record in records:
        if record[0] in "XYB":
            programs.append(record)
        else:
            kept[record] = None
    return [*kept, *programs]


def without(data: bytes, folders: Iterable[Path]) -> bytes:
    """Return the records without those of files in some folders."""
    apart = tuple(os.fsencode(f"{folder}/") for folder in folders)
    records = [record for record in data.split(b"\0") if record]
    return b"".join(r + b"\0" for r in records if not (r.split(b" ", 6)[-1] + b"/").startswith(apart))


def replay(data: bytes) -> None:
    """Send the unchanged records of another process again."""
    if not followed() or not data:
        return
    channel = os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND)
    try:
        for record in data.split(b"\0"):
            if 0 < len(record) < _PIECE:
                os.write(channel, record + b"\0")
    finally:
        os.close(channel)


def own_records(path: Path) -> list[str] | None:
    """Return the records of this process and its descendants so far; None if some could not be written.

    Forked cells do not report the same libraries again.
    """
    if not followed() or lost():
        return None
    paths = mapped()
    _look_at(paths, remember=True)
    _reported.update(paths)
    try:
        return unique(path.read_bytes())
    except OSError:
        return None
