"""Names of the pages of cases."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.report.groups import anchor_of


def page_names(cases: Iterable[str]) -> dict[str, str]:
    """Name of the page of each case: made of letters that are safe in paths and addresses, never twice the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for case in sorted(set(cases)):
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", case).strip(".-")[:80]
        # Case-insensitive file systems would put A.html and a.html into one file.
        if not stem or stem.lower() in taken:
            stem = f"{stem}-{anchor_of(case)}".lstrip("-")
        taken.add(stem.lower())
        names[case] = f"{stem}.html"
    return names
