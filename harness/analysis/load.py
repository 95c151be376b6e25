"""Sets of cells from wherever users have them: records, folders, results.parquet, a run of a history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.frame import cells_frame
from harness.analysis.history import FILE, read_history
from harness.analysis.rejudge import Rejudge, merged_anew
from harness.records import Results, read_records
from harness.records.devices import tell_devices
from harness.records.parquet import read_parquet


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
