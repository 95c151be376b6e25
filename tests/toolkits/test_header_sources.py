"""Names of headers that are no release."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.toolkits.header_sources import HeaderSource, read_source


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    for name in ("case", "cutlass", "odd@name"):
        (tmp_path / name).mkdir()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("../cutlass", {"folder": "cutlass"}),
        ("../odd@name", {"folder": "odd@name"}),
        (".", {"folder": "case"}),
        ("../cutlass@v4.2.0", {"url": "cutlass", "revision": "v4.2.0"}),
        ("../odd@name@main", {"url": "odd@name", "revision": "main"}),
        ("../cutlass@v4.1..feature/x", {"url": "cutlass", "revision": "v4.1", "last": "feature/x"}),
        ("git+https://github.com/NVIDIA/cutlass", {"url": "https://github.com/NVIDIA/cutlass"}),
        (
            "git+https://github.com/NVIDIA/cutlass@main",
            {"url": "https://github.com/NVIDIA/cutlass", "revision": "main"},
        ),
        ("git+ssh://git@host/a/b.git", {"url": "ssh://git@host/a/b.git"}),
        ("git+ssh://git@host/a/b.git@3f2a9c1", {"url": "ssh://git@host/a/b.git", "revision": "3f2a9c1"}),
        ("git+file:///a/b@x#subdirectory=c/d", {"url": "file:///a/b", "revision": "x", "subfolder": "c/d"}),
        ("git+https://h/a@HEAD~3..HEAD", {"url": "https://h/a", "revision": "HEAD~3", "last": "HEAD"}),
    ],
)
def test_folders_and_revisions(tmp_path: Path, text: str, read: dict[str, str]) -> None:
    if "folder" in read:
        wanted = HeaderSource(text=text, folder=tmp_path / read["folder"])
    else:
        url = read["url"] if "://" in read["url"] else (tmp_path / read["url"]).as_uri()
        wanted = HeaderSource(text=text, **{**read, "url": url})  # type: ignore[arg-type]
    assert read_source(text, tmp_path / "case") == wanted


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("main", "'main' is not a version such as 3.5.1, nor a folder or revision such as ./cutlass"),
        ("cutlass", "'cutlass' is not a version"),
        ("../nowhere", "there is no folder '.*/nowhere'"),
        ("../nowhere@main", "there is no folder '.*/nowhere'"),
        ("../cutlass@", "'' is no commit, tag or branch"),
        ("../cutlass@--upload-pack=x", "'--upload-pack=x' is no commit, tag or branch"),
        ("../cutlass@a..b..c", "'b..c' is no commit"),
        ("../cutlass@a..", "'' is no commit, tag or branch .a range is FIRST..LAST"),
        ("https://github.com/NVIDIA/cutlass", "of a repository write git.https://"),
        ("git@github.com:NVIDIA/cutlass", "of a repository write git.https://"),
        ("git+ext::sh -c x", "is no address of a repository"),
        ("git+https://", "is no address of a repository"),
        ("git+https://h/a@-x", "'-x' is no commit"),
        ("git+https://h/a#egg=x", "what follows # must be subdirectory=FOLDER"),
        ("git+https://h/a#subdirectory=../b", "what follows # must be subdirectory=FOLDER"),
        ("git+https://h/a\n@x", "is not a version"),
        ("", "'' is not a version"),
        ("git+https://token@h/a@main", "^'git.https://h/a@main': an address with a password would be kept in records"),
        ("git+ssh://git:se@cret@h/a", "^'git.ssh://git@h/a': an address with a password"),
        ("git+https://h:se@cret/a", "^'git.https://cret/a': an address with a password"),
        ("https://me:secret@h/a", "^'https://h/a' is not a version"),
    ],
)
def test_what_is_neither(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_source(text, tmp_path / "case")
