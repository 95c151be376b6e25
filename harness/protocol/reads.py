"""The worker's half of read tracking: the files that a process and its children open or look for.

A small library (``native/reads.c``), preloaded into the worker, writes a record for each file. The
worker's own records, from loading a backend, go to a file; those of a cell go through a FIFO, which needs no room on a disk
and no limit of the cell can touch. `harness.engine.reads` makes sense of the records.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

VARIABLE = "CUMATRIX_READS"
"""Names the file or FIFO that records go to."""

_LIMIT, _LONGEST = 32 << 20, 8 << 20
"""Bytes of a cell's records: of all of them, and of those that differ."""
_AT_ONCE = 8 << 20
"""Bytes after which the reader of the pipe does something else: a cell could fill it as fast."""
_F_SETPIPE_SZ = 1031  # fcntl.F_SETPIPE_SZ from Python 3.10 on
_PIECE = 4096  # PIPE_BUF: what is written in one piece
_GONE = " (deleted)"
_reported: set[str] = set()
"""Libraries of the process that has reported its own reads: cells are forked from it."""


def followed() -> bool:
    """Return whether the library is loaded into this process."""
    return bool(os.environ.get(VARIABLE)) and hasattr(ctypes.CDLL(None), "cumatrix_reads_to")


def lost() -> int:
    """Number of this process's records that could not be written."""
    return ctypes.CDLL(None).cumatrix_reads_lost() if followed() else 0


def send_to(path: Path) -> bool:
    """Send the records of this process, and of all that it starts, elsewhere; False where there are none."""
    if not followed():
        return False
    ctypes.CDLL(None).cumatrix_reads_to(os.fsencode(path))
    os.environ[VARIABLE] = str(path)
    return True


def paths_of(data: bytes) -> list[str]:
    """Every path in records of files that were read, or looked for and missing."""
    paths = [record.split(" ", 6)[6] for record in unique(data) if record[0] in "RrM"]
    return [path for path in dict.fromkeys(paths) if "/__pycache__" not in path]


def note_mapped(paths: Iterable[str]) -> None:
    """Let the library see files that are mapped into this process: what the dynamic linker opens, it does not.

    The linker's own list has the names by which it found them, links among them, and the places it searched before. Earlier records of
    that this one was forked from (`own_records`) is left out.
    """
    paths = [path for path in paths if path not in _reported]
    if paths and followed():
        _look_at(paths, remember=False)


def mapped(process: str = "self") -> list[str]:
    """Files that are mapped into this process, or into another one by its number; those that have been removed since end with `_GONE`."""
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
    """Takes the records of one cell after the other; in the process that cells are forked from.

    Without the library, or where no FIFO can be made, nothing is taken, and `taken` answers None.
    """

    def __init__(self) -> None:
        self.reader = -1
        if not followed():
            return
        self.path = os.environ[VARIABLE] + ".cell"
        try:
            os.mkfifo(self.path, 0o600)
            self.reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            # A writer of our own: the pipe has no end between two processes of a cell.
            self._writer = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            self.reader = -1
            return
        try:
            fcntl.fcntl(self.reader, _F_SETPIPE_SZ, 1 << 20)
        except OSError:
            pass  # a smaller pipe is emptied more often
        self._data = bytearray()
        self._cut = False

    def begin_child(self) -> None:
        """In a forked child: send its records, and those of all that it starts, to this follower."""
        if self.reader < 0:
            os.environ.pop(VARIABLE, None)
            return
        os.close(self.reader)
        os.close(self._writer)
        send_to(Path(self.path))

    def drain(self) -> None:
        """Take what is there, up to `_AT_ONCE`."""
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
        """The records of the cell that has ended; None where they are not all there."""
        if self.reader < 0:
            return None
        self.drain()
        data, cut = bytes(self._data), self._cut
        self._data, self._cut = bytearray(), False
        records = [] if cut else unique(data)
        return None if cut or sum(map(len, records)) > _LONGEST else records


def unique(data: bytes) -> list[str]:
    """Records without those that say the same; programs that begin and are begun are counted by who reads them."""
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
    """Records except those of files in some folders."""
    apart = tuple(os.fsencode(f"{folder}/") for folder in folders)
    records = [record for record in data.split(b"\0") if record]
    return b"".join(r + b"\0" for r in records if not (r.split(b" ", 6)[-1] + b"/").startswith(apart))


def replay(data: bytes) -> None:
    """Send records of another process again, as they are."""
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
    """The records of this process so far, and of all that it started; None where some could not be written. What is forked from it has no need to tell of the same libraries."""
    if not followed() or lost():
        return None
    paths = mapped()
    _look_at(paths, remember=True)
    _reported.update(paths)
    try:
        return unique(path.read_bytes())
    except OSError:
        return None
