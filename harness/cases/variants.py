"""From ``[libraries]`` and ``[parameters]`` to variants: every combination of versions and of the case's own values."""

from __future__ import annotations

import itertools
import keyword
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cases.schema import LIBRARY
from harness.cases.toml import Key, Report, shown
from harness.cases.values import IDENTIFIER, LABEL, check_table
from harness.errors import UsageError, did_you_mean
from harness.model import HeaderLibrary
from harness.model.case import Scalar, Variant, spell
from harness.model.condition import NAMES, Version
from harness.toolkits.header_libraries import LIBRARIES, is_release, library_from
from harness.toolkits.header_sources import read_source


def read_libraries(report: Report, value: Any, base: Path) -> tuple[dict[str, HeaderLibrary], dict[str, list[str]]]:
    """Libraries by name, and what each is wanted in: versions, folders and revisions; notes problems in `report`.

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
    """Header libraries by name, variants, and for conditions the values that each parameter may have; notes problems in `report`.

    Versions of ``[libraries]`` are an axis as well, in front of the case's own.
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
            choices[name] = _plain(report, key, name, values)
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
    # What number a folder or a revision has, is known when it is looked up.
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


def _plain(report: Report, key: Key, name: str, values: list[Any]) -> list[Choice]:
    """Values that are labels and definitions at once: ``bytes = [49152, 49156]`` defines BYTES."""
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
    """Labels with a table of definitions each: ``half = { ELEMENT = "half", M = 16 }``."""
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
