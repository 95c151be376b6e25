"""Discovery and selection of cases in a folder, and the topics of the bundled library."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cases.sources import FILE_NAME, packaged_cases
from harness.cases.toml import CaseError, Problem
from harness.errors import did_you_mean
from harness.tables import read_table

if TYPE_CHECKING:
    from harness.model.case import Case

Roots = Path | Sequence[Path]

DEFAULT = Path("cases")
"""Default folder of cases."""


def find_cases(root: Roots, selection: Sequence[str] = ()) -> list[Path]:
    """Return the paths of the selected ``case.toml`` files, sorted by name, without reading them.

    Parameters
    ----------
    root : Path or sequence of Path
        One or several folders of cases.
    selection : sequence of str
        Names (``wmma/fragments``), patterns (``wmma/*``), topics, folders or ``case.toml`` files; all if empty.

    Raises
    ------
    CaseError
        If the folder is missing, or an item of `selection` matches nothing.
    """
    return [path for path, _ in chosen_files(root, selection)]


def chosen_files(root: Roots, selection: Sequence[str] = (), *, needed: bool = True) -> list[tuple[Path, Path]]:
    """Like `find_cases`, but return each file with its folder of cases; a missing folder is empty unless `needed`."""
    found = _found(root, needed=needed)
    return [found[name] for name in _names(found, selection)]


def load_cases(root: Roots, selection: Sequence[str] = (), programs: Sequence[Case] = ()) -> list[Case]:
    """Read the selected cases, sorted by name.

    Parameters
    ----------
    root, selection
        As for `find_cases`. Without the default folder, names select cumatrix's own cases.
    programs : sequence of Case
        Programs of a configuration, which `selection` may also name. With programs, no folder of cases is required.

    Raises
    ------
    CaseError
        As `find_cases`, or with the problems of all selected files.
    """
    from harness.cases.load import load_case  # completion of names does not need this import

    found = _found(_or_bundled(root, selection, programs), needed=not programs)
    own = {case.name: case for case in programs}
    cases: list[Case] = []
    problems: list[Problem] = []
    for name in _names(found, selection, own):
        if name in own:
            cases.append(own[name])
            continue
        try:
            cases.append(load_case(*found[name]))
        except CaseError as error:
            problems += error.problems
    if problems:
        raise CaseError(list(dict.fromkeys(problems)))  # each case below a faults.toml reports the file's problems
    return cases


def names_of(root: Roots, selection: Sequence[str], programs: Sequence[Case] = ()) -> list[str]:
    """Return the names of the selected cases without reading them; see `load_cases`."""
    found = _found(_or_bundled(root, selection, programs), needed=not programs)
    return _names(found, selection, {case.name: case for case in programs})


def _or_bundled(root: Roots, selection: Sequence[str], programs: Sequence[Case]) -> Roots:
    """Return cumatrix's own cases if a selection is given, without the default folder and programs; else `root`."""
    roots = [root] if isinstance(root, Path) else list(root)
    missing = roots == [DEFAULT] and not DEFAULT.exists()
    return packaged_cases() if selection and missing and not programs else root


def _found(root: Roots, *, needed: bool = True) -> dict[str, tuple[Path, Path]]:
    """Return the file and the folder of cases by the name of the case."""
    roots = [root] if isinstance(root, Path) else list(root)
    found: dict[str, tuple[Path, Path]] = {}
    for each in roots:
        if not each.is_dir():
            if not needed:
                continue
            where = "" if each == DEFAULT else f" {shlex.quote(str(each))}"
            raise CaseError(
                f"there is no folder of cases at {each}: `cumatrix cases copy{where}` puts cumatrix's own cases there, "
                "and `cumatrix init` looks for programs in this project"
            )
        for path in _walk(each):
            name = _name(path, each)
            if name in found:
                raise CaseError(f"{name} is a case in {found[name][1]} and in {each}: rename one of them")
            found[name] = (path, each)
    return found


def _names(
    found: Mapping[str, tuple[Path, Path]], selection: Sequence[str], programs: Mapping[str, Case] | None = None
) -> list[str]:
    programs = programs or {}
    known = {name: path for name, (path, _) in found.items()} | {name: case.path for name, case in programs.items()}
    if not selection:
        return sorted(known)
    chosen: set[str] = set()
    for item in selection:
        names = {name for root in {root for _, root in found.values()} for name in _chosen(item, root, found)}
        names |= _programs(item, programs)
        if not names:
            raise CaseError(f'no case is called "{item}"{_hint(item, known)}')
        chosen |= names
    return sorted(chosen)


def _programs(item: str, programs: Mapping[str, Case]) -> set[str]:
    """Select programs of a configuration by name, pattern, or the path of a file or folder."""
    wanted = item.strip().rstrip("/").removeprefix("./")
    names = {name for name in programs if name == wanted or name.startswith(f"{wanted}/") or fnmatchcase(name, wanted)}
    if names or not wanted or "\0" in wanted:
        return names
    place = Path(os.path.abspath(wanted))
    files = {name: [*case.sources.values(), *case.together] for name, case in programs.items()}
    return {name for name, paths in files.items() if any(path.absolute().is_relative_to(place) for path in paths)}


def _hint(item: str, found: dict[str, Path]) -> str:
    for name in found:
        if item == name.split("/")[-1]:
            return f' (did you mean "{name}"?)'
    return did_you_mean(item, sorted({*found, *(name.split("/")[0] for name in found)}))


def _walk(root: Path) -> list[Path]:
    """Return every ``case.toml`` below `root`, without following links to folders or entering hidden folders."""
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        if FILE_NAME in files:
            found.append(Path(folder) / FILE_NAME)
    return found


def _name(path: Path, root: Path) -> str:
    return path.parent.relative_to(root).as_posix()


def _chosen(item: str, root: Path, all_found: Mapping[str, tuple[Path, Path]]) -> set[str]:
    found = [name for name, (_, home) in all_found.items() if home == root]
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


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic: name of its folder, title, and one line of description."""

    name: str
    title: str
    about: str


@cache
def library_topics() -> Mapping[str, Topic]:
    """Topics of the library by name."""
    return {table["name"]: Topic(**table) for table in read_table("cases/topics.toml")["topic"]}


def topic_rank(name: str) -> int:
    """Return the position of a topic in lists; other topics follow those of the library."""
    known = list(library_topics())
    return known.index(name) if name in library_topics() else len(known)


_THREAD = re.compile(r"/(issues|pull|discussions)/\d+")


def case_rank(topic: str, links: Iterable[str]) -> tuple[int, str, int]:
    """Return the sorting key of a case in lists: by topic, then by the number of upstream threads, most first."""
    threads = {link.partition("#")[0] for link in links if _THREAD.search(link)}
    return topic_rank(topic), topic, -len(threads)
