"""Parts and sums of the table of cells (`harness.analysis.cells_frame`)."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from harness.matrix.kinds import KINDS


def parts(table: pd.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Split the table by the values of some columns, in the order in which they occur."""
    for key, part in table.groupby(list(by), sort=False):
        yield tuple(map(str, key)), part


def totals(table: pd.DataFrame) -> dict[str, int]:
    """Number of cells by key of their kind, in the order of the legend, without those that do not occur."""
    counts = table["mark"].value_counts()
    return {key: int(counts[key]) for key in KINDS if key in counts}
