"""Reading one ``case.toml``.

The name has to be the same in every checkout, and after a folder was renamed, so it is looked for where that does not show: what the project calls
itself, then what its repository is called. Where nothing says it, there is none.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.bundled import is_copy, packaged_cases
from harness.cases.rules import faults_of, read_rules, required_kernels
from harness.cases.schema import CASE
from harness.cases.sources import FILE_NAME, project_of, read_programs
from harness.cases.toml import Report, check_integers, failure, parse_toml, read_toml_text, shown
from harness.cases.values import NAME, check_table
from harness.cases.variants import read_variants
from harness.errors import did_you_mean
from harness.git import GitError, git
from harness.model.case import Case, Expectation, OptionRule, Variant

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


def load_case(path: Path, root: Path) -> Case:
    """Read and check a case.

    Parameters
    ----------
    path : Path
        The ``case.toml``, at ``root/<topic>/<name>/case.toml``.
    root : Path
        The folder of cases.

    Raises
    ------
    CaseError
        With everything that is wrong, each with file, line and key.
    """
    path = Path(path)
    return read_case(read_text(path, root), path, root)


def read_text(path: Path, root: Path) -> str:
    """The text of a case file, without a byte order mark; raises `CaseError` as `load_case`."""
    return read_toml_text(path, display(path, root))


def read_case(text: str, path: Path, root: Path) -> Case:
    """Check the text of a case, which need not be in its file yet.

    Parameters
    ----------
    text : str
        Of the ``case.toml``.
    path, root : Path
        As for `load_case`.

    Raises
    ------
    CaseError
        As `load_case`.
    """
    shown_path = display(path, root)
    name = _name(path, Path(root), shown_path)
    data = parse_toml(text, shown_path)
    report = Report(shown_path, text)
    check_integers(report, data)
    report.close()
    case = _case(report, name, path, data, faults_of(path.parent.parent, Path(root)))
    report.close()
    assert case is not None  # a report without problems has a case
    return case


def display(path: Path, root: Path) -> str:
    """A path as messages show it: with the folder of cases in front, ``cases/wmma/x/case.toml``."""
    try:
        return (Path(root).resolve().name / path.resolve().relative_to(Path(root).resolve())).as_posix()
    except (AttributeError, TypeError, ValueError, OSError, RuntimeError):
        return path.as_posix()


def _case(report: Report, name: str, path: Path, data: dict[str, Any], faults: tuple[Expectation, ...]) -> Case | None:
    good = check_table(report, (), data, CASE)
    programs = read_programs(report, path.parent, good)
    _known_backends(report, good.get("backends", []))
    libraries, variants, parameters = read_variants(report, path.parent, good)
    kernels = list(dict.fromkeys(name for names in programs.entries.values() for name in names))
    rules = read_rules(report, path.parent, good, kernels, variants, parameters)
    if report.problems:
        return None
    return Case(
        name=name,
        path=path,
        title=good["title"],
        description=good.get("description", "").strip(),
        features=tuple(good.get("features", ())),
        links=tuple(good.get("links", ())),
        sources=programs.sources,
        together=programs.together,
        project=project_of_case(path.parent, name),
        root=programs.root or _project(rules["options"], path.parent),
        entries=programs.entries,
        kernels=required_kernels(good.get("kernels")),
        backends=tuple(good.get("backends", ())),
        heavy=good.get("heavy", False),
        host_compilers=tuple(dict.fromkeys(good.get("host_compilers", ()))),
        libraries=libraries,
        variants=variants or (Variant(labels={}, definitions={}),),
        faults=faults,
        **rules,
    )


def _project(rules: Iterable[OptionRule], folder: Path) -> Path | None:
    """The project, where include directories lie outside of the case's folder."""
    named = [text for rule in rules for text in rule.values.get("include", ())]
    return project_of(folder) if any(".." in Path(text).parts for text in named) else None


def _known_backends(report: Report, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name not in BACKENDS:
            report.add(("backends",), f"entry {index + 1}: unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}")


def _name(path: Path, root: Path, shown_path: str) -> str:
    try:
        # Where the file really lies counts: a link that leads out of the library is no case of it.
        parts = path.resolve().relative_to(root.resolve()).parts
    except (ValueError, OSError, RuntimeError):
        raise failure(shown_path, f"lies outside the folder of cases, {root}") from None
    if len(parts) != 3 or parts[-1] != FILE_NAME or not all(re.match(NAME, part) for part in parts[:2]):
        message = f"a case lies at <topic>/<name>/{FILE_NAME} below the folder of cases"
        raise failure(shown_path, f"{message}, with names of lower-case letters, digits, - _ and .")
    return "/".join(parts[:2])
