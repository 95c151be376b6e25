"""Sets of cells from wherever users have them: records, folders, results.parquet, a run of a history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.analysis.frame import cells_frame, make_frame
from harness.analysis.history import FILE, read_history
from harness.records import Record, merge, read_records
from harness.records.parquet import read_parquet


@dataclass(frozen=True, kw_only=True)
class CellSet:
    """Cells, and where they come from."""

    name: str
    table: pd.DataFrame
    warnings: tuple[str, ...] = ()


def load_set(place: str, history: Path | None = None, rejudge: Callable[[Record], Record] | None = None) -> CellSet:
    """Read a set of cells.

    Parameters
    ----------
    place : str
        A ``.jsonl`` file, a folder of them, ``results.parquet``, a folder ``run=ID`` of a history, or with `history` the name of a run.
    history : Path, optional
        The history that names of runs refer to.
    rejudge : callable, optional
        Gives a record its verdict anew. What a history holds keeps the verdicts of its day.

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
        records, _ = read_parquet(path)
        return CellSet(name=place, table=make_frame(map(rejudge, records) if rejudge else records))
    results = read_records([path])
    merged = merge(map(rejudge, results.records) if rejudge else results.records, results.plans)
    return CellSet(name=place, table=cells_frame(merged), warnings=results.warnings)
