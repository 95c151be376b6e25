"""The source files of a case or a configuration, their kernels, and the digests of bundled cases."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import harness
from harness.cases.schema import SOURCE
from harness.cases.toml import Report, shown
from harness.cases.values import IDENTIFIER, SIGNATURES, check_table
from harness.errors import did_you_mean

FILE_NAME = "case.toml"
"""File name of a case."""

MARKS = ("cumatrix.toml", "pyproject.toml", "setup.py", "CMakeLists.txt", ".git")
"""Files that mark the top folder of a project."""

_PATTERN = frozenset("*?[")
_MOST = 10_000


def project_of(folder: Path) -> Path:
    """Return the project that a case belongs to.

    The project is the nearest parent folder with one of `MARKS`. Without one, it is the parent of the folder of cases.

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
    """Return the problem of a file name; None if the file is usable.

    Parameters
    ----------
    folder : Path
        Folder of the case, the base of the name.
    text : str
        File name.
    project : Path, optional
        Folder that must contain the file; by default the case's folder.
    """
    path = folder / text
    try:
        if message := _outside(folder, text, project):
            return message
        if not path.is_file():
            return f"there is no file {shown(text)}, seen from the case's folder{_sibling(path)}"
        with open(path, "rb"):
            return None
    except (OSError, RuntimeError, ValueError):
        return f"{shown(text)} cannot be read"


def wrong_folder(folder: Path, text: str, project: Path | None = None) -> str | None:
    """Return the problem of a folder name; None if the folder is usable. See `wrong_file`."""
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
    """Return the names of files that patterns match, each once and in order, relative to `folder`.

    Hidden folders are skipped.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        names = _expand(folder, pattern) if is_pattern(pattern) else [pattern]
        here = []
        for name in names:
            if (folder / name).is_file():
                here.append(PurePosixPath(os.path.normpath(name)).as_posix())
            if len(here) > _MOST:
                break
        found |= dict.fromkeys(sorted(here))
    return list(found)


def _expand(folder: Path, pattern: str) -> Iterator[str]:
    """Expand a pattern. ``**`` does not follow links, which may form a circle or lead across the whole machine."""
    head, star, rest = f"{pattern}/*".partition("**/") if pattern.endswith("**") else pattern.partition("**/")
    if not star:
        yield from glob.iglob(pattern, root_dir=folder)
        return
    for start in glob.iglob(head, root_dir=folder) if head else [""]:
        for place, folders, _ in os.walk(folder / start):
            folders[:] = [name for name in folders if not name.startswith(".")]
            yield from (os.path.join(os.path.relpath(place, folder), name) for name in _expand(Path(place), rest))


def _outside(folder: Path, text: str, project: Path | None) -> str | None:
    posix = PurePosixPath(text)
    if "\\" in text or PureWindowsPath(text).drive:
        return f"write folders with /, not {shown(text)}"
    home, what = (project, "project") if project else (folder, "case's folder")
    inside = Path(os.path.normpath(folder.resolve() / text)).is_relative_to(home.resolve())
    if posix.is_absolute() or not inside or (".." in posix.parts and not project):
        where = f" ({home})" if project else ""
        return f"must be in the {what}{where}, not at {shown(text)}"
    if not (folder / text).resolve().is_relative_to(home.resolve()):
        return f"{shown(text)} is a link that leads out of the {what}"
    return None


def _sibling(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    files = sorted(item.name for item in path.parent.iterdir() if item.is_file() and item.suffix != ".toml")
    hint = did_you_mean(path.name, files)
    return hint if hint.startswith(" (did") else ""


def _wanted(language: str) -> str:
    form = SIGNATURES[language]
    return f'{{ scale = "{form.example}" }}, each kernel with its {form.of} signature'


@dataclass(frozen=True)
class Programs:
    """The content of ``[source]`` and ``[entry]``.

    Parameters
    ----------
    sources : dict
        Program by language; the first file of several.
    together : tuple of Path
        Further files of the program.
    entries : dict
        Kernels by language, with their signatures.
    root : Path or None
        Project, if a file is outside the case's folder.
    """

    sources: dict[str, Path]
    together: tuple[Path, ...]
    entries: dict[str, dict[str, str]]
    root: Path | None


def read_programs(report: Report, folder: Path, good: Mapping[str, Any]) -> Programs:
    """Read both tables and add problems to `report`."""
    named = check_table(report, ("source",), good.get("source", {}), SOURCE)
    if good.get("source") == {}:
        report.add(("source",), 'names no program: write cuda = "kernel.cu" or python = "kernel.py"')
    project = project_of(folder)
    files = {language: _files(report, folder, language, value, project) for language, value in named.items()}
    files = {language: names for language, names in files.items() if names}
    several = [language for language, names in files.items() if len(names) > 1]
    if len(several) > 1:
        report.add(("source",), "cuda and torch cannot both have several files: make two cases")
    outside = any(".." in PurePosixPath(name).parts for names in files.values() for name in names)
    return Programs(
        sources={language: _place(folder, names[0]) for language, names in files.items()},
        together=tuple(_place(folder, name) for language in several for name in files[language][1:]),
        entries=_entries(report, good.get("entry", {}), set(files)),
        root=project if outside else None,
    )


def _place(folder: Path, name: str) -> Path:
    """Return the path of a file, with ``..`` resolved."""
    return Path(os.path.normpath(folder / name)) if ".." in PurePosixPath(name).parts else folder / name


def _files(report: Report, folder: Path, language: str, value: str | list[str], project: Path) -> list[str]:
    """Return the names of a program's files relative to `folder`; report missing files and files outside the project."""
    names: dict[str, None] = {}
    texts = [value] if isinstance(value, str) else value
    if not texts:
        report.add(("source", language), "names no file")
    for text in texts:
        found = matching(folder, [text]) if is_pattern(text) else [text]
        if not found:
            report.add(("source", language), f"no file matches {shown(text)}")
        for name in found:
            if message := wrong_file(folder, name, project):
                report.add(("source", language), message)
            else:
                names[name] = None
    return list(names)


def _entries(report: Report, value: Any, languages: Collection[str]) -> dict[str, dict[str, str]]:
    """Read kernels and their signatures by language."""
    if not isinstance(value, dict):
        report.add(("entry",), f"must be a table, not {shown(value)}")
        return {}
    entries: dict[str, dict[str, str]] = {}
    for language, kernels in value.items():
        if language not in SOURCE:
            report.add(("entry", language), f"unknown key{did_you_mean(language, SOURCE)}")
        elif language not in languages:
            report.add(("entry", language), f"the case has no source.{language}")
        elif language not in SIGNATURES:
            entries[language] = _names(report, language, kernels)
        else:
            entries[language] = _signatures(report, language, kernels)
    for language in SIGNATURES:
        if language in languages and language not in value:
            report.add(("entry", language), f"is missing: write {_wanted(language)}")
    return entries


def _names(report: Report, language: str, kernels: Any) -> dict[str, str]:
    key = ("entry", language)
    if not isinstance(kernels, list) or not kernels:
        report.add(key, f'must be a list of kernels such as ["scale"], not {shown(kernels)}')
        return {}
    for index, name in enumerate(kernels):
        if not isinstance(name, str) or not re.fullmatch(IDENTIFIER[1:-1], name):
            report.add(key, f'{shown(name)} is not the name of an extern "C" kernel')
        elif name in kernels[:index]:
            report.add(key, f"has {shown(name)} twice")
    return {name: "" for name in kernels if isinstance(name, str)}


def _signatures(report: Report, language: str, kernels: Any) -> dict[str, str]:
    key, form = ("entry", language), SIGNATURES[language]
    if not isinstance(kernels, dict) or not kernels:
        report.add(key, f"must be {_wanted(language)}, not {shown(kernels)}")
        return {}
    good = {}
    for name, signature in kernels.items():
        if not re.fullmatch(IDENTIFIER[1:-1], name):
            report.add((*key, name), f"{shown(name)} is not the name of a function")
        elif not isinstance(signature, str) or not re.fullmatch(form.pattern[1:-1], signature):
            report.add((*key, name), f'must be a signature such as "{form.example}", not {shown(signature)}')
        else:
            good[name] = signature
    return good


_WITHOUT_OUTCOME = frozenset(("title", "description", "features", "links", "heavy", "kernels", "expect", "verify"))
"""Keys of ``case.toml`` that do not affect any compiler's outcome."""

_DIGITS = 16


@cache
def packaged_cases() -> Path:
    """Return the folder of the bundled cases: inside the package in a wheel, next to it in a checkout."""
    package = Path(harness.__file__).resolve().parent
    inside = package / "case_library"
    return inside if inside.is_dir() else package.parent / "cases"


def is_copy(folder: Path, name: str) -> bool:
    """Return whether a folder contains cumatrix's own case of that name, or a copy with the same cells.

    Parameters
    ----------
    folder : Path
        Folder of the case, with a readable ``case.toml``.
    name : str
        ``wmma/fragments``.
    """
    own = packaged_cases() / name
    if not (own / "case.toml").is_file():
        return False
    try:
        return folder.resolve() == own or _contents(folder) == _contents(own) or digest_of(folder) == digest_of(own)
    except (OSError, ValueError):
        return False  # errors are reported when the case is loaded


def digest_of(folder: Path) -> str:
    """Return the digest of the case in a folder: of its files, and of ``case.toml`` without titles and expectations.

    Parameters
    ----------
    folder : Path
        Folder of the case, with a readable ``case.toml``.
    """
    digest = hashlib.sha256()
    for name, data in _contents(folder).items():
        if name == "case.toml":
            table = tomllib.loads(data.decode())
            kept = {key: value for key, value in table.items() if key not in _WITHOUT_OUTCOME}
            counts = json.dumps(kept, sort_keys=True, default=str).encode()
        else:
            counts = data
        digest.update(f"{name}\0{len(counts)}\0".encode() + counts)
    return digest.hexdigest()[:_DIGITS]


def _contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files below a folder, without the caches of Python and editors."""
    found = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder)
        if not any(part.startswith((".", "__pycache__")) for part in name.parts):
            found[str(name)] = path.read_bytes()
    return found
