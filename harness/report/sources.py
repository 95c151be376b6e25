"""Files of a case, to be shown on its page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from harness.model import Case
from harness.report.text import clean

_SUFFIXES = frozenset((".toml", ".cu", ".cuh", ".h", ".hpp", ".py", ".cpp"))
_MAX_BYTES = 100_000


def files_of(case: str, folders: Iterable[Path], programs: Mapping[str, Case]) -> dict[str, str]:
    """Texts of the files of a case, out of the first folder that has it, or of a program that a configuration names: by its path in the project."""
    if case in programs:
        known = programs[case]
        files = [*known.sources.values(), *known.together]
        names = {os.path.relpath(path, known.root) if known.root else path.name: path for path in files}
        return {name: _read(path) for name, path in names.items() if path.is_file() and not path.is_symlink()}
    return next((texts for folder in folders if (texts := case_files(folder, case))), {})


def case_files(cases: Path | None, case: str) -> dict[str, str]:
    """Texts of the files in the case's folder by name, ``case.toml`` first; empty where there are none.

    Parameters
    ----------
    cases : Path or None
        The folder of cases.
    case : str
        Name of a case out of a record: not to be trusted with a path.
    """
    if cases is None:
        return {}
    root = cases.resolve()
    folder = (root / case).resolve() if "\0" not in case else root
    if folder == root or root not in folder.parents or not folder.is_dir():
        return {}
    return {path.name: _read(path) for path in _shown(folder.iterdir())}


def excerpt(files: Mapping[str, str], name: str, line: int | None, around: int = 3) -> list[tuple[int, str, bool]]:
    """Lines around the one that a diagnostic names: number, text, and whether it is the one; empty where it is not known.

    Parameters
    ----------
    files : Mapping[str, str]
        What `case_files` gives.
    name : str
        File of the diagnostic.
    line : int or None
        Its line, from 1.
    """
    lines = (files.get(name) or files.get(name.rpartition("/")[2], "")).splitlines()
    if not line or not 1 <= line <= len(lines):
        return []
    first = max(1, line - around)
    return [(number, lines[number - 1], number == line) for number in range(first, min(len(lines), line + around) + 1)]


def _shown(paths: Iterable[Path]) -> list[Path]:
    # A link could lead out of the folder of cases, and a report is published.
    found = [path for path in paths if path.suffix in _SUFFIXES and path.is_file() and not path.is_symlink()]
    return sorted(found, key=lambda path: (path.name != "case.toml", path.name))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    text = clean(data[:_MAX_BYTES].decode("utf-8", "replace"))
    return text if len(data) <= _MAX_BYTES else f"{text}\n… (cut)"
