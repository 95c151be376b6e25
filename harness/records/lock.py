"""Who writes to a file of records: the locks of the system, which it gives back however a process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.records.errors import RecordError


def take_alone(file: int) -> bool:
    """Take an open file for this process alone; False where others have it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stands_at(file: int, path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(file)
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def busy(path: Path) -> RecordError:
    """What to say where a run writes to the file."""
    return RecordError(
        f"{path}: another run is writing to it: wait until that one has ended, or name another file of records"
    )


@contextmanager
def left_alone(path: Path) -> Iterator[None]:
    """While another file takes the place of this one: refused where a run writes to it."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        yield  # nothing is there, or whoever writes will say why it cannot be
        return
    try:
        if not take_alone(file):
            raise busy(path)
        yield
    finally:
        os.close(file)
