"""``--where`` on sets of cells and on histories."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain

from harness.analysis.history import History
from harness.analysis.load import CellSet
from harness.matrix.axes import PLACE
from harness.model.selection import none_left
from harness.records.where import chooser

COLUMNS = (*PLACE, "cell", "topic", "environment", "status", "stage", "verdict", "message", "reason")
"""Columns of a history that conditions ask."""


def choose_in_sets(sets: Sequence[CellSet], where: str, across: Collection[str] = ()) -> list[CellSet]:
    """Keep the cells for which a condition holds in at least one of the sets, so that each is still compared with itself.

    Parameters
    ----------
    sets : sequence of CellSet
        The sets.
    where : str
        The condition.
    across : collection of str
        As for `harness.analysis.changes.changes`.

    Raises
    ------
    UsageError
        When the condition cannot be read.
    NothingToRun
        When it holds for no cell.
    """
    key = [name for name in PLACE if name not in across]
    cells = [each.known or each.table.to_dict("records") for each in sets]
    holds = chooser(where, chain.from_iterable(cells))
    kept = {tuple(cell[name] for name in key) for cell in chain.from_iterable(cells) if holds(cell)}
    if not kept:
        raise none_left(" and ".join(each.name for each in sets), where)
    masks = [[row in kept for row in each.table[key].itertuples(index=False, name=None)] for each in sets]
    return [
        replace(each, table=each.table[mask].reset_index(drop=True)) for each, mask in zip(sets, masks, strict=True)
    ]


def choose_in_history(history: History, where: str) -> History:
    """Keep the history of cells for which a condition holds in the last run that has them.

    Raises
    ------
    UsageError
        When the condition cannot be read.
    NothingToRun
        When it holds for no cell.
    """
    last = history.table.drop_duplicates("cell", keep="last")[list(COLUMNS)].to_dict("records")
    holds = chooser(where, last)
    kept = {row["cell"] for row in last if holds(row)}
    if not kept:
        raise none_left(f"the history's {len(last):,}", where)
    return replace(history, table=history.table[history.table["cell"].isin(kept)].reset_index(drop=True))
