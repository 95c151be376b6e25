"""One table of the matrix, made ready for the template: what is read where there is no JavaScript, and on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import pandas as pd
from markupsafe import Markup

from harness.analysis.frame import rows_of
from harness.matrix.axes import COLUMNS, PROGRAM, labels
from harness.matrix.kinds import KINDS
from harness.matrix.order import ToolchainColumn, column_key
from harness.report.groups import anchor_of


@dataclass(frozen=True)
class CaseGrid:
    """The table of one case.

    Parameters
    ----------
    tools : tuple of (str, int)
        Backends with their versions, and how many columns each spans.
    releases : tuple of (str, int)
        Likewise for toolkits, and whatever else is a release.
    columns : tuple of (str, bool)
        Targets, and whether the column is the first of its toolchain.
    rows : tuple of (str, Markup)
        Variants with their cells.
    """

    tools: tuple[tuple[str, int], ...]
    releases: tuple[tuple[str, int], ...]
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[str, Markup], ...]


def make_grid(table: pd.DataFrame, groups: Mapping[str, str]) -> CaseGrid:
    """Make the table of a case.

    Parameters
    ----------
    table : DataFrame
        The case's rows of `harness.analysis.cells_frame`.
    groups : Mapping[str, str]
        By id of a cell, the anchor of its group; a cell without one leads to all groups.
    """
    programs, across = (list(rows_of(table, keys)) for keys in (PROGRAM[1:], COLUMNS))
    cells = list(zip(programs, across, table["mark"], table["cell"], strict=True))
    columns = sorted(set(across), key=lambda column: column_key(*column))
    toolchains = [ToolchainColumn(column[:-1]) for column in columns]
    first = [place == 0 or item != toolchains[place - 1] for place, item in enumerate(toolchains)]
    places = {column: place for place, column in enumerate(columns)}
    opening = ['<td class="begins"' if begins else "<td" for begins in first]
    rows = []
    for program, members in groupby(cells, lambda cell: cell[0]):
        row = [f'{tag}><span class="v">not run</span></td>' for tag in opening]
        for _, column, mark, cell in members:
            place = places[column]
            row[place] = f'{opening[place]} id="{anchor_of(cell)}">{_link(mark, groups.get(cell, "happened"))}</td>'
        rows.append((" ".join(labels(program, PROGRAM[1:])), Markup("\n".join(row))))  # noqa: S704 (our own markup; every word of others in it is escaped)
    return CaseGrid(
        tools=_spans([(item.tool, item.tool) for item in toolchains]),
        releases=_spans([(item.label, item.releases) for item in toolchains]),
        columns=tuple((column[-1], begins) for column, begins in zip(columns, first, strict=True)),
        rows=tuple(rows),
    )


@cache
def _link(key: str, anchor: str) -> str:
    """The link from a cell to its group. Made here and not by the template, which takes ten times as long for 100,000."""
    kind = KINDS[key]
    return f'<a class="m {kind.css}" href="#{anchor}">{kind.letter}<span class="v"> {kind.word}</span></a>'


def _spans(labels: list[tuple[str, str]]) -> tuple[tuple[str, int], ...]:
    """Labels with the number of columns they span; the first of a pair separates neighbors."""
    return tuple((label, len(list(run))) for (_, label), run in groupby(labels))
