"""Many cells: as objects, as a frame, as the matrix, as a page."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from rich.console import Console

from cumatrix._cells import Cell
from harness.cli.summary import show_matrix
from harness.diagnostics import one_line
from harness.errors import NothingToRun, PartUnavailable
from harness.matrix.axes import rows_of, short_target, targets_of
from harness.matrix.marks import KINDS, Mark, kind_of
from harness.model import Status
from harness.records import Merged, Record, merge, read_records, write_merged
from harness.records.record_names import chooser

if TYPE_CHECKING:
    import pandas as pd

    from harness.report.build import ReportSummary


MAX_ROWS = 200
"""Lines of the matrix that are shown; a notebook keeps them all in its file."""

# Both of light and of dark notebooks: the letter tells as much as the colour does.
_COLOURS = {"green": "#2e7d3266", "cyan": "#0277bd55", "yellow": "#f9a82577", "magenta": "#ad145777", "red": "#c6282888", "dim": "transparent"}  # fmt: skip


def matrix_html(records: Sequence[Mapping[str, Any]], missing: int = 0) -> str:
    """A table, with the number of planned cells that never arrived: programs and toolchains down, targets across, the letter of its kind in each field, and the message as a tooltip."""
    targets, rows = targets_of(records), rows_of(records)
    head = "".join(f'<th scope="col">{escape(short_target(target))}</th>' for target in targets)
    lines, shown = [], ""
    for row in rows[:MAX_ROWS]:
        if row.program != shown:
            shown = row.program
            lines.append(
                f'<tr><th scope="rowgroup" colspan="{len(targets) + 1}" style="text-align:left">{_text(shown)}</th></tr>'
            )
        fields = "".join(_field(row.cells.get(target)) for target in targets)
        lines.append(
            f'<tr><th scope="row" style="text-align:left;font-weight:normal">{_text(row.toolchain)}</th>{fields}</tr>'
        )
    more = f"<p>and {len(rows) - MAX_ROWS:,} more lines</p>" if len(rows) > MAX_ROWS else ""
    return (
        f'<table class="cumatrix"><caption style="text-align:left">{_counts(records, missing)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"
    )


def _counts(records: Sequence[Mapping[str, Any]], missing: int) -> str:
    counts = Counter({"missing": missing})
    counts.update(kind_of(record).key for record in records)
    words = (f"{kind.letter} {counts[key]:,} {kind.word}" for key, kind in KINDS.items() if counts[key])
    return f"{len(records) + missing:,} cells: {escape(', '.join(words))}"


def _field(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "<td></td>"
    kind = kind_of(record)
    said = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"] or ""
    title = f"{record['target']}: {kind.word}" + (f": {said}" if said else "")
    return f'<td title="{_text(title, 300)}" style="text-align:center;background:{_colour(kind)}">{kind.letter}</td>'


def _colour(kind: Mark) -> str:
    return _COLOURS[kind.style.split()[-1]]


def _text(text: str, most: int = 200) -> str:
    return escape(one_line(text, most))


_WIDTH = 160


class Results(Sequence[Cell]):
    """The cells of a run, or of records that were read; a notebook shows them as the matrix.

    Parameters
    ----------
    records : iterable of Mapping
        One a cell, as docs/records.md has them.
    missing : iterable of Mapping
        Planned cells that never arrived.
    notes : iterable of str
        Sentences that the command prints below the matrix: requested names without an answer, and notes from reading.
    """

    def __init__(
        self, records: Iterable[Mapping[str, Any]], missing: Iterable[Mapping[str, Any]] = (), notes: Iterable[str] = ()
    ) -> None:
        self.records: tuple[Mapping[str, Any], ...] = tuple(records)
        self.missing: tuple[Mapping[str, Any], ...] = tuple(missing)
        self.notes: tuple[str, ...] = tuple(notes)

    @overload
    def __getitem__(self, index: int) -> Cell: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Cell | Results:
        if isinstance(index, slice):
            return Results(self.records[index])
        return Cell(self.records[index])

    def __len__(self) -> int:
        return len(self.records)

    @property
    def as_expected(self) -> bool:
        """Return whether every cell is as expected, none is missing, and a compiler answered; the command then exits with 0."""
        answered = any(Status(record["status"]).answered for record in self.records)
        return answered and not self.missing and all(cell.as_expected for cell in self)

    @property
    def unexpected(self) -> Results:
        """The cells that are not as expected."""
        return Results(cell.record for cell in self if not cell.as_expected)

    @property
    def counts(self) -> dict[str, int]:
        """Cells by the key of their kind (``built``, ``fail``, ``xfail``, …), in the order of the legend."""
        counts = Counter(kind_of(record).key for record in self.records)
        counts["missing"] += len(self.missing)
        return {key: counts[key] for key in KINDS if counts[key]}

    def where(self, condition: str) -> Results:
        """Return the cells for which a condition of ``--where`` holds; maybe none.

        Raises
        ------
        UsageError
            When it cannot be read.
        """
        holds = chooser(condition, [*self.records, *self.missing])
        return Results(filter(holds, self.records), filter(holds, self.missing))

    def frame(self) -> pd.DataFrame:
        """One row a cell, in the order of the matrix; columns are `harness.analysis.frame.COLUMNS` (docs/analysis.md).

        Raises
        ------
        PartUnavailable
            Without pandas.
        """
        try:
            from harness.analysis.frame import make_frame
        except ImportError as error:
            raise _without(error, "a frame") from None
        return make_frame(map(_record, self.records), self.missing)

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the records to a file, ``.jsonl``, in the place of what it held.

        Raises
        ------
        NothingToRun
            Without records.
        """
        if not self.records:
            raise NothingToRun("there are no records to write")
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_merged(Merged(records=tuple(map(_record, self.records)), missing=(), conflicts=(), plans=()), place)
        return place

    def report(
        self, out: str | PathLike[str] = "reports/html", *, cases: str | PathLike[str] = "cases"
    ) -> ReportSummary:
        """Build the page and its exports, as ``cumatrix report`` does.

        Parameters
        ----------
        out : path
            Folder of the page; an earlier report in it is replaced.
        cases : path
            Folder of the cases, whose files are shown.

        Raises
        ------
        CumatrixError
            Without records, where `out` holds something else, or without the libraries that the page needs.
        """
        from tempfile import TemporaryDirectory

        try:
            from harness.report.build import build_report
        except ImportError as error:
            raise _without(error, "the report") from None
        folder = Path(cases)
        with TemporaryDirectory(prefix="cumatrix-") as place:
            path = self.write(Path(place) / "results.jsonl")
            return build_report([path], Path(out), folder if folder.is_dir() else None)

    def __repr__(self) -> str:
        words = ", ".join(f"{count} {KINDS[key].word}" for key, count in self.counts.items())
        return f"<Results: {len(self)} cells{': ' if words else ''}{words}>"

    def __str__(self) -> str:
        """The matrix as the command prints it, without colours."""
        text = io.StringIO()
        show_matrix(Console(file=text, width=_WIDTH, color_system=None, legacy_windows=False), self.records)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return matrix_html(self.records, len(self.missing))


def read(*paths: str | PathLike[str]) -> Results:
    """Records of earlier runs: files, or folders of them; several runs become one set, as ``cumatrix merge`` makes it.

    Raises
    ------
    RecordError
        When a file cannot be read; the sentence names file and line.
    """
    found = read_records([Path(path) for path in paths])
    merged = merge(found.records, found.plans)
    return Results(merged.records, merged.missing, (*found.warnings, *map(str, merged.conflicts)))


def _record(record: Mapping[str, Any]) -> Record:
    return cast("Record", record)


def _without(error: ImportError, what: str) -> PartUnavailable:
    return PartUnavailable(f"{what} needs {error.name}: pip install 'cumatrix[report]'")
