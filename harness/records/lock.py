"""Who writes to a file of records: the locks of the system, which it gives back however a process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.held import holder, take_alone
from harness.records.errors import RecordError


def busy(path: Path) -> RecordError:
    """What to say where a run writes to the file."""
    return RecordError(
        f"{path}: another run is writing to it{holder(path)}: wait until that one has ended, or name another file of records"
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
