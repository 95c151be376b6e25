"""File locks, and the temporary folders and installations that they protect.

The system releases a lock when its process ends. A lock is therefore never stale: it distinguishes the remains of a killed process
from files in use, without regard to age or name.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.errors import PartUnavailable

TEMPORARY = "cumatrix-run-"
"""Prefix of temporary folders of runs."""
_LONGEST = 160
_PAUSE = 0.02
"""Seconds between two attempts to take a lock."""


def temporary_folder() -> Path:
    """Return the parent of temporary folders, as `tempfile` chooses it.

    Raises
    ------
    FileNotFoundError
        If no folder is writable.
    """
    if tempfile.tempdir is None:
        # tempfile tests a folder by writing a file, and an interruption would leave the file behind. A thread is never interrupted.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tempfile.gettempdir).result()
    return Path(tempfile.gettempdir())


def lock_exclusively(file: int, seconds: float = 0.0) -> bool:
    """Lock an open file or folder exclusively; return False if other processes hold it for `seconds`."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE)
        else:
            return True


@contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """Open or create a file for `lock_exclusively`, and unlock it afterwards, even if a forked process still has it open."""
    # O_NOFOLLOW: a link could lead to another user's file. O_NONBLOCK: opening a pipe would wait for its other end.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        yield file
    finally:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def stands_at(file: int, path: Path) -> bool:
    """Return whether an open file is still the file at `path`."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(file)
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def holder(path: Path) -> str:
    """Describe the holder of a lock: `` (process 123, since 2026-01-31 12:00:00: cumatrix run wmma)``; empty if unknown."""
    try:
        there = os.stat(path)
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            locks = [line.split() for line in file if " FLOCK " in line and "->" not in line]
        # 1: FLOCK ADVISORY WRITE 1234 fe:00:5809891 0 EOF
        pids = [int(words[4]) for words in locks if words[5].rpartition(":")[2] == str(there.st_ino)]
        pid = next(pid for pid in pids if pid > 0 and pid != os.getpid())
        return f" (process {pid}, since {_since(pid)}: {_command(pid)})"
    except (OSError, StopIteration, ValueError, IndexError):
        return ""


def _since(pid: int) -> str:
    """Return the start of a process in local time."""
    ticks = int(Path("/proc", str(pid), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
    with open("/proc/stat", encoding="ascii") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(boot + ticks / os.sysconf("SC_CLK_TCK")))


def _command(pid: int) -> str:
    """Return the command line of a process as the user typed it, without the interpreter; at most 160 characters."""
    words = Path("/proc", str(pid), "cmdline").read_bytes().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    if len(words) > 1 and Path(words[0]).name.startswith("python") and not words[1].startswith("-"):
        words = words[1:]
    text = " ".join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_made: dict[Path, int] = {}
"""Folders that this process has created and not removed, each with its process id. The id keeps forked children from removing them."""


@atexit.register
def _remove_left() -> None:
    for path, process in _made.items():
        if process == os.getpid():
            shutil.rmtree(path, ignore_errors=True)


class HeldFolder:
    """A temporary folder that this process locks; a context manager that removes it.

    Parameters
    ----------
    parent : Path
        The parent folder.
    prefix : str
        Prefix of the name. `sweep` finds the remains of killed processes by it.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        while True:
            self.path = parent.absolute() / f"{prefix}{uuid.uuid4().hex[:12]}"
            # Registered before mkdir: an interruption between the two would leave the folder behind.
            _made[self.path] = os.getpid()
            os.mkdir(self.path, 0o700)
            self._file = _open(self.path)
            if self._file >= 0 and _hold(self._file) and stands_at(self._file, self.path):
                return
            self._release()  # it was swept before it was locked

    def remove(self) -> None:
        """Remove the folder and its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        _made.pop(self.path, None)
        self._release()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def _release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def sweep(parent: Path, prefix: str) -> None:
    """Remove the folders of killed processes, but none that is in use or belongs to another user."""
    try:
        entries = [entry for entry in os.scandir(parent) if entry.name.startswith(prefix)]
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        try:
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
        except OSError:
            continue
        file = _open(path)
        if file >= 0:
            try:
                if lock_exclusively(file) and stands_at(file, path):
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                pass  # a file system without locks: its holder is unknown
            finally:
                os.close(file)


@contextmanager
def exclusive_folder(folder: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """Lock an existing folder exclusively.

    Parameters
    ----------
    folder : Path
        The folder.
    busy : callable
        Returns the exception to raise if another process holds the lock; its argument is the description by `holder`.
    """
    file = _open(folder, follow=True)
    try:
        if file >= 0 and not (_hold(file) and stands_at(file, folder)):
            raise busy(holder(folder))
        yield
    finally:
        if file >= 0:
            os.close(file)


def _open(folder: Path, *, follow: bool = False) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return -1


def _hold(file: int) -> bool:
    try:
        return lock_exclusively(file)
    except OSError:
        return True  # a file system without locks: `sweep` never removes the folder


# Folders of `work_folder` and `set_aside`; tempfile appends eight random characters.
_FOLDER = re.compile(r"\.(?P<name>.+?)-(?P<old>old-)?[a-z0-9_]{8}")
# File in such a folder while uv is running; it contains the path of uv's cache.
_CACHE = "uv-cache"


@contextmanager
def work_folder(root: Path, name: str) -> Iterator[Path]:
    """Create an empty folder below `root` to install `name` in, and remove it afterwards; after a kill, the next `sweep_installs` removes it."""
    folder = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-"))
    try:
        yield folder
    finally:
        _discard(folder)


@contextmanager
def at_work(folder: Path, cache: str) -> Iterator[None]:
    """Mark `folder` while uv installs into it. If uv is killed, the mark stays, and removing `folder` also removes the partial files in uv's cache."""
    marker = folder / _CACHE
    marker.write_text(os.path.abspath(cache) if cache else "", "utf-8")
    yield
    marker.unlink()


def set_aside(root: Path, name: str) -> Path | None:
    """Move the installation of `name` aside before it is replaced; return its new folder, or None if nothing is installed.

    If the process is killed before the replacement, the next `sweep_installs` moves the installation back.
    """
    if not (root / name).is_dir():
        return None
    folder = Path(tempfile.mkdtemp(dir=root, prefix=f".{name}-old-"))
    os.replace(root / name, folder / "home")
    return folder


def lock_path(root: Path, name: str) -> Path:
    """Return the file that a process locks to install or remove `name`."""
    return root / f".{name}.lock"


@contextmanager
def alone(root: Path, name: str, what: str, tell: Callable[[str], None], wait: float) -> Iterator[None]:
    """Keep other processes from installing or removing `name`.

    Parameters
    ----------
    root, name
        See `lock_path`.
    what : str
        Name in messages: ``CUDA 12.4``.
    tell : callable
        Called with a sentence before waiting for another process.
    wait : float
        Seconds to wait for another process.

    Raises
    ------
    PartUnavailable
        If another process takes longer than `wait`.
    """
    path = lock_path(root, name)
    with lock_file(path) as lock:
        if not lock_exclusively(lock):
            tell(f"{what} is being installed or removed by another process: waiting for that, for {wait:.0f} s at most")
            if not lock_exclusively(lock, wait):
                raise PartUnavailable(
                    f"{what}: another process has held {path} for {wait:.0f} s; end that process, or try again later"
                )
        yield


def sweep_installs(root: Path) -> None:
    """Remove the remains of killed installations below `root`, and restore what `set_aside` had moved.

    Folders of running installations stay, and so do folders that this user has no permission to remove.
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
                if not lock_exclusively(lock):
                    continue
                if found["old"] and (path / "home").is_dir() and not (root / found["name"]).exists():
                    os.replace(path / "home", root / found["name"])
                _discard(path)
        except OSError:
            continue


def _discard(folder: Path) -> None:
    """Remove a folder. If uv's cache cannot be cleaned yet, the mark of `at_work` stays for the next attempt."""
    done = _clean_cache(folder / _CACHE)
    for path in folder.iterdir():
        if path.name != _CACHE:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if done:
        shutil.rmtree(folder, ignore_errors=True)


def _clean_cache(marker: Path) -> bool:
    """Remove the partial files of a killed uv from its cache; return False if another uv is using the cache, since the files may be its own.

    uv unpacks into folders ``.tmpXXXXXX`` of its cache and never reuses them. It holds a shared lock on the file ``.lock`` while it runs.
    """
    try:
        since, cache = marker.stat().st_mtime, Path(marker.read_text("utf-8"))
        if not cache.is_absolute():
            return True  # the cache is unknown
        lock = os.open(cache / ".lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True  # uv has finished, or has not started
    try:
        if not lock_exclusively(lock):
            return False
        for path in cache.glob(".tmp??????"):
            if path.is_dir() and not path.is_symlink() and path.stat().st_mtime >= since:
                shutil.rmtree(path, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
