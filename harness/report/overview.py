"""The matrix at a glance: topics against toolchains, cases one by one, and the bar of all cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from harness.matrix.axes import TOOLCHAIN
from harness.matrix.kinds import GROUPS, KINDS, Mark, grouped, surprises_among, unexpected_among
from harness.matrix.order import ToolchainColumn, toolchain_key, version_key
from harness.report.table import parts, totals
from harness.report.text import one_line


@dataclass(frozen=True)
class Sum:
    """Cells by kind.

    Parameters
    ----------
    counts : dict
        Number of cells by key of a kind, in the order of the legend.
    """

    counts: dict[str, int]

    @property
    def cells(self) -> int:
        """All cells."""
        return sum(self.counts.values())

    @property
    def bad(self) -> int:
        """Cells that are not as expected."""
        return unexpected_among(self.counts)

    @cached_property
    def groups(self) -> dict[str, int]:
        """Number of cells by key of `harness.matrix.kinds.GROUPS`: what works, and what is as expected, are two things."""
        return grouped(self.counts)

    def of(self, group: str) -> int:
        """Cells of a group."""
        return self.groups.get(group, 0)

    @property
    def surprising(self) -> int:
        """Unexpected cells, without unavailable ones."""
        return surprises_among(self.counts)

    @property
    def answered(self) -> int:
        """Cells that a compiler answered."""
        return sum(self.of(key) for key in ("works", "not", "fault", "surprise"))

    @property
    def said(self) -> str:
        """``12 works, 3 does not work``: in words, for what is drawn."""
        return ", ".join(f"{count:,} {GROUPS[key]}" for key, count in self.groups.items())

    @cached_property
    def bar(self) -> tuple[tuple[Mark, int, float, float], ...]:
        """Kind, count, start and width of each part of a bar of 1000 units."""
        scale = 1000 / max(1, self.cells)
        bar, start = [], 0.0
        for key, count in self.counts.items():
            bar.append((KINDS[key], count, round(start, 2), round(count * scale, 2)))
            start += count * scale
        return tuple(bar)


@dataclass(frozen=True)
class Overview:
    """Sums by topic (down) and toolchain (across), None where nothing was planned; and by case."""

    total: Sum
    toolchains: tuple[ToolchainColumn, ...]
    topics: tuple[tuple[str, tuple[Sum | None, ...]], ...]
    cases: tuple[tuple[str, tuple[tuple[str, str, Sum], ...]], ...]


def make_overview(table: pd.DataFrame) -> Overview:
    """Sum the cells up."""
    sums = {(key[0], ToolchainColumn(key[1:])): Sum(totals(part)) for key, part in parts(table, "topic", *TOOLCHAIN)}
    toolchains = sorted({toolchain for _, toolchain in sums}, key=toolchain_key)
    cases: dict[str, list[tuple[str, str, Sum]]] = {}
    for (topic, case), part in parts(table, "topic", "case"):
        cases.setdefault(topic, []).append((case, str(part["title"].iloc[0]), Sum(totals(part))))
    return Overview(
        total=Sum(totals(table)),
        toolchains=tuple(toolchains),
        topics=tuple((topic, tuple(sums.get((topic, item)) for item in toolchains)) for topic in cases),
        cases=tuple((topic, tuple(items)) for topic, items in cases.items()),
    )


def unavailable_of(table: pd.DataFrame) -> list[tuple[str, int]]:
    """Unavailable parts with the number of their cells: a line for each backend and reason, for any number of releases."""
    found = []
    for (backend,), part in parts(table[table["mark"] == "unavailable"], "backend"):
        releases = sorted(part["toolkit"].unique(), key=version_key)
        reason = one_line(str(part["reason"].iloc[0]), 200)
        found.append((f"{backend} with CUDA {', '.join(releases)}: {reason}", len(part)))
    return found
