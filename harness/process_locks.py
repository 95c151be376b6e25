"""Resources that belong to a process as long as it lives: system locks, which the system releases however a process ends.

A lock is never stale: the remains of a killed process differ from files in use, without their age or name.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = "cumatrix-run-"
"""Prefix of temporary folders of runs."""
_LONGEST = 160
_PAUSE = 0.02
"""Seconds between two attempts to take what another process has."""


def temporary_folder() -> Path:
    """The place of temporary folders, as `tempfile` finds it.

    Raises
    ------
    FileNotFoundError
        No folder can be written.
    """
    if tempfile.tempdir is None:
        # It tries a folder with a file, which an interruption would leave there: none is raised in a thread, and this one is waited for.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(tempfile.gettempdir).result()
    return Path(tempfile.gettempdir())


def take_alone(file: int, seconds: float = 0.0) -> bool:
    """Take an open file or folder for this process alone; False where others have it for so many seconds."""
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
    """Open a file for `take_alone`, and make it where it is missing; afterwards others can take it, even if a forked process has it open."""
    # A link could lead to a file of another user's; a pipe would wait for its other end.
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        yield file
    finally:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_UN)
        os.close(file)


def stands_at(file: int, path: Path) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    mine = os.fstat(file)
    return (mine.st_ino, mine.st_dev) == (there.st_ino, there.st_dev)


def holder(path: Path) -> str:
    """Describe the holder of a file or folder: `` (process 123, since 2026-01-31 12:00:00: cumatrix run wmma)``; empty if the system does not say."""
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
    """When a process started, in local time."""
    ticks = int(Path("/proc", str(pid), "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19])
    with open("/proc/stat", encoding="ascii") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(boot + ticks / os.sysconf("SC_CLK_TCK")))


def _command(pid: int) -> str:
    """A process's command, as users would write it."""
    words = Path("/proc", str(pid), "cmdline").read_bytes().rstrip(b"\0").decode("utf-8", "replace").split("\0")
    if len(words) > 1 and Path(words[0]).name.startswith("python") and not words[1].startswith("-"):
        words = words[1:]
    text = " ".join([Path(words[0]).name, *words[1:]])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_made: dict[Path, int] = {}
"""Folders that this process has made and not removed yet, each with the process: one that it has forked leaves them alone."""


@atexit.register
def _remove_left() -> None:
    for path, process in _made.items():
        if process == os.getpid():
            shutil.rmtree(path, ignore_errors=True)


class HeldFolder:
    """A temporary folder of this process; a context manager, which removes it.

    Parameters
    ----------
    parent : Path
        Where to make it.
    prefix : str
        Prefix of its name, which `sweep` uses to find the remains of killed processes.
    """

    def __init__(self, parent: Path, prefix: str) -> None:
        while True:
            self.path = parent.absolute() / f"{prefix}{uuid.uuid4().hex[:12]}"
            # Before it is created: an interruption may come as soon as it exists, before its remover is registered.
            _made[self.path] = os.getpid()
            os.mkdir(self.path, 0o700)
            self._file = _open(self.path)
            if self._file >= 0 and _hold(self._file) and stands_at(self._file, self.path):
                return
            self._release()  # it was swept before it was locked

    def remove(self) -> None:
        """Remove it with all that is in it."""
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
    """Remove the folders of processes that were killed; those in use, and other users', stay."""
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
                if take_alone(file) and stands_at(file, path):
                    shutil.rmtree(path, ignore_errors=True)
            except OSError:
                pass  # a file system without locks: its holder is unknown
            finally:
                os.close(file)


@contextmanager
def folder_alone(folder: Path, busy: Callable[[str], Exception]) -> Iterator[None]:
    """While this process alone changes what is in a folder.

    Parameters
    ----------
    folder : Path
        The folder, which is there.
    busy : callable
        The exception to raise when another process does, out of who that is (`holder`).
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
        return take_alone(file)
    except OSError:
        return True  # a file system without locks: it is never swept
