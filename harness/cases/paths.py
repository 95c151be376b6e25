"""Files and folders that a case or a project's configuration names: where they may lie, and patterns of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from harness.cases.errors import shown
from harness.errors import did_you_mean

FILE_NAME = "case.toml"
"""The folder of all cases."""

MARKS = ("cumatrix.toml", "pyproject.toml", "setup.py", "CMakeLists.txt", ".git")
"""Files that mark the top folder of a project."""

_PATTERN = frozenset("*?[")
_MOST = 10_000


def project_of(folder: Path) -> Path:
    """The project that a case belongs to: the nearest folder above it with one of `MARKS`; without one, the folder that holds the folder of cases.

    Parameters
    ----------
    folder : Path
        The case's folder.
    """
    place = folder.resolve()
    above = [place, *place.parents][2:]
    return next(
        (each for each in above if any((each / mark).exists() for mark in MARKS)),
        place.parents[min(2, len(place.parents) - 1)],
    )


def wrong_file(folder: Path, text: str, project: Path | None = None) -> str | None:
    """The error in `text` as the name of a file, or None.

    Parameters
    ----------
    folder : Path
        The case's folder, the base of the name.
    text : str
        The name.
    project : Path, optional
        The folder that must contain it; by default, the case's own.
    """
    path = folder / text
    try:
        if message := _outside(folder, text, project):
            return message
        if not path.is_file():
            return f"there is no file {shown(text)}, seen from the case's folder{_beside(path)}"
        with open(path, "rb"):
            return None
    except (OSError, RuntimeError, ValueError):
        return f"{shown(text)} cannot be read"


def wrong_folder(folder: Path, text: str, project: Path | None = None) -> str | None:
    """The error in `text` as the name of a folder, or None; see `wrong_file`."""
    try:
        if message := _outside(folder, text, project):
            return message
        return None if (folder / text).is_dir() else f"there is no folder {shown(text)}, seen from the case's folder"
    except (OSError, RuntimeError, ValueError):
        return f"{shown(text)} cannot be read"


def is_pattern(text: str) -> bool:
    """Return whether a name is a pattern for several files: ``csrc/*.cu``, ``csrc/**/*.cu``."""
    return not _PATTERN.isdisjoint(text)


def matching(folder: Path, patterns: Iterable[str]) -> list[str]:
    """Names of the files that patterns match, each once and in order, relative to `folder`; hidden folders are not entered."""
    found: dict[str, None] = {}
    for pattern in patterns:
        names = _names(folder, pattern) if is_pattern(pattern) else [pattern]
        here = []
        for name in names:
            if (folder / name).is_file():
                here.append(PurePosixPath(os.path.normpath(name)).as_posix())
            if len(here) > _MOST:
                break
        found |= dict.fromkeys(sorted(here))
    return list(found)


def _names(folder: Path, pattern: str) -> Iterator[str]:
    """Expand a pattern. Its ``**`` does not follow links, which may lead in a circle or over the whole machine."""
    head, star, rest = f"{pattern}/*".partition("**/") if pattern.endswith("**") else pattern.partition("**/")
    if not star:
        yield from glob.iglob(pattern, root_dir=folder)
        return
    for start in glob.iglob(head, root_dir=folder) if head else [""]:
        for place, folders, _ in os.walk(folder / start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (os.path.join(os.path.relpath(place, folder), name) for name in _names(Path(place), rest))


def _outside(folder: Path, text: str, project: Path | None) -> str | None:
    posix = PurePosixPath(text)
    if "\\" in text or PureWindowsPath(text).drive:
        return f"write folders with /, not {shown(text)}"
    home, what = (project, "project") if project else (folder, "case's folder")
    inside = Path(os.path.normpath(folder.resolve() / text)).is_relative_to(home.resolve())
    if posix.is_absolute() or not inside or (".." in posix.parts and not project):
        where = f" ({home})" if project else ""
        return f"must lie in the {what}{where}, not at {shown(text)}"
    if not (folder / text).resolve().is_relative_to(home.resolve()):
        return f"{shown(text)} is a link that leads out of the {what}"
    return None


def _beside(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    files = sorted(item.name for item in path.parent.iterdir() if item.is_file() and item.suffix != ".toml")
    hint = did_you_mean(path.name, files)
    return hint if hint.startswith(" (did") else ""
