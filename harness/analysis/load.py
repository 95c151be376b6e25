"""Sets of cells from wherever users have them: records, folders, results.parquet, a run of a history."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.analysis.frame import cells_frame, make_frame
from harness.analysis.history import FILE, read_history
from harness.records import Record, RecordError, merge, read_records
from harness.records.schema import check_record, upgrade


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
        records = read_parquet(path)
        return CellSet(name=place, table=make_frame(map(rejudge, records) if rejudge else records))
    results = read_records([path])
    merged = merge(map(rejudge, results.records) if rejudge else results.records, results.plans)
    return CellSet(name=place, table=cells_frame(merged), warnings=results.warnings)


def read_parquet(path: Path) -> list[Record]:
    """Records out of a ``results.parquet``, whole and checked like those of a ``.jsonl``."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    records = []
    for number, row in enumerate(table.to_pylist(), 1):
        try:
            record = upgrade(_record(row))
            check_record(record)
        except (RecordError, ValueError, TypeError) as error:
            raise RecordError(f"{path}: row {number}: {error}") from None
        records.append(record)
    return records


def _record(row: dict[str, Any]) -> Record:
    nested = {name.removesuffix("_json"): json.loads(value) for name, value in row.items() if name.endswith("_json")}
    if not nested:
        raise RecordError("has no column of records such as diagnostics_json: this is no results.parquet")
    plain = {name: value for name, value in row.items() if not name.endswith("_json")}
    return {**plain, **nested}
