"""Folders that an installation works in, and what is left of them where it was killed."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import PartUnavailable
from harness.process_locks import lock_file, take_alone

# As `tempfile` names what follows the prefix.
_FOLDER = re.compile(r"\.(?P<name>.+?)-(?P<old>old-)?[a-z0-9_]{8}")
# File in such a folder while uv works: the folder of its cache.
_CACHE = "uv-cache"


@contextmanager
def work_folder(root: Path, name: str) -> Iterator[Path]:
    """An empty folder below `root` to install `name` in; it goes when that is done or has failed, and when it was killed, with the next `sweep`."""
    folder = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-"))
    try:
        yield folder
    finally:
        _discard(folder)


@contextmanager
def at_work(folder: Path, cache: str) -> Iterator[None]:
    """Note that uv works for `folder`: if it does not come to its own end, what it was unpacking stays in its cache until `folder` is removed."""
    marker = folder / _CACHE
    marker.write_text(os.path.abspath(cache) if cache else "", "utf-8")
    yield
    marker.unlink()


def set_aside(root: Path, name: str) -> Path | None:
    """Take what is installed under a name out of the way of what comes in its place; None where nothing is.

    If nothing ever comes, since the process was killed, the next `sweep` puts it back.
    """
    if not (root / name).is_dir():
        return None
    folder = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-old-"))
    os.replace(root / name, folder / "home")
    return folder


def lock_path(root: Path, name: str) -> Path:
    """The file that a process takes to install or remove `name`."""
    return root / f".{name}.lock"


@contextmanager
def alone(root: Path, name: str, what: str, tell: Callable[[str], None], wait: float) -> Iterator[None]:
    """Nobody else installs or removes `name` meanwhile.

    Parameters
    ----------
    root, name
        See `lock_path`.
    what : str
        What messages call it: ``CUDA 12.4``.
    tell : callable
        Is given a sentence where another process has to be waited for.
    wait : float
        Seconds to wait for it.

    Raises
    ------
    PartUnavailable
        When it takes longer.
    """
    path = lock_path(root, name)
    with lock_file(path) as lock:
        if not take_alone(lock):
            tell(f"{what} is being installed or removed by another process: waiting for that, for {wait:.0f} s at most")
            if not take_alone(lock, wait):
                raise PartUnavailable(
                    f"{what}: another process has held {path} for {wait:.0f} s; end that process, or try again later"
                )
        yield


def sweep(root: Path) -> None:
    """Remove what killed installations have left below `root`, and put back what they had set aside.

    What belongs to one that is still under way stays, as does what this user must not remove.
    """
    try:
        entries = [entry.path for entry in os.scandir(root) if entry.name.startswith(".") and entry.is_dir()]
    except OSError:
        return
    for path in map(Path, entries):
        found = _FOLDER.fullmatch(path.name)
        if not found:
            continue
        try:
            with lock_file(lock_path(root, found["name"])) as lock:
                if not take_alone(lock):
                    continue
                if found["old"] and (path / "home").is_dir() and not (root / found["name"]).exists():
                    os.replace(path / "home", root / found["name"])
                _discard(path)
        except OSError:
            continue


def _discard(folder: Path) -> None:
    """Remove a folder; where uv's cache cannot be cleaned now, the note that it has to be stays."""
    done = _clean_cache(folder / _CACHE)
    for path in folder.iterdir():
        if path.name != _CACHE:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if done:
        shutil.rmtree(folder, ignore_errors=True)


def _clean_cache(marker: Path) -> bool:
    """Remove what a killed uv was unpacking into its cache; False where another uv is at work there, so that nobody knows whose it is.

    uv unpacks into folders ``.tmpXXXXXX`` of its cache, which it does not look for again, and holds a shared lock on the file ``.lock`` as long as it runs.
    """
    try:
        since, cache = marker.stat().st_mtime, Path(marker.read_text("utf-8"))
        if not cache.is_absolute():
            return True  # uv has not told where it is
        lock = os.open(cache / ".lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True  # uv came to its own end, or has not begun
    try:
        if not take_alone(lock):
            return False
        for path in cache.glob(".tmp??????"):
            if path.is_dir() and not path.is_symlink() and path.stat().st_mtime >= since:
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
