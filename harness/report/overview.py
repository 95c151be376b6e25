"""The matrix at a glance: topics against toolchains, and the bar of all cells."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from harness.report.marks import MARKS, Mark
from harness.report.matrix import ToolchainColumn, toolchain_key, totals
from harness.report.matrix import parts as split


@dataclass(frozen=True)
class Part:
    """One kind of cell in a bar of 1000 units."""

    mark: Mark
    count: int
    start: float
    width: float


@dataclass(frozen=True)
class Sum:
    """The cells of one topic and toolchain."""

    cells: int
    bad: int
    unsupported: int
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Overview:
    """Sums by topic (down) and toolchain (across); None where nothing was planned."""

    toolchains: tuple[ToolchainColumn, ...]
    rows: tuple[tuple[str, tuple[Sum | None, ...]], ...]


def stack(table: pd.DataFrame) -> tuple[Part, ...]:
    """Cells by mark, as parts of one bar."""
    counts = totals(table)
    scale = 1000 / max(1, sum(counts.values()))
    parts = []
    start = 0.0
    for key, count in counts.items():
        parts.append(Part(MARKS[key], count, round(start, 2), round(count * scale, 2)))
        start += count * scale
    return tuple(parts)


def make_overview(table: pd.DataFrame) -> Overview:
    """Sum the cells up."""
    sums = {key: _sum(part) for key, part in split(table, "topic", "backend", "library", "toolkit")}
    toolchains = sorted({ToolchainColumn(*key[1:]) for key in sums}, key=toolchain_key)
    return Overview(
        tuple(toolchains),
        tuple(
            (topic, tuple(sums.get((topic, item.backend, item.library, item.toolkit)) for item in toolchains))
            for topic in table["topic"].unique()
        ),
    )


def _sum(part: pd.DataFrame) -> Sum:
    counts = totals(part)
    bad = sum(count for key, count in counts.items() if not MARKS[key].good)
    return Sum(len(part), bad, counts.get("unsupported", 0), stack(part))
