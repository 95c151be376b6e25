"""Inputs of a report: files of records, Parquet files, and folders of both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.analysis.history import FILE as HISTORY
from harness.published import is_published
from harness.records import RecordError, Results, read_records
from harness.records.failures import remarks, with_remark
from harness.records.parquet import read_inputs_of, read_parquet


def read_results(paths: Iterable[Path]) -> Results:
    """Read records and plans.

    Parameters
    ----------
    paths : iterable of Path
        ``.jsonl`` or ``.parquet`` files, or folders of them, read recursively. A file that is named twice is read once.

    Raises
    ------
    RecordError
        If a file is damaged. The message names the file, and the line or column.
    """
    lines: list[Path] = []
    tables: dict[Path, Path] = {}
    for path in map(Path, paths):
        if path.is_dir():
            lines.append(path)
            for file in sorted(path.rglob("*.parquet")):
                if _is_results(file, path):
                    tables.setdefault(file.resolve(), file)
        elif path.suffix == ".parquet":
            if not path.exists():
                raise RecordError(f"{path}: no such file or folder")
            tables.setdefault(path.resolve(), path)
        else:
            lines.append(path)
    results = read_records(lines, inputs=True)
    records, plans, inputs = list(results.records), list(results.plans), results.inputs
    for file in tables.values():
        found, planned = read_parquet(file)
        inputs |= read_inputs_of(file)
        records += found
        plans += planned
    # Neighbours may be from other runs, and records of earlier versions have no remarks.
    found_remarks = remarks(records)
    records = [with_remark(record, found_remarks) for record in records]
    return Results(
        records=tuple(records), plans=tuple(plans), warnings=results.warnings, incomplete=results.incomplete, inputs=inputs
    )  # fmt: skip


def _is_results(file: Path, folder: Path) -> bool:
    """Return whether a Parquet file below a folder contains the reader's own results.

    A file whose name starts with a dot is unfinished. The files of an earlier report would count twice. A published
    matrix has to be named explicitly.
    """
    if file.name.startswith(".") or file.name == HISTORY or (file.parent / "index.html").exists():
        return False
    return file.parent == folder or not is_published(file.parent)
