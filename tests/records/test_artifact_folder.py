"""Artifacts, stored by content: never mistaken for another, and never partly written."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.records.files import ArtifactFolder

DATA = b".version 8.4\n"
SHA256 = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> ArtifactFolder:
    made = ArtifactFolder(tmp_path / "a" / "b")
    made.open()
    return made


def test_what_is_kept_is_there_for_anybody(folder: ArtifactFolder) -> None:
    assert not folder.has("ptx", SHA256, len(DATA))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: folder.keep("ptx", SHA256, DATA), range(40)))
    assert [path.name for path in folder.path.iterdir()] == [f"{SHA256}.ptx"]
    again = ArtifactFolder(folder.path)
    assert again.has("ptx", SHA256, len(DATA))
    assert not again.has("ptx", SHA256, len(DATA) + 1) and not again.has("cubin", SHA256, len(DATA))
    assert again.read("ptx", SHA256, 100) == DATA
    assert not folder.problems


@pytest.mark.parametrize(("kind", "sha256"), [("../x", SHA256), ("ptx", "../" * 21 + "x"), ("ptx", "A" * 64), ("", "")])
def test_a_record_chooses_no_path(folder: ArtifactFolder, kind: str, sha256: str) -> None:
    assert not folder.has(kind, sha256, 0)
    with pytest.raises(ValueError, match="no artifact"):
        folder.read(kind, sha256, 100)


def test_what_was_put_there_by_others_is_not_taken_for_it(folder: ArtifactFolder, tmp_path: Path) -> None:
    path = folder.file("ptx", SHA256)
    path.write_bytes(b"x" * len(DATA))
    with pytest.raises(ValueError, match="not what its name says"):
        folder.read("ptx", SHA256, 100)
    with pytest.raises(ValueError, match="13 bytes, which is more than 5"):
        folder.read("ptx", SHA256, 5)
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(DATA)
    path.symlink_to(tmp_path / "elsewhere")
    assert not folder.has("ptx", SHA256, len(DATA))
    with pytest.raises(OSError, match="symbolic links"):
        folder.read("ptx", SHA256, 100)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ValueError, match="no plain file"):
        folder.read("ptx", SHA256, 100)


def test_what_cannot_be_written_is_one_sentence(folder: ArtifactFolder) -> None:
    folder.file("ptx", SHA256).mkdir()
    for _ in range(2):
        folder.keep("ptx", SHA256, DATA)
    assert folder.problems == [f"not kept in {folder.path} (2 artifacts): Is a directory"]
    assert len(list(folder.path.iterdir())) == 1, "something half written was left"


def test_a_folder_that_cannot_be_made_is_told_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match=r"^cannot keep artifacts in .*: (File exists|Not a directory)$"):
            ArtifactFolder(path).open()
