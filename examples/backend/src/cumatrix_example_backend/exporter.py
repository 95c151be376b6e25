"""An exporter: the cells in the Test Anything Protocol (https://testanything.org/tap-version-14-specification.html)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cumatrix import Results


def tap(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """The files to write, by name, of the records of a report."""
    results = Results(records)
    lines = ["TAP version 14", f"1..{len(results)}"]
    for number, cell in enumerate(results, 1):
        skipped = " # SKIP not applicable" if cell.status == "unsupported" else ""
        lines.append(f"{'ok' if cell.as_expected else 'not ok'} {number} - {cell.id}{skipped}")
    yield "matrix.tap", "\n".join([*lines, ""]).encode()
