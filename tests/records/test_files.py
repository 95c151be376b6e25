"""Atomic writes: messages about a full disk."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.records.files import named_errors


def test_a_full_disk_names_the_file() -> None:
    path = Path("reports/r.jsonl")
    with (
        pytest.raises(OSError, match="No space left") as caught,
        named_errors(path),
        open("/dev/full", "wb", buffering=0) as full,
    ):
        full.write(b"a record")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))


def test_an_error_that_knows_its_file_keeps_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, named_errors(Path("other")):
        (tmp_path / "missing").read_bytes()
    assert caught.value.filename == str(tmp_path / "missing")
