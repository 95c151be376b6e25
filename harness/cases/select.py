"""Finding cases below a folder, and choosing some of them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from harness.cases.errors import CaseError, Problem
from harness.cases.load import FILE_NAME, load_case
from harness.errors import did_you_mean
from harness.model.case import Case


def find_cases(root: Path, selection: Sequence[str] = ()) -> list[Path]:
    """Paths of the chosen ``case.toml`` files, sorted, without reading them.

    Parameters
    ----------
    root : Path
        The folder of cases.
    selection : sequence of str
        Names (``wmma/fragments``), patterns (``wmma/*``), topics, folders or ``case.toml`` files; all
        when empty.

    Raises
    ------
    CaseError
        When the folder is not there, or an item of `selection` chooses nothing.
    """
    root = Path(root)
    if not root.is_dir():
        where = "" if root == Path("cases") else f" {shlex.quote(str(root))}"
        raise CaseError(
            f"there is no folder of cases at {root}: `cumatrix cases copy{where}` puts cumatrix's own cases there"
        )
    found = {_name(path, root): path for path in _walk(root)}
    if not selection:
        return [found[name] for name in sorted(found)]
    chosen: set[str] = set()
    for item in selection:
        names = _chosen(item, root, found)
        if not names:
            raise CaseError(f'no case is called "{item}"{_hint(item, found)}')
        chosen |= names
    return [found[name] for name in sorted(chosen)]


def load_cases(root: Path, selection: Sequence[str] = ()) -> list[Case]:
    """Read the chosen cases, sorted by name.

    Raises
    ------
    CaseError
        As `find_cases`, or with the problems of all chosen files.
    """
    cases: list[Case] = []
    problems: list[Problem] = []
    for path in find_cases(root, selection):
        try:
            cases.append(load_case(path, root))
        except CaseError as error:
            problems += error.problems
    if problems:
        raise CaseError(problems)
    return cases


def _hint(item: str, found: dict[str, Path]) -> str:
    for name in found:
        if item == name.split("/")[-1]:
            return f' (did you mean "{name}"?)'
    return did_you_mean(item, sorted({*found, *(name.split("/")[0] for name in found)}))


def _walk(root: Path) -> list[Path]:
    """Every ``case.toml`` below `root`; links to folders are not followed, hidden folders not entered."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        if FILE_NAME in files:
            found.append(Path(folder) / FILE_NAME)
    return found


def _name(path: Path, root: Path) -> str:
    return path.parent.relative_to(root).as_posix()


def _chosen(item: str, root: Path, found: dict[str, Path]) -> set[str]:
    wanted = item.strip().rstrip("/")
    names = {name for name in found if name.startswith(f"{wanted}/") or fnmatchcase(name, wanted)}
    if names or not wanted or "\0" in wanted:
        return names
    try:
        place = Path(wanted).resolve()
        inside = place.relative_to(root.resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):
        return set()
    inside = inside.removesuffix(FILE_NAME).rstrip("/")
    if not place.exists():
        return set()
    return {name for name in found if inside in ("", ".") or name == inside or name.startswith(f"{inside}/")}
