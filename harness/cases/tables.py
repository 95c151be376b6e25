"""Tables of a case file against the keys that they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.cases.errors import Report, shown
from harness.cases.kinds import Key, wrong_value
from harness.errors import did_you_mean


def check_table(report: Report, key: tuple[str | int, ...], value: Any, keys: Mapping[str, Key]) -> dict[str, Any]:
    """Entries of a table that are right; notes unknown and missing keys and wrong values."""
    if not isinstance(value, dict):
        report.add(key, f"must be a table, not {shown(value)}")
        return {}
    good = {}
    for name, item in value.items():
        if name not in keys:
            report.add((*key, name), f"unknown key{did_you_mean(name, keys)}")
        elif message := wrong_value(keys[name], item):
            report.add((*key, name), message)
        else:
            good[name] = item
    for name, entry in keys.items():
        if entry.required and name not in value:
            report.add((*key, name), "is missing")
    return good
