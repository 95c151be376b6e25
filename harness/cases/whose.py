"""The project a case belongs to; it disambiguates cases with the same name in different projects.

The name has to be the same in every checkout, and after a folder was renamed, so it is looked for where that does not show: what the project calls
itself, then what its repository is called. Where nothing says it, there is none.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.cases.own import is_copy, packaged_cases
from harness.cases.places import project_of
from harness.checkouts import GitError, git

OURS = "cumatrix"
"""The project whose cases have no name in front: cumatrix itself."""

VARIABLE, NONE = "CUMATRIX_PROJECT", "none"
"""Overrides the files; ``none`` for no name."""

_SECONDS = 5.0
_LONGEST = 100


def project_of_case(folder: Path, name: str) -> str:
    """Name of the project that a case belongs to; empty for cumatrix's own cases, and copies that give the same cells.

    Parameters
    ----------
    folder : Path
        The case's, with a ``case.toml`` that can be read.
    name : str
        ``wmma/fragments``.
    """
    if folder.resolve().is_relative_to(packaged_cases()):
        return ""
    found = project_at(project_of(folder))
    return "" if found and is_copy(folder, name) else found


def project_at(folder: Path, stated: str = "") -> str:
    """Name of the project with this top folder, or that contains this folder.

    The first of: ``CUMATRIX_PROJECT``, ``project`` of the nearest ``cumatrix.toml`` or ``[tool.cumatrix]``, ``name`` of ``[project]`` in the nearest ``pyproject.toml``, the name of git's
    remote ``origin``. Empty for cumatrix, and where there is none of these.

    Parameters
    ----------
    folder : Path
        A folder that is there.
    stated : str
        What a configuration calls the project that has been read already.
    """
    if said := _plain(os.environ.get(VARIABLE, "")):
        return "" if said in (NONE, OURS) else said
    place = folder.resolve()
    above = list(_within(place))
    tables = [table for each in above for table in _settings(each)]
    told = stated or next((name for table in tables if (name := _text(table, "project"))), "")
    names = (_text(_toml(each / "pyproject.toml").get("project"), "name") for each in above)
    told = told or next(filter(None, names), "")
    top = above[-1] if (above[-1] / ".git").exists() else None
    found = _plain(told) or (_repository(top) if top else "")
    return "" if found == OURS else found


def _within(folder: Path) -> Iterator[Path]:
    """The folder, and those above it up to the top of a repository; by itself where there is none."""
    above = [folder, *folder.parents]
    top = next((number for number, each in enumerate(above) if (each / ".git").exists()), 0)
    return iter(above[: top + 1])


def _settings(folder: Path) -> Iterator[Any]:
    yield _toml(folder / "cumatrix.toml")
    tools = _toml(folder / "pyproject.toml").get("tool")
    yield tools.get("cumatrix") if isinstance(tools, dict) else None


def _text(table: Any, key: str) -> str:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, str) else ""


def _toml(path: Path) -> Mapping[str, Any]:
    """Read a file of a project; an empty table if it is missing or damaged: its user reports that."""
    try:
        return _read(path, path.stat().st_mtime_ns)
    except OSError:
        return {}


@lru_cache(maxsize=64)
def _read(path: Path, _changed: int) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return {}


@lru_cache(maxsize=64)
def _repository(top: Path) -> str:
    """Name of a repository, as its remote ``origin`` has it; empty without one."""
    try:
        url = git("config", "--get", "remote.origin.url", folder=top, seconds=_SECONDS).strip()
    except GitError:
        return ""
    return _plain(re.split(r"[/:\\]", url.rstrip("/\\"))[-1].removesuffix(".git"))


def _plain(name: str) -> str:
    """A name as ids have it: without spaces, slashes and the like."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:_LONGEST]
