"""One table of the matrix, made ready for the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from harness.report.groups import anchor_of
from harness.report.marks import MARKS, Mark
from harness.report.matrix import COLUMNS, ROWS, ToolchainColumn, pivot


@dataclass(frozen=True)
class GridCell:
    """A planned cell: its mark and where it is told of."""

    mark: Mark
    target: str
    href: str


@dataclass(frozen=True)
class GridRow:
    """One variant; None stands for what nobody planned."""

    variant: str
    cells: tuple[GridCell | None, ...]


@dataclass(frozen=True)
class GridCase:
    """The rows of one case."""

    name: str
    title: str
    href: str
    rows: tuple[GridRow, ...]


@dataclass(frozen=True)
class Grid:
    """A table.

    Parameters
    ----------
    name : str
        Topic or case.
    tools : tuple of (str, int)
        Backends with their versions, and how many columns each spans.
    toolkits : tuple of (str, int)
        Likewise for toolkits.
    columns : tuple of (str, bool)
        Targets, and whether the column is the first of its toolchain.
    cases : tuple of GridCase
        Its rows.
    """

    name: str
    tools: tuple[tuple[str, int], ...]
    toolkits: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, bool], ...]
    cases: tuple[GridCase, ...]


def make_grid(name: str, table: pd.DataFrame, files: Mapping[str, str], folder: str) -> Grid:
    """Make the table of a part of the matrix.

    Parameters
    ----------
    name : str
        Topic or case.
    table : DataFrame
        The part's rows of `harness.report.matrix.frame`.
    files : Mapping[str, str]
        Page of each case.
    folder : str
        What stands before a page's name in links.
    """
    wide = pivot(table)
    cells = dict(zip(table[[*ROWS, *COLUMNS]].itertuples(index=False, name=None), table["cell"], strict=True))
    titles = dict(zip(table["case"], table["title"], strict=True))
    columns = list(wide.columns)
    cases = []
    for case, rows in groupby(
        zip(wide.index, wide.itertuples(index=False, name=None), strict=True), lambda row: row[0][1]
    ):
        page = f"{folder}{files[case]}" if files[case] else ""
        cases.append(
            GridCase(
                case,
                titles[case],
                page,
                tuple(
                    GridRow(
                        key[2],
                        tuple(
                            GridCell(MARKS[mark], column[3], f"{page}#{anchor_of(cells[(*key, *column)])}")
                            if mark
                            else None
                            for column, mark in zip(columns, marks, strict=True)
                        ),
                    )
                    for key, marks in rows
                ),
            )
        )
    toolchains = [ToolchainColumn(*column[:3]) for column in columns]
    return Grid(
        name=name,
        tools=_spans([(item.tool, item.tool) for item in toolchains]),
        toolkits=_spans([(item.label, item.cuda) for item in toolchains]),
        columns=tuple(
            (column[3], place == 0 or toolchains[place] != toolchains[place - 1])
            for place, column in enumerate(columns)
        ),
        cases=tuple(cases),
    )


def _spans(labels: list[tuple[str, str]]) -> tuple[tuple[str, int], ...]:
    """Labels with the number of columns they stand above; the first of a pair tells neighbours apart."""
    return tuple((label, len(list(run))) for (_, label), run in groupby(labels))
