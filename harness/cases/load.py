"""Reading one ``case.toml``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.errors import Report, shown
from harness.cases.keys import CASE
from harness.cases.kinds import NAME
from harness.cases.parameters import read_variants
from harness.cases.places import FILE_NAME, project_of
from harness.cases.rules import read_rules
from harness.cases.sources import read_programs
from harness.cases.tables import check_table
from harness.cases.toml import check_integers, failure, parse_toml, read_toml_text
from harness.cases.whose import project_of_case
from harness.errors import did_you_mean
from harness.model.case import Case, OptionRule, Variant


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
    case = _case(report, name, path, data)
    report.close()
    assert case is not None  # a report without problems has a case
    return case


def display(path: Path, root: Path) -> str:
    """A path as messages show it: with the folder of cases in front, ``cases/wmma/x/case.toml``."""
    try:
        return (Path(root).resolve().name / path.resolve().relative_to(Path(root).resolve())).as_posix()
    except (AttributeError, TypeError, ValueError, OSError, RuntimeError):
        return path.as_posix()


def _case(report: Report, name: str, path: Path, data: dict[str, Any]) -> Case | None:
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
        backends=tuple(good.get("backends", ())),
        heavy=good.get("heavy", False),
        host_compilers=tuple(dict.fromkeys(good.get("host_compilers", ()))),
        libraries=libraries,
        variants=variants or (Variant(labels={}, definitions={}),),
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
