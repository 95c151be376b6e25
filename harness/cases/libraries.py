"""``[libraries]``: header libraries by version, an axis of the case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.cases.errors import Report, shown
from harness.cases.keys import LIBRARY
from harness.cases.kinds import IDENTIFIER
from harness.cases.tables import check_table
from harness.errors import UsageError, did_you_mean
from harness.model import HeaderLibrary
from harness.model.condition import NAMES
from harness.toolkits.libraries import LIBRARIES, is_release, library_from
from harness.toolkits.sources import read_source


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
