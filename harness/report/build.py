"""Making a report: everything into a folder beside, which then takes the place of the old one."""

from __future__ import annotations

import gc
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from harness.records import Merged, Record, Results, merge
from harness.report.errors import NothingToReport, ReportError
from harness.report.exports import matrix_csv, matrix_json
from harness.report.inputs import read_results
from harness.report.markdown import matrix_markdown
from harness.report.marks import MARKS
from harness.report.matrix import frame, totals
from harness.report.parquet import results_parquet
from harness.report.page import page_names
from harness.report.site import site_files

DEFAULT_OUT = Path("reports/html")

_OURS = frozenset(
    ("index.html", "assets", "cases", "data", "matrix.json", "matrix.csv", "matrix.md", "results.parquet")
)


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """What was written.

    Parameters
    ----------
    out : Path
        The folder; ``index.html`` in it is where to begin.
    cells : int
        Cells in the matrix, those that never arrived included.
    totals : dict
        Cells by mark (`harness.report.marks.MARKS`).
    not_as_expected, missing, conflicts : int
        Cells that need somebody's attention, and why; the first includes the second.
    warnings : tuple of str
        What reading the records had to say.
    """

    out: Path
    cells: int
    totals: dict[str, int]
    not_as_expected: int
    missing: int
    conflicts: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        parts = ", ".join(f"{count} {MARKS[key].word}" for key, count in self.totals.items())
        conflicts = f"; {self.conflicts} came out differently in different runs" if self.conflicts else ""
        return f"{self.cells} cells: {parts}{conflicts}"


def build_report(
    paths: Sequence[Path],
    out: Path = DEFAULT_OUT,
    cases: Path | None = None,
    *,
    rejudge: Callable[[Record], Record] | None = None,
) -> ReportSummary:
    """Make the site (`harness.report.site`), ``matrix.json``, ``.csv``, ``.md`` and ``results.parquet``.

    The same records give the same bytes: no clock and no machine of the report's own gets into it.

    Parameters
    ----------
    paths : sequence of Path
        Files of records or Parquet, or folders of them.
    out : Path
        Folder to make, or an earlier report to replace.
    cases : Path, optional
        Folder of the cases, whose files are then shown.
    rejudge : callable, optional
        Gives a record its verdict anew, against what the cases expect today.

    Raises
    ------
    RecordError
        When the records are damaged.
    NothingToReport
        When there are neither records nor planned cells.
    ReportError
        When `out` holds something else than an earlier report.
    """
    with _no_collection():
        results, merged, table = _read(paths, rejudge)
        with _replacing(Path(out)) as folder:
            for name, data in site_files(merged, table, results.warnings, cases):
                _write(folder / name, data)
            _write(folder / "matrix.json", matrix_json(merged, table, page_names(table["case"]), results.warnings))
            _write(folder / "matrix.csv", matrix_csv(table))
            _write(folder / "matrix.md", matrix_markdown(table).encode())
            _write(folder / "results.parquet", results_parquet(merged.records, merged.plans))
    counts = totals(table)
    return ReportSummary(
        out=Path(out),
        cells=len(table),
        totals=counts,
        not_as_expected=sum(count for key, count in counts.items() if not MARKS[key].good),
        missing=len(merged.missing),
        conflicts=len(merged.conflicts),
        warnings=results.warnings,
    )


def _read(
    paths: Sequence[Path], rejudge: Callable[[Record], Record] | None
) -> tuple[Results, Merged, pd.DataFrame]:
    results = read_results(paths)
    merged = merge(results.records, results.plans)
    if not merged.records and not merged.missing:
        raise NothingToReport(f"no records in {', '.join(map(str, paths)) or 'nothing'}: run some cells first")
    if rejudge is not None:
        merged = replace(merged, records=tuple(rejudge(record) for record in merged.records))
    return results, merged, frame(merged)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without Python's collector of cycles, which would look through millions of records that have none again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """A folder to fill, which takes the place of `out` at the end if nothing went wrong."""
    out = out.resolve()
    if out.exists():
        _check_ours(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        # mkdtemp makes private folders; a report is for others.
        folder = beside / "new"
        folder.mkdir()
        yield folder
        if out.exists():
            out.rename(beside / "old")
        try:
            folder.rename(out)
        except BaseException:
            if (beside / "old").exists():
                (beside / "old").rename(out)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _check_ours(out: Path) -> None:
    """Refuse to replace what is no report: ``--out .`` must not cost anybody their work."""
    if not out.is_dir():
        raise ReportError(f"{out} is a file: name a folder for the report")
    others = sorted({item.name for item in out.iterdir()} - _OURS)
    if others:
        raise ReportError(f"{out} holds {others[0]}, which is no part of a report: name another folder")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
