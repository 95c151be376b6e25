"""``[libraries]``: header libraries by version, an axis of the case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from packaging.version import InvalidVersion, Version

from harness.cases.errors import Report, shown
from harness.cases.keys import IDENTIFIER, LIBRARY
from harness.cases.tables import check_table
from harness.errors import did_you_mean
from harness.model import HeaderLibrary
from harness.model.condition import NAMES
from harness.toolkits.libraries import LIBRARIES, library_from


def read_libraries(report: Report, value: Any) -> tuple[dict[str, HeaderLibrary], dict[str, list[str]]]:
    """Libraries by name, and the versions that each is wanted in; notes problems in `report`."""
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
            versions[name] = _versions(report, key, item, libraries.get(name))
        elif isinstance(item, dict):
            good = check_table(report, key, item, LIBRARY)
            if {"package", "include", "versions"} <= set(good):
                libraries[name] = library_from(name, good)
                versions[name] = _versions(report, (*key, "versions"), good["versions"], libraries[name])
        else:
            report.add(key, f'must be a list of versions such as ["3.5.1"], not {shown(item)}')
    return libraries, versions


def _versions(report: Report, key: tuple[str, ...], values: Sequence[Any], library: HeaderLibrary | None) -> list[str]:
    if not values:
        report.add(key, "has no versions")
    found: list[str] = []
    for item in values:
        try:
            Version(item)
            if item != item.strip():
                raise InvalidVersion
        except (InvalidVersion, TypeError):
            report.add(key, f'{shown(item)} is not a version such as "3.5.1"')
            continue
        problem = library.problem(item) if library else None
        if problem:
            report.add(key, problem)
        elif item in found:
            report.add(key, f"has {shown(item)} twice")
        else:
            found.append(item)
    return found
