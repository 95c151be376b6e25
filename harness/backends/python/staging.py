"""A working directory for a Python program: it shows the files next to the program, and keeps the program's writes."""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PLACES: dict[str, list[tuple[int, int | None]]] = {
    "os.mkdir": [(0, 2)],
    "os.remove": [(0, 1)],
    "os.rmdir": [(0, 1)],
    "os.rename": [(0, 2), (1, 3)],
    "os.link": [(1, 3)],
    "os.symlink": [(1, 2)],
    "os.truncate": [(0, None)],
    "os.chmod": [(0, 2)],
    "os.chown": [(0, 3)],
    "os.utime": [(0, 3)],
    "os.setxattr": [(0, None)],
    "os.removexattr": [(0, None)],
    "shutil.rmtree": [(0, 1)],
    "sqlite3.connect": [(0, None)],
}
"""Audit events that change files, by name: positions of a path and of its base folder
(https://docs.python.org/3/library/audit_events.html)."""
_OF_NAMES = frozenset({"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink"})


class WorkFolder:
    """The working directory of a program: links to everything next to it.

    Reads go to the user's files, through links. When the program writes to one of them, or below a
    folder of them, the link becomes a copy first. Writing by another way, such as the program's own ``__file__``, is
    a PermissionError. Compiled code that opens files by itself, and other processes, are not seen.

    Parameters
    ----------
    program : Path
        The folder of the program.
    scratch : Path
        The folder of the cell, where the working directory is made and everything may be written.
    """

    def __init__(self, program: Path, scratch: Path) -> None:
        self.program = os.path.realpath(program)
        # A level deeper, so that what goes to ".." is out of the way too.
        self.path = os.path.join(os.path.realpath(scratch), "work", os.path.basename(self.program) or "program")
        os.makedirs(self.path)
        self._free = tuple(place + os.sep for place in (os.path.realpath(scratch), "/dev", "/proc"))
        self._busy = False
        self._guarding = False
        self._links: set[str] = set()
        self._link_all(self.program, self.path)

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Keep the user's files as they are; for once, since what listens to a process cannot be taken off again."""
        self._guarding = True
        sys.addaudithook(self._listen)
        try:
            yield
        finally:
            self._guarding = False

    def _listen(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._busy or not self._guarding:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITING:
                self._let_go(path, None)
        elif event in _PLACES:
            for place, folder in _PLACES[event]:
                seen_from = arguments[folder] if folder is not None and folder < len(arguments) else None
                self._let_go(arguments[place], seen_from, name=event in _OF_NAMES)

    def _let_go(self, path: Any, folder: Any, *, name: bool = False) -> None:
        """See to it that changing `path` changes nothing of the user's, or raise.

        With `name` it is the directory's entry that changes, and what a link points to stays as it is.
        """
        if not isinstance(path, (str, bytes, os.PathLike)):
            return
        self._busy = True
        try:
            start = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.getcwd()
            place = os.path.normpath(os.path.join(start, os.fsdecode(path)))
            if place.startswith(self.path + os.sep):
                self._own(os.path.dirname(place) if name else place)
            where = os.path.realpath(os.path.dirname(place)) if name else os.path.realpath(place)
            if self._is_users(where) or self._is_users(place):
                words = "cumatrix lets a program change nothing beside itself"
                raise PermissionError(errno.EACCES, words, os.path.relpath(place, self.program))
        finally:
            self._busy = False

    def _is_users(self, place: str) -> bool:
        inside = place == self.program or place.startswith(self.program.rstrip(os.sep) + os.sep)
        return inside and not (place + os.sep).startswith(self._free)

    def _own(self, place: str) -> None:
        """Replace links to the user's files on the way to `place` by folders and a copy."""
        here = self.path
        for part in Path(place).relative_to(self.path).parts:
            here = os.path.join(here, part)
            target = os.path.realpath(here)
            if not os.path.islink(here) or not (here in self._links or self._is_users(target)):
                continue
            os.unlink(here)
            if os.path.isdir(target):
                os.mkdir(here)
                self._link_all(target, here)
            elif os.path.isfile(target):
                shutil.copy(target, here)

    def _link_all(self, source: str, target: str) -> None:
        with suppress(PermissionError), os.scandir(source) as entries:  # a folder that cannot be listed
            for entry in entries:
                link = os.path.join(target, entry.name)
                os.symlink(entry.path, link)
                self._links.add(link)
