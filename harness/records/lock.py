"""Writers of a file of records: system locks, which the system releases however a process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.held import holder, take_alone
from harness.records.errors import RecordError


def busy(path: Path) -> RecordError:
    """The sentence for a file that a run is writing to."""
    return RecordError(
        f"{path}: another run is writing to it{holder(path)}: wait until that one has ended, or name another file of records"
    )


@contextmanager
def left_alone(path: Path) -> Iterator[None]:
    """While another file takes the place of this one: refused where a run writes to it."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        yield  # missing files are reported by the writer
        return
    try:
        if not take_alone(file):
            raise busy(path)
        yield
    finally:
        os.close(file)
