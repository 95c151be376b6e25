"""Digests of a folder of cases: what their cells follow from."""

from __future__ import annotations

from pathlib import Path

from harness.cases.own import digest_of
from harness.cases.select import find_cases


def digests_of(cases: Path) -> dict[str, str]:
    """Digest by case, of a folder of cases; none where there is none."""
    if not cases.is_dir():
        return {}
    return {str(path.parent.relative_to(cases)): digest_of(path.parent) for path in find_cases(cases)}
