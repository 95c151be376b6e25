"""Changes of files between two runs, as data: each constructor gives one `Change`."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_YEAR = 365 * 24 * 3600


@dataclass(frozen=True)
class Change:
    """A change of a path.

    Parameters
    ----------
    name : str
        The path; relative to the pair's folder, or with one of the places of `site.Site.filled` in it.
    act : callable
        Does it; gets the path and a function that fills in places.
    """

    name: str
    act: Callable[[Path, Callable[[str], str]], None]


@dataclass(frozen=True)
class Link:
    """A symbolic link among a pair's files."""

    to: str


@dataclass(frozen=True)
class Variable:
    """An environment variable to set or remove."""

    name: str
    value: str | None


@dataclass(frozen=True)
class Zip:
    """An archive among a pair's files that contains a module ``helper``."""

    helper: str


@dataclass(frozen=True)
class Built:
    """A C program, replaced by the artifact of the host compiler."""

    text: str
    options: tuple[str, ...]


Content = str | Link | Zip | Built


def put(path: Path, content: Content) -> None:
    """Write a file of a pair in place; scripts and programs become executable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Link):
        path.symlink_to(content.to)
        return
    shared = path.exists() and path.stat().st_nlink > 1
    assert not shared, f"{path} is shared with the toolkits or libraries of all tests"
    data = content.encode() if isinstance(content, str) else _made(content)
    path.write_bytes(data)
    if data.startswith((b"#!", b"\x7fELF")):
        path.chmod(0o755)


def _made(content: Zip | Built) -> bytes:
    if isinstance(content, Zip):
        with io.BytesIO() as file:
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr("helper.py", content.helper)
            return file.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        argv = ["gcc", "-x", "c", "-", "-x", "none", "-o", f"{folder}/built", *content.options]
        subprocess.run(argv, input=content.text.encode(), check=True)
        return Path(folder, "built").read_bytes()


def write(name: str, text: str) -> Change:
    """Write a file: a new file, or another text into an existing one."""
    return Change(name, lambda path, fill: put(path, fill(text)))


def append(name: str, text: str) -> Change:
    """Append to a file."""
    return Change(name, lambda path, fill: put(path, path.read_text("utf-8") + fill(text)))


def _then(change: Change, after: Callable[[Path, os.stat_result], None]) -> Change:
    """Return the change followed by `after`, which receives the earlier status of the file."""

    def act(path: Path, fill: Callable[[str], str]) -> None:
        before = path.stat()
        change.act(path, fill)
        after(path, before)

    return Change(change.name, act)


def older(change: Change) -> Change:
    """Return the change with a modification time one year before the earlier file's."""

    def after(path: Path, before: os.stat_result) -> None:
        os.utime(path, (before.st_mtime - _YEAR, before.st_mtime - _YEAR))

    return _then(change, after)


def unseen(change: Change) -> Change:
    """Return the change with the size and modification time of the earlier file."""

    def after(path: Path, before: os.stat_result) -> None:
        assert path.stat().st_size == before.st_size, "the pair's two texts differ in length"
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return _then(change, after)


def moved(name: str, text: str) -> Change:
    """Write another file and rename it, as editors do."""

    def act(path: Path, fill: Callable[[str], str]) -> None:
        beside = path.with_name(f".{path.name}.new")
        put(beside, fill(text))
        os.replace(beside, path)

    return Change(name, act)


def touch(name: str) -> Change:
    """Change the modification time and keep the bytes."""
    return Change(name, lambda path, fill: os.utime(path, (path.stat().st_mtime - 9, path.stat().st_mtime - 9)))


def delete(name: str) -> Change:
    """Remove a file, a link or a whole folder."""

    def act(path: Path, fill: Callable[[str], str]) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    return Change(name, act)


def link(name: str, to: str) -> Change:
    """Point a symbolic link elsewhere."""

    def act(path: Path, fill: Callable[[str], str]) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to(fill(to))

    return Change(name, act)
