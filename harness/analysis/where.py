"""``--where`` on sets of cells and on histories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.frame import cells_frame
from harness.analysis.history import FILE, History, read_history
from harness.analysis.rejudge import Rejudge, merged_anew
from harness.matrix.axes import PLACE
from harness.model.condition_names import none_left
from harness.records import Results, read_records
from harness.records.parquet import read_parquet
from harness.records.record_names import chooser
from harness.records.virtual_vs_real import tell_devices


@dataclass(frozen=True, kw_only=True)
class CellSet:
    """Cells, and where they come from.

    Parameters
    ----------
    name : str
        The file, the folder or the run.
    table : DataFrame
        The cells (`harness.analysis.frame.cells_frame`).
    warnings : tuple of str
        What reading them had to say.
    known : tuple of dict
        The records and planned cells that the table is made of; empty for a run of a history, which has no more than the table.
    """

    name: str
    table: pd.DataFrame
    warnings: tuple[str, ...] = ()
    known: tuple[Mapping[str, Any], ...] = ()


def load_set(place: str, history: Path | None = None, rejudge: Rejudge | None = None) -> CellSet:
    """Read a set of cells.

    Parameters
    ----------
    place : str
        A ``.jsonl`` file, a folder of them, ``results.parquet``, a folder ``run=ID`` of a history, or with `history` the name of a run.
    history : Path, optional
        The history that names of runs refer to.
    rejudge : callable, optional
        Derives a record's verdict again. A history keeps the verdicts of its day.

    Raises
    ------
    RecordError, HistoryError
        When it cannot be read; one plain sentence.
    """
    path = Path(place)
    if history is not None and not path.exists():
        found = read_history(history)
        return CellSet(name=found.find(place), table=found.cells_of(place), warnings=found.warnings)
    if (path / FILE).is_file() or path.name == FILE:
        run = path if path.is_dir() else path.parent
        found = read_history(run.parent)
        name = run.name.removeprefix("run=")
        return CellSet(name=name, table=found.cells_of(name))
    if path.suffix == ".parquet":
        records, plans = read_parquet(path)
        results = Results(records=tuple(records), plans=tuple(plans), warnings=())
    else:
        results = read_records([path])
    merged = tell_devices(merged_anew(results, rejudge))
    known = (*merged.records, *merged.missing)
    return CellSet(name=place, table=cells_frame(merged), warnings=results.warnings, known=known)


COLUMNS = (
    *PLACE,
    "cell",
    "topic",
    "environment",
    "status",
    "stage",
    "verdict",
    "message",
    "reason",
    "mark",
    "run",
    "title",
)
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
        As for `harness.analysis.diff.changes`.

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
