"""The overview of the matrix: topics by toolchains, single cases, and the bar of all cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property
from typing import Any

import pandas as pd

from harness.matrix.axes import TOOLCHAIN, ToolchainColumn, natural_key, toolchain_key, version_key
from harness.matrix.marks import GROUPS, KINDS, Mark, counted_group, grouped, surprises_among, unexpected_among
from harness.model.cell import named_toolkit
from harness.protocol.text import one_line
from harness.records import Merged
from harness.records.plan import started_at


def parts(table: pd.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Split the table by the values of some columns, in the order of their first occurrence."""
    for key, part in table.groupby(list(by), sort=False):
        yield tuple(map(str, key)), part


def totals(table: pd.DataFrame) -> dict[str, int]:
    """Return the number of cells by key of their kind, in the order of the legend, without zeros."""
    counts = table["mark"].value_counts()
    return {key: int(counts[key]) for key in KINDS if key in counts}


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
        """Number of cells by key of `harness.matrix.marks.GROUPS`.

        A working cell is not necessarily an expected one.
        """
        return grouped(self.counts)

    def of(self, group: str) -> int:
        """Return the number of cells of a group."""
        return self.groups.get(group, 0)

    @property
    def surprising(self) -> int:
        """Unexpected cells, without unavailable ones."""
        return surprises_among(self.counts)

    @property
    def answered(self) -> int:
        """Cells with a compiler's answer."""
        return sum(self.of(key) for key, group in GROUPS.items() if group.answered)

    @property
    def words(self) -> str:
        """The numbers in words, for pictures: ``12 work, 3 do not work``."""
        return ", ".join(counted_group(key, count) for key, count in self.groups.items())

    @cached_property
    def bar(self) -> tuple[tuple[Mark, int, float, float], ...]:
        """Kind, count, start and width of each part of a bar of 1000 units."""
        scale = 1000 / max(1, self.cells)
        bar, start = [], 0.0
        for key, count in self.counts.items():
            bar.append((KINDS[key], count, round(start, 2), round(count * scale, 2)))
            start += count * scale
        return tuple(bar)


COLUMNS = 24
"""The maximum number of toolchains that an overview shows side by side."""

RUNS = 20
"""The number of runs that the page describes, newest first."""


@dataclass(frozen=True)
class Overview:
    """Sums by topic (down) and toolchain (across), None if no cell was planned, and sums by case.

    With more than `COLUMNS` toolchains, `toolchains` has one of each backend: the one with the most answers, or the
    newest of several.
    """

    total: Sum
    count: int
    toolchains: tuple[ToolchainColumn, ...]
    topics: tuple[tuple[str, tuple[Sum | None, ...]], ...]
    cases: tuple[tuple[str, tuple[tuple[str, str, Sum], ...]], ...]


def make_overview(table: pd.DataFrame) -> Overview:
    """Return the sums of the cells."""
    sums = {(key[0], ToolchainColumn(key[1:])): Sum(totals(part)) for key, part in parts(table, "topic", *TOOLCHAIN)}
    every = sorted({toolchain for _, toolchain in sums}, key=toolchain_key)
    toolchains = every if len(every) <= COLUMNS else _most_answered(every, sums)
    cases: dict[str, list[tuple[str, str, Sum]]] = {}
    for (topic, case), part in parts(table, "topic", "case"):
        cases.setdefault(topic, []).append((case, str(part["title"].iloc[0]), Sum(totals(part))))
    return Overview(
        total=Sum(totals(table)),
        count=len(every),
        toolchains=tuple(toolchains),
        topics=tuple((topic, tuple(sums.get((topic, item)) for item in toolchains)) for topic in cases),
        cases=tuple((topic, tuple(items)) for topic, items in cases.items()),
    )


def _most_answered(
    toolchains: Iterable[ToolchainColumn], sums: Mapping[tuple[str, ToolchainColumn], Sum]
) -> list[ToolchainColumn]:
    """Return one toolchain of each backend: the one with the most answers."""
    answers: dict[ToolchainColumn, int] = {}
    for (_, toolchain), of in sums.items():
        answers[toolchain] = answers.get(toolchain, 0) + of.answered
    chosen: dict[str, ToolchainColumn] = {}
    for toolchain in toolchains:
        backend = toolchain.values[0]
        if backend not in chosen or answers[toolchain] >= answers[chosen[backend]]:
            chosen[backend] = toolchain
    return list(chosen.values())


def unavailable_of(table: pd.DataFrame) -> list[tuple[str, int]]:
    """Return unavailable parts with the number of their cells, one for each backend and reason, for any number of releases."""
    found = []
    for (backend,), part in parts(table[table["mark"] == "unavailable"], "backend"):
        releases = sorted(part["toolkit"].unique(), key=version_key)
        reason = one_line(str(part["reason"].iloc[0]), 200)
        found.append((f"{backend} with {named_toolkit(', '.join(releases))}: {reason}", len(part)))
    return found


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run.

    Parameters
    ----------
    name, environment, started, argv : str
        As in its plan. For a run without a plan, all except the name are empty.
    machine : dict
        Operating system, Python, processor.
    planned, arrived : int
        Planned cells (None without a plan), and its cells in the report.
    observed : dict
        The loaded versions, by name of the component.
    """

    name: str
    environment: str
    started: str
    argv: str
    machine: dict[str, str]
    planned: int | None
    arrived: int
    observed: dict[str, list[str]]

    @property
    def when(self) -> str:
        """The start of the run to the second, for readers."""
        return f"{started_at({'started': self.started}).astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if self.started else ""

    def to_json(self) -> dict[str, Any]:
        """Return every field as plain JSON."""
        return {**vars(self)}


def runs_of(merged: Merged) -> list[Run]:
    """Return every run with a plan or a record, oldest first."""
    arrived: dict[str, int] = {}
    observed: dict[str, dict[str, set[str]]] = {}
    counted_runs: set[tuple[str, int]] = set()
    for record in merged.records:
        arrived[record["run"]] = arrived.get(record["run"], 0) + 1
        versions = observed.setdefault(record["run"], {})
        # Records from Parquet share their common values.
        if (record["run"], id(record["toolchain"])) in counted_runs:
            continue
        counted_runs.add((record["run"], id(record["toolchain"])))
        for name, value in record["toolchain"]["observed"].items():
            versions.setdefault(name, set()).add(spell(value))
    plans = {plan["run"]: plan for plan in merged.plans}
    return [
        Run(
            name=name,
            environment=plans[name]["environment"] if name in plans else "",
            started=plans[name]["started"] if name in plans else "",
            argv=" ".join(map(spell, plans[name]["argv"])) if name in plans else "",
            machine={key: spell(value) for key, value in plans[name]["machine"].items()} if name in plans else {},
            planned=len(plans[name]["cells"]) if name in plans else None,
            arrived=arrived.get(name, 0),
            observed={key: sorted(values, key=natural_key) for key, values in sorted(observed.get(name, {}).items())},
        )
        for name in [*plans, *sorted(set(arrived) - set(plans))]
    ]


def spell(value: Any) -> str:
    """Return a version or another small JSON value as a text."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
