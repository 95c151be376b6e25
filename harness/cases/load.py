"""Load a case from ``case.toml``: its variants (all combinations of parameters) and its project.

The project's name is the same in every checkout and after a rename of the folder. It comes from the project's own
files, then from the name of its repository.
"""

from __future__ import annotations

import itertools
import keyword
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.cases.rules import faults_of, read_rules, required_kernels
from harness.cases.schema import CASE, LIBRARY
from harness.cases.sources import FILE_NAME, is_copy, packaged_cases, project_of, read_programs
from harness.cases.toml import Key, Report, check_integers, failure, parse_toml, read_toml_text, shown
from harness.cases.values import IDENTIFIER, LABEL, NAME, check_table
from harness.errors import UsageError, did_you_mean
from harness.git import GitError, git
from harness.model import HeaderLibrary
from harness.model.case import Case, Expectation, OptionRule, Scalar, Variant, spell
from harness.model.condition import NAMES, Version
from harness.toolkits.header_libraries import LIBRARIES, is_release, library_from
from harness.toolkits.header_sources import read_source


def read_libraries(report: Report, value: Any, base: Path) -> tuple[dict[str, HeaderLibrary], dict[str, list[str]]]:
    """Return libraries by name, and the requested versions, folders and revisions of each; add problems to `report`.

    Relative folders start from `base`, the folder of the case.
    """
    if not isinstance(value, dict):
        report.add(("libraries",), f'must be a table such as cutlass = ["3.5.1"], not {shown(value)}')
        return {}, {}
    libraries: dict[str, HeaderLibrary] = {}
    versions: dict[str, list[str]] = {}
    for name, item in value.items():
        key = ("libraries", name)
        if not re.fullmatch(IDENTIFIER[1:-1], name) or name in NAMES:
            report.add(key, "cannot be the name of a library: conditions could not use it")
        elif isinstance(item, list):
            if name in LIBRARIES:
                libraries[name] = LIBRARIES[name]
            else:
                report.add(
                    key,
                    f"unknown library{did_you_mean(name, LIBRARIES)}; for another one write its package, include and versions",
                )
            versions[name] = _versions(report, key, item, libraries.get(name), base)
        elif isinstance(item, dict):
            good = check_table(report, key, item, LIBRARY)
            if "package" not in item and any(
                isinstance(each, str) and is_release(each) for each in good.get("versions", [])
            ):
                report.add((*key, "package"), "is missing: which wheel on PyPI has its versions")
            elif {"include", "versions"} <= set(good) and good.keys() == item.keys():
                libraries[name] = library_from(name, good)
                versions[name] = _versions(report, (*key, "versions"), good["versions"], libraries[name], base)
        else:
            report.add(key, f'must be a list of versions such as ["3.5.1"], not {shown(item)}')
    return libraries, versions


def _versions(
    report: Report, key: tuple[str, ...], values: Sequence[Any], library: HeaderLibrary | None, base: Path
) -> list[str]:
    if not values:
        report.add(key, "has no versions")
    found: list[str] = []
    for item in values:
        if not isinstance(item, str):
            report.add(key, f'{shown(item)} is not a version such as "3.5.1"')
        elif message := _wrong(item, library, base):
            report.add(key, message)
        elif item in found:
            report.add(key, f"has {shown(item)} twice")
        else:
            found.append(item)
    return found


def _wrong(text: str, library: HeaderLibrary | None, base: Path) -> str | None:
    if is_release(text):
        return library.problem(text) if library else None
    try:
        read_source(text, base)
    except UsageError as error:
        return str(error)
    return None


MAX_VARIANTS = 10_000
_RESERVED = {"true", "false", "JIT_OPTIONS"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NO_LABEL = "cannot be a variant's name: use letters, digits and _ . : + -"

Choice = tuple[Scalar, Mapping[str, Scalar]]


def read_variants(
    report: Report, folder: Path, good: Mapping[str, Any]
) -> tuple[dict[str, HeaderLibrary], tuple[Variant, ...], dict[str, list[Any]]]:
    """Return header libraries by name, variants, and the possible values of each parameter; add problems to `report`.

    Versions of ``[libraries]`` form an axis in front of the case's own parameters.
    """
    libraries, versions = read_libraries(report, good.get("libraries", {}), folder)
    return libraries, *_variants(report, good.get("parameters", {}), versions)


def _variants(
    report: Report, value: Any, versions: Mapping[str, Sequence[str]]
) -> tuple[tuple[Variant, ...], dict[str, list[Any]]]:
    if not isinstance(value, dict):
        report.add(("parameters",), f"must be a table, not {shown(value)}")
        return (), {}
    choices: dict[str, list[Choice]] = {name: [(version, {}) for version in items] for name, items in versions.items()}
    for name, values in value.items():
        key: Key = ("parameters", name)
        if message := _wrong_name(name):
            report.add(key, message)
        elif name in versions:
            report.add(key, "is the name of a library of this case: choose another name")
        elif isinstance(values, dict):
            choices[name] = _labelled(report, key, values)
        elif isinstance(values, list):
            choices[name] = _plain_choices(report, key, name, values)
        else:
            report.add(key, f"must be a list of values or a table of labels, not {shown(values)}")
    _same_macro_twice(report, choices)
    count = math.prod(len(items) for items in choices.values())
    if count > MAX_VARIANTS:
        report.add(("parameters",), f"these are {count} variants; a case may have {MAX_VARIANTS}")
        return (), {}
    variants = tuple(
        Variant(
            labels=dict(zip(choices, (label for label, _ in row), strict=True)),
            definitions={name: item for _, table in row for name, item in table.items()},
            libraries={name: str(label) for name, (label, _) in zip(choices, row, strict=True) if name in versions},
        )
        for row in itertools.product(*choices.values())
    )
    known = {name: [label for label, _ in items] for name, items in choices.items()}
    # The version of a folder or a revision is known only after a look-up.
    numbers = {name: [Version(item if is_release(item) else "0") for item in items] for name, items in versions.items()}
    return variants, {**known, **numbers}


def _wrong_name(name: str) -> str | None:
    if message := _wrong_identifier(name):
        return message
    if name in NAMES:
        return f'conditions already know "{name}" as something else: choose another name'
    return None


def _wrong_identifier(name: str) -> str | None:
    if not re.match(IDENTIFIER, name) or "\n" in name:
        return f"{shown(name)} is not an identifier (letters, digits and _)"
    if keyword.iskeyword(name) or name in _RESERVED:
        return f'"{name}" means something else already: choose another name'
    return None


def _plain_choices(report: Report, key: Key, name: str, values: list[Any]) -> list[Choice]:
    """Read values that are both labels and definitions: ``bytes = [49152, 49156]`` defines BYTES."""
    if not values:
        report.add(key, "has no values")
    kinds = {type(item) for item in values if not _wrong_scalar(item)}
    if len(kinds) > 1:
        report.add(key, "mixes kinds of values: write texts only, or whole numbers, fractions, true and false")
        return []
    items: list[Choice] = []
    for item in values:
        message = _wrong_scalar(item)
        if not message and isinstance(item, str) and not re.fullmatch(LABEL[1:-1], item):
            message = f"{shown(item)} {_NO_LABEL}, or a table of labels"
        if not message and any(spell(item) == spell(label) for label, _ in items):
            message = f"has {shown(item)} twice"
        if message:
            report.add(key, message)
        else:
            items.append((item, {name.upper(): item}))
    return items


def _labelled(report: Report, key: Key, values: dict[str, Any]) -> list[Choice]:
    """Read labels with a table of definitions each: ``half = { ELEMENT = "half", M = 16 }``."""
    if not values:
        report.add(key, "has no values")
    items: list[Choice] = []
    for label, table in values.items():
        if not re.fullmatch(LABEL[1:-1], label):
            report.add((*key, label), f"{shown(label)} {_NO_LABEL}")
        elif not isinstance(table, dict):
            report.add((*key, label), f"must be a table of definitions, as in {{ M = 16 }}, not {shown(table)}")
        else:
            for name, item in table.items():
                if message := _wrong_identifier(name) or _wrong_scalar(item):
                    report.add((*key, label, name), message)
            items.append((label, table))
    return items


def _wrong_scalar(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return None if -(2**63) <= value < 2**64 else f"{shown(value)} does not fit 64 bits"
        case float():
            return None if math.isfinite(value) else f"{value} is not a number that a program can be given"
        case str():
            return f"{shown(value)} has control characters" if _CONTROL.search(value) else None
    return f"must be a text, a number, true or false, not {shown(value)}"


def _same_macro_twice(report: Report, choices: Mapping[str, list[Choice]]) -> None:
    owners: dict[str, str] = {}
    for parameter, items in choices.items():
        for name in {name for _, table in items for name in table}:
            other = owners.setdefault(name, parameter)
            if other != parameter:
                report.add(("parameters", parameter), f'defines {name}, which parameter "{other}" defines too')


OURS = "cumatrix"
"""Name of cumatrix itself, which is omitted in front of cases."""

VARIABLE, NONE = "CUMATRIX_PROJECT", "none"
"""Environment variable that overrides the files, and its value for no name."""

_SECONDS = 5.0
_LONGEST = 100


def project_of_case(folder: Path, name: str) -> str:
    """Return the name of the project that a case belongs to.

    The name is empty for cumatrix's own cases, and for copies with the same cells.

    Parameters
    ----------
    folder : Path
        Folder of the case, with a readable ``case.toml``.
    name : str
        ``wmma/fragments``.
    """
    if folder.resolve().is_relative_to(packaged_cases()):
        return ""
    found = project_at(project_of(folder))
    return "" if found and is_copy(folder, name) else found


def project_at(folder: Path, stated: str = "") -> str:
    """Return the name of the project at a folder, or of the project that contains the folder.

    The sources in order: ``CUMATRIX_PROJECT``, ``project`` of the nearest ``cumatrix.toml`` or ``[tool.cumatrix]``,
    ``name`` of ``[project]`` in the nearest ``pyproject.toml``, and the name of git's remote ``origin``. The name is
    empty for cumatrix, and without any of these.

    Parameters
    ----------
    folder : Path
        An existing folder.
    stated : str
        Project name in a configuration that the caller has read.
    """
    if variable := _plain(os.environ.get(VARIABLE, "")):
        return "" if variable in (NONE, OURS) else variable
    place = folder.resolve()
    above = list(_within(place))
    tables = [table for each in above for table in _settings(each)]
    given_name = stated or next((name for table in tables if (name := _text(table, "project"))), "")
    names = (_text(_toml(each / "pyproject.toml").get("project"), "name") for each in above)
    given_name = given_name or next(filter(None, names), "")
    top = above[-1] if (above[-1] / ".git").exists() else None
    found = _plain(given_name) or (_repository(top) if top else "")
    return "" if found == OURS else found


def _within(folder: Path) -> Iterator[Path]:
    """Return the folder and its parents up to the top of the repository; outside a repository the folder alone."""
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
    """Read a TOML file of a project; empty if the file is missing or invalid, which its own reader reports."""
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
    """Return the name of a repository from its remote ``origin``; empty without one."""
    try:
        url = git("config", "--get", "remote.origin.url", folder=top, seconds=_SECONDS).strip()
    except GitError:
        return ""
    return _plain(re.split(r"[/:\\]", url.rstrip("/\\"))[-1].removesuffix(".git"))


def _plain(name: str) -> str:
    """Return a name in the spelling of ids: without spaces, slashes and similar characters."""
    return re.sub(r"[^\w.+-]+", "-", name).strip("-.")[:_LONGEST]


def load_case(path: Path, root: Path) -> Case:
    """Read and check a case.

    Parameters
    ----------
    path : Path
        Path of the ``case.toml``, ``root/<topic>/<name>/case.toml``.
    root : Path
        Folder of cases.

    Raises
    ------
    CaseError
        If the case has problems, all of them with file, line and key.
    """
    path = Path(path)
    return read_case(read_text(path, root), path, root)


def read_text(path: Path, root: Path) -> str:
    """Return the text of a case file without a byte order mark; raise `CaseError` as `load_case`."""
    return read_toml_text(path, display(path, root))


def read_case(text: str, path: Path, root: Path) -> Case:
    """Check the text of a case, which may differ from its file.

    Parameters
    ----------
    text : str
        Text of the ``case.toml``.
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
    """Return a path for messages, relative to the parent of the folder of cases: ``cases/wmma/x/case.toml``."""
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
    """Return the project if include directories are outside the case's folder."""
    named = [text for rule in rules for text in rule.values.get("include", ())]
    return project_of(folder) if any(".." in Path(text).parts for text in named) else None


def _known_backends(report: Report, names: list[str]) -> None:
    for index, name in enumerate(names):
        if name not in BACKENDS:
            report.add(("backends",), f"entry {index + 1}: unknown backend {shown(name)}{did_you_mean(name, BACKENDS)}")


def _name(path: Path, root: Path, shown_path: str) -> str:
    try:
        # The resolved path counts: a link out of the folder of cases is not a case.
        parts = path.resolve().relative_to(root.resolve()).parts
    except (ValueError, OSError, RuntimeError):
        raise failure(shown_path, f"is outside the folder of cases, {root}") from None
    if len(parts) != 3 or parts[-1] != FILE_NAME or not all(re.match(NAME, part) for part in parts[:2]):
        message = f"a case is at <topic>/<name>/{FILE_NAME} below the folder of cases"
        raise failure(shown_path, f"{message}, with names of lower-case letters, digits, - _ and .")
    return "/".join(parts[:2])
