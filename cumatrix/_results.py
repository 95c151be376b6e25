"""Results of cells, as objects, as a data frame, as the matrix and as a page."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from rich.console import Console

from harness.causes import Match, causes_of, explain_log
from harness.cli.summary import show_matrix
from harness.diagnostics import clean, one_line
from harness.errors import NothingToRun, UsageError, needs
from harness.matrix.axes import rows_of, short_target, targets_of
from harness.matrix.marks import KINDS, Mark, as_expected, kind_of
from harness.model import Status
from harness.records import Merged, Record, merge, read_records, write_merged
from harness.records.failures import main_message_of
from harness.records.merge import case_of, failed_at
from harness.records.record_names import chooser

if TYPE_CHECKING:
    import pandas as pd

    from harness.report.build import ReportSummary


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A diagnostic message of a tool.

    Parameters
    ----------
    severity : str
        ``fatal``, ``error``, ``warning``, ``remark`` or ``note``.
    message : str
        The text.
    code, file : str
        The tool's number of the message, and the file that it names; empty if the tool prints none.
    line : int or None
        Line in `file`, from 1.
    fingerprint : str
        Hash that equal messages about different places share.
    """

    severity: str
    message: str
    code: str = ""
    file: str = ""
    line: int | None = None
    fingerprint: str = ""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Resources of a kernel in a cubin; None for unknown values.

    Parameters
    ----------
    name : str
        The kernel's symbol.
    registers : int or None
        Registers per thread.
    shared, local, constant, spills : int or None
        Bytes of static shared memory per block, local memory per thread, constant memory, and spills per thread.
    tensor_cores : str or None
        Tensor-core instructions of the kernel, such as ``HMMA IMMA``; empty if it has none.
    """

    name: str
    registers: int | None = None
    shared: int | None = None
    local: int | None = None
    constant: int | None = None
    spills: int | None = None
    tensor_cores: str | None = None


class Cell:
    """The result of compiling one case with one backend and one toolkit for one target.

    The keys of the record (docs/records.md) are attributes: ``cell.status``, ``cell.stage``, ``cell.verdict``, ``cell.case``,
    ``cell.backend``, ``cell.toolkit``, ``cell.target`` and so on.

    Parameters
    ----------
    record : Mapping
        The record.
    """

    __slots__ = ("record",)
    record: Mapping[str, Any]

    def __init__(self, record: Mapping[str, Any]) -> None:
        object.__setattr__(self, "record", record)

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "record")[name]
        except KeyError:
            raise AttributeError(f"a cell has no {name!r}; its record has {', '.join(self.record)}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a cell is read-only")

    def __reduce__(self) -> tuple[Any, ...]:
        return Cell, (dict(self.record),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.record == other.record

    def __hash__(self) -> int:
        return hash((self.id, self.record.get("run")))

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *self.record})

    @property
    def id(self) -> str:
        """Readable name of the cell, unique within a run."""
        return str(self.record["cell"])

    @property
    def case(self) -> str:
        """Name of the case within its project (``cell.project``)."""
        return case_of(self.record)

    @property
    def as_expected(self) -> bool:
        """Return whether the command would exit with 0 if this were the only cell."""
        return as_expected(self.record)

    @property
    def built(self) -> bool:
        """Return whether a compiler finished all requested stages."""
        return bool(self.record["status"] == "built")

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Messages of the tools, the most informative first."""
        return tuple(
            Diagnostic(
                severity=item["severity"], message=item["message"], code=item.get("code") or "", file=item.get("file") or "",
                line=item.get("line"), fingerprint=item.get("fingerprint") or "",
            )
            for item in self.record["diagnostics"]
        )  # fmt: skip

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of the artifact, with their resources."""
        artifact = self.record["artifact"]
        return tuple(
            Kernel(
                name=item["name"], registers=item.get("num_regs"), shared=item.get("shared_bytes"), local=item.get("local_bytes"),
                constant=item.get("const_bytes"), spills=item.get("spill_bytes"),
                tensor_cores=item.get("tensor_cores"),
            )
            for item in (artifact["kernels"] if artifact else ())
        )  # fmt: skip

    @property
    def message(self) -> str:
        """Main message on one line: the reason of the status, else the first diagnostic, else empty."""
        return one_line(main_message_of(self.record))

    def explain(self) -> Explanation:
        """Find the known causes of the outcome, with remedies."""
        return explain(self)

    def __repr__(self) -> str:
        message = f": {self.message}" if self.message else ""
        return f"<Cell {one_line(self.id)}: {failed_at(_record(self.record)).replace('_', ' ')} ({self.record['verdict']}){message}>"

    def _repr_html_(self) -> str:
        kind = kind_of(self.record)
        messages = "".join(f"<li>{escape(one_line(item.message))}</li>" for item in self.diagnostics[:5])
        log = (
            f"<details><summary>log</summary><pre>{escape(clean(self.record['log']))}</pre></details>"
            if self.record["log"]
            else ""
        )
        return (
            f"<p><b>{escape(one_line(self.id))}</b>: {escape(kind.word)}"
            f"{escape(': ' + one_line(self.record['reason'])) if self.record['reason'] else ''}</p><ul>{messages}</ul>{log}"
        )  # fmt: skip


_MAX_BYTES = 32 << 20


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A known cause that matches a cell or a log.

    Parameters
    ----------
    name, title : str
        Name in the catalogue, and a one-line title.
    cause, remedy : str
        The cause and the remedy, in sentences.
    where : str
        The backends, releases or targets that the cause is limited to, in words; empty if it is not limited.
    links : tuple of str
        Upstream pages.
    quote : str
        The matching text of the log; empty if the status alone matches.
    line : int
        Line of `quote` in the log, from 1; 0 if there is no log.
    of_warning : bool
        Whether the cause explains only a warning.
    """

    name: str
    title: str
    cause: str
    remedy: str
    where: str
    links: tuple[str, ...]
    quote: str
    line: int
    of_warning: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a cell or a log.

    Parameters
    ----------
    causes : tuple of Cause
        Known causes, those of errors first.
    unexplained : str
        The first error of a log without a known cause, or the message of a failed cell without one. Empty if every error has a cause, or
        nothing failed.
    """

    causes: tuple[Cause, ...]
    unexplained: str = ""

    def __bool__(self) -> bool:
        return any(not cause.of_warning for cause in self.causes)

    def __str__(self) -> str:
        lines = [f"no cause is known of: {self.unexplained}"] if self.unexplained else []
        for each in self.causes:
            lines += [
                each.title,
                f"  Cause: {each.cause}",
                f"  Remedy: {each.remedy}",
                *(f"  {link}" for link in each.links),
            ]
        return "\n".join(lines) or "no known cause is in this"

    def _repr_html_(self) -> str:
        parts = [f"<p>No cause is known of: <code>{escape(self.unexplained)}</code></p>"] if self.unexplained else []
        for each in self.causes:
            links = "".join(f"<li>{escape(link)}</li>" for link in each.links)
            quoted = f"<p><code>{escape(each.quote)}</code></p>" if each.quote else ""
            parts.append(
                f"<h4>{escape(each.title)}</h4>{quoted}<p><b>Cause:</b> {escape(each.cause)}</p>"
                f"<p><b>Remedy:</b> {escape(each.remedy)}</p><ul>{links}</ul>"
            )
        return "".join(parts) or "<p>No known cause is in this.</p>"


def explain(what: Cell | Mapping[str, Any] | str | Path) -> Explanation:
    """Find the known causes of a cell's outcome or of a compiler's log, with remedies.

    Parameters
    ----------
    what : Cell, Mapping, str or Path
        A cell or its record; the text of any compiler's log; or the path of a log file.

    Raises
    ------
    UsageError
        If the file cannot be read.
    """
    if isinstance(what, Path):
        try:
            with what.open("rb") as file:
                what = file.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"{what}: cannot be read: {error.strerror}") from None
    if isinstance(what, str):
        found = explain_log(what)
        first = found.unexplained
        return Explanation(causes=_causes(found.matches), unexplained=one_line(first.text, 300) if first else "")
    cell = what if isinstance(what, Cell) else Cell(what)
    causes = _causes(causes_of(cell.record))
    known = any(not cause.of_warning for cause in causes)
    failed = cell.record["status"] not in ("built", "unsupported")
    return Explanation(causes=causes, unexplained=cell.message or cell.record["status"] if failed and not known else "")


def _causes(matches: Iterable[Match]) -> tuple[Cause, ...]:
    return tuple(
        Cause(
            name=match.cause.name, title=match.cause.title, cause=match.cause.cause, remedy=match.cause.remedy, where=match.cause.where,
            links=match.cause.links, quote=one_line(match.text, 300), line=match.line, of_warning=match.of_warning,
        )
        for match in matches
    )  # fmt: skip


MAX_ROWS = 200
"""Most rows of the matrix in HTML; a notebook saves every row in its file."""

# The colours suit light and dark notebooks; the letter carries the same information.
_COLOURS = {"green": "#2e7d3266", "cyan": "#0277bd55", "yellow": "#f9a82577", "magenta": "#ad145777", "red": "#c6282888", "dim": "transparent"}  # fmt: skip


def matrix_html(records: Sequence[Mapping[str, Any]], missing: int = 0) -> str:
    """Return the matrix as an HTML table.

    Rows are programs and toolchains, columns are targets. A field has the letter of the cell's kind, and the message as its tooltip. The
    caption counts the cells, with `missing` planned cells that never arrived.
    """
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
    main_message = main_message_of(record)
    title = f"{record['target']}: {kind.word}" + (f": {main_message}" if main_message else "")
    return f'<td title="{_text(title, 300)}" style="text-align:center;background:{_colour(kind)}">{kind.letter}</td>'


def _colour(kind: Mark) -> str:
    return _COLOURS[kind.style.split()[-1]]


def _text(text: str, most: int = 200) -> str:
    return escape(one_line(text, most))


_WIDTH = 160


class Results(Sequence[Cell]):
    """The cells of a run or of record files; a notebook displays them as the matrix.

    Parameters
    ----------
    records : iterable of Mapping
        Records in the format of docs/records.md, one per cell.
    missing : iterable of Mapping
        Planned cells that never arrived.
    notes : iterable of str
        Sentences that the command prints below the matrix: requested names without an answer, and warnings of the reader.
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
        """Return whether every cell is as expected, none is missing and a compiler answered; the command then exits with 0."""
        answered = any(Status(record["status"]).answered for record in self.records)
        return answered and not self.missing and all(cell.as_expected for cell in self)

    @property
    def unexpected(self) -> Results:
        """Cells that are not as expected."""
        return Results(cell.record for cell in self if not cell.as_expected)

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells of each kind (``built``, ``fail``, ``xfail``, …), in the order of the legend."""
        counts = Counter(kind_of(record).key for record in self.records)
        counts["missing"] += len(self.missing)
        return {key: counts[key] for key in KINDS if counts[key]}

    def where(self, condition: str) -> Results:
        """Return the cells that match a ``--where`` condition; possibly none.

        Raises
        ------
        UsageError
            If the condition is invalid.
        """
        holds = chooser(condition, [*self.records, *self.missing])
        return Results(filter(holds, self.records), filter(holds, self.missing))

    def frame(self) -> pd.DataFrame:
        """Return a data frame with one row per cell, in the order of the matrix.

        The columns are `harness.analysis.frame.COLUMNS` (docs/analysis.md).

        Raises
        ------
        PartUnavailable
            If pandas is missing.
        """
        try:
            from harness.analysis.frame import make_frame
        except ImportError as error:
            raise needs("a frame", "report", error) from None
        return make_frame(map(_record, self.records), self.missing)

    def write(self, path: str | PathLike[str]) -> Path:
        """Write the records to a ``.jsonl`` file, replacing its content.

        Raises
        ------
        NothingToRun
            If there are no records.
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
            Folder of the cases; the page shows their files.

        Raises
        ------
        CumatrixError
            If there are no records, `out` contains anything but a report, or a library that the page requires is missing.
        """
        from tempfile import TemporaryDirectory

        try:
            from harness.report.build import build_report
        except ImportError as error:
            raise needs("the report", "report", error) from None
        folder = Path(cases)
        with TemporaryDirectory(prefix="cumatrix-") as place:
            path = self.write(Path(place) / "results.jsonl")
            return build_report([path], Path(out), folder if folder.is_dir() else None)

    def __repr__(self) -> str:
        words = ", ".join(f"{count} {KINDS[key].word}" for key, count in self.counts.items())
        return f"<Results: {len(self)} cells{': ' if words else ''}{words}>"

    def __str__(self) -> str:
        """Return the matrix as the command prints it, without colours."""
        text = io.StringIO()
        show_matrix(Console(file=text, width=_WIDTH, color_system=None, legacy_windows=False), self.records)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return matrix_html(self.records, len(self.missing))


def read(*paths: str | PathLike[str]) -> Results:
    """Read the records of earlier runs from files or folders, merged as ``cumatrix merge`` does.

    Raises
    ------
    RecordError
        If a file cannot be read; the message names file and line.
    """
    found = read_records([Path(path) for path in paths])
    merged = merge(found.records, found.plans)
    return Results(merged.records, merged.missing, (*found.warnings, *map(str, merged.conflicts)))


def _record(record: Mapping[str, Any]) -> Record:
    return cast("Record", record)
