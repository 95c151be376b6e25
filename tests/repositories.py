"""Small git repositories, made by tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "A. U. Thor", "GIT_AUTHOR_EMAIL": "author@example.org", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "A. U. Thor", "GIT_COMMITTER_EMAIL": "author@example.org", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
}  # fmt: skip


class Repository:
    """A new repository on branch ``main`` in a folder; existing files stay uncommitted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git in the repository."""
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, capture_output=True, text=True, check=True, env={**os.environ, **_IDENTITY}
        )  # fmt: skip
        return done.stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, without committing them."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str] | None = None, tag: str = "") -> str:
        """Commit all files; return the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=a change")
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD")


def cutlass(version: str, more: str = "") -> dict[str, str]:
    """Return the header of a CUTLASS with a single header."""
    lines = [f"#define CUTLASS_{name} {number}\n" for name, number in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True)]  # fmt: skip
    return {"include/cutlass/version.h": "".join(lines) + more}
