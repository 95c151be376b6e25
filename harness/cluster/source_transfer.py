"""Transfer of a case's source files to workers without a shared file system."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.cases.rules import options_for
from harness.engine.file_states import Roots
from harness.errors import UsageError
from harness.model import Case, Cell

_MOST_BYTES = 64 << 20
_MOST_FILES = 10_000


@dataclass(frozen=True)
class Sent:
    """Files of programs, and their paths on the requesting machine.

    Parameters
    ----------
    here : str
        The folder of the request.
    files : Mapping[str, bytes]
        Contents by absolute path; empty if the machines share the files.
    """

    here: str
    files: Mapping[str, bytes] = field(default_factory=dict)

    def lay_out(self, folder: Path) -> Places:
        """Write the files to a folder; without files, all paths stay the same."""
        if not self.files:
            return Places(self.here, {})
        below: dict[str, str] = {}
        for path, data in self.files.items():
            inside = os.path.relpath(path, self.here)
            apart = inside.startswith("..")
            target = folder / ("apart" if apart else "here") / (path.lstrip("/") if apart else inside)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            if apart:
                top = f"/{path.split('/')[1]}"
                below[top] = str(folder / "apart" / top.lstrip("/"))
        (folder / "here").mkdir(parents=True, exist_ok=True)
        return Places(self.here, {**below, self.here: str(folder / "here")})


@dataclass(frozen=True)
class Places:
    """Paths on this machine for files of the requesting machine.

    Parameters
    ----------
    here : str
        The folder of the request on the requesting machine.
    folders : Mapping[str, str]
        This machine's folder by the requesting machine's folder; empty if they are the same.
    """

    here: str
    folders: Mapping[str, str]

    def of(self, path: Path) -> Path:
        """Return the local path of a file; relative paths start from the folder of the request."""
        there = os.path.normpath(os.path.join(self.here, path))
        for folder in sorted(self.folders, key=len, reverse=True):
            if there == folder or there.startswith(f"{folder}/"):
                return Path(self.folders[folder] + there[len(folder) :])
        return Path(there)

    def case(self, case: Case) -> Case:
        """Return a case with the local paths of its files."""
        return replace(
            case,
            path=self.of(case.path),
            sources={language: self.of(path) for language, path in case.sources.items()},
            verify=tuple(replace(rule, reference=self.of(rule.reference)) for rule in case.verify),
        )

    def roots(self, python: str) -> Roots:
        """Return the names of folders in keys, equal to those of the requesting machine."""
        apart = {name: folder for name, folder in self.folders.items() if name != self.here}
        return Roots.of(python, Path(self.folders.get(self.here, self.here)), apart)


def digests(cells: Iterable[Cell], here: Path) -> dict[str, str]:
    """Return the SHA-256 of every program by absolute path; with it, a machine checks whether it has the programs."""
    sources = {here / path for case in _cases(cells) for path in case.sources.values()}
    return {os.path.normpath(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(sources)}


def has(programs: Mapping[str, str]) -> bool:
    """Return whether all programs exist here with the same content."""
    try:
        return all(hashlib.sha256(Path(path).read_bytes()).hexdigest() == digest for path, digest in programs.items())
    except OSError:
        return False


def collect(cells: Iterable[Cell], include: Iterable[Path], here: Path) -> Sent:
    """Return the user's files that programs of cells may read: their folders, and include directories.

    Raises
    ------
    UsageError
        If the files exceed the limits on size or number.
    """
    cells = list(cells)
    folders = {os.path.normpath(here / path): None for path in include}
    for case in _cases(cells):
        for path in (*case.sources.values(), *(rule.reference for rule in case.verify)):
            folders[os.path.normpath((here / path).parent)] = None
    for cell in cells:
        for path in cell.case.sources.values():
            for name in options_for(cell).get("include", ()):
                folders[os.path.normpath((here / path).parent / name)] = None
    found: dict[str, bytes] = {}
    total = 0
    for folder in folders:
        for file in _files(folder):
            if file not in found:
                found[file] = Path(file).read_bytes()
                total += len(found[file])
            if total > _MOST_BYTES or len(found) > _MOST_FILES:
                raise UsageError(
                    f"--dask: {folder} and the other folders of the programs hold more than {_MOST_BYTES >> 20} MiB or {_MOST_FILES:,} files, "
                    "too much to send to workers: run in a folder of the programs' own, or on a file system that the workers share"
                )
    return Sent(str(here), found)


def _cases(cells: Iterable[Cell]) -> Iterator[Case]:
    seen: set[int] = set()
    for cell in cells:
        if id(cell.case) not in seen:
            seen.add(id(cell.case))
            yield cell.case


def _files(folder: str) -> Iterator[str]:
    """Yield every readable regular file in a folder and its subfolders, except hidden files and ``__pycache__``."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(files):
            path = os.path.join(place, name)
            if not name.startswith(".") and os.path.isfile(path) and os.access(path, os.R_OK):
                yield path
