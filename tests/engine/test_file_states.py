"""States of files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from harness.engine.file_states import Files, signature_of


def test_a_large_file_is_hashed_in_pieces(tmp_path: Path) -> None:
    data = os.urandom(5 << 20) + b"end"
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "empty").touch()
    files = Files()
    assert files.state(str(tmp_path / "large")) == f"f:{hashlib.sha256(data).hexdigest()}"
    assert files.state(str(tmp_path / "empty")) == f"f:{hashlib.sha256().hexdigest()}"


def test_what_is_hashed_ahead_need_not_be_read_again(tmp_path: Path) -> None:
    library = tmp_path / "large.so"
    library.write_bytes(bytes(3 << 20))
    os.utime(library, (1, 1))
    signature = signature_of(os.stat(library))
    files = Files()
    files.share({str(library): (*signature[:2], 1, *signature[3:])})
    assert not files.hashes  # another file than the recorded one
    files.share({str(library): signature})
    digest = hashlib.sha256(bytes(3 << 20)).hexdigest()
    assert files.state_of_read(str(library), False, signature) == f"f:{digest}"
