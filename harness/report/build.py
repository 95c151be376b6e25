"""Builds a report in a temporary folder, which then replaces the old report."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from harness.analysis.cell_sets import Rejudge, merge_and_judge
from harness.analysis.frame import cells_frame
from harness.analysis.history import read_history
from harness.answers.wheels import wheels_in
from harness.errors import UsageError, did_you_mean
from harness.matrix.marks import KINDS, unexpected_among
from harness.model import Case
from harness.plugins import Table
from harness.process_locks import exclusive_folder
from harness.records.merge import tell_devices
from harness.records.parquet import results_parquet
from harness.records.record_names import choose
from harness.report.api import badges
from harness.report.exports import matrix_csv, matrix_json, matrix_markdown
from harness.report.feed import FEED, atom_feed, entries_of
from harness.report.inputs import read_results
from harness.report.junit import junit_xml
from harness.report.overview import totals
from harness.report.plots import NAME as CARD
from harness.report.publish import of_own, read_publication, side_by_side
from harness.report.site import TITLE, Site, case_files_of, front_files, in_parallel


class ReportError(UsageError):
    """A report that cannot be written to its destination. The message is one plain sentence."""


class NothingToReport(ReportError):
    """A report without any record or planned cell."""

    exit_code = 3


FOLDER = "exports"
"""Folder of a report with a folder for each exporter."""

Exporter = Callable[[Sequence[Mapping[str, Any]]], Iterable[tuple[str, bytes]]]
"""Receives the merged and judged records of a report, and returns files by name."""


def _plugged(_name: str, value: object) -> Exporter:
    if not callable(value):
        raise TypeError("it is not a function of records")
    return value


EXPORTERS: Mapping[str, Exporter] = Table({}, "cumatrix.exporters", _plugged)


def check(names: Iterable[str]) -> None:
    """Raise `UsageError` if an exporter does not exist."""
    for name in names:
        if name not in EXPORTERS:
            none = "" if EXPORTERS else "; no installed distribution has one (group cumatrix.exporters)"
            raise UsageError(f"unknown exporter {name!r}{none or did_you_mean(name, EXPORTERS)}")


def exported(names: Iterable[str], records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
    """Yield the files of some exporters, by their paths in the report.

    Raises
    ------
    ReportError
        If an exporter fails, or returns a file name outside of its folder.
    """
    for name in names:
        try:
            files = list(EXPORTERS[name](records))
        except Exception as error:
            raise ReportError(f"the exporter {name} failed: {type(error).__name__}: {error}") from error
        for file, data in files:
            if PurePath(file).name != file or not isinstance(data, bytes):
                raise ReportError(f"the exporter {name} returned {file!r}, which is not a file name with bytes")
            yield f"{FOLDER}/{name}/{file}", data


DEFAULT_OUT = Path("reports/html")
_MANY = 10_000

_OURS = frozenset(
    (
        *(
            "index.html",
            "matrix.html",
            "support.html",
            "disagreements.html",
            "stories.html",
            "gpus.html",
            "changes.html",
            "history.html",
            "coverage.html",
            "pictures.html",
        ),
        *(
            "api",
            "assets",
            "badges",
            "cases",
            "data",
            "features",
            "matrix.json",
            "matrix.csv",
            "matrix.md",
            "results.parquet",
        ),
        *("junit.xml", FEED, "sitemap.xml", FOLDER, CARD),
    )
)


@dataclass(frozen=True, kw_only=True)
class ReportSummary:
    """The written report.

    Parameters
    ----------
    out : Path
        The folder. Its ``index.html`` is the first page.
    cells : int
        Cells in the matrix, including planned cells without a record.
    totals : dict
        Cells by key of their kind (`harness.matrix.marks.KINDS`).
    not_as_expected, missing, conflicts, unanswered : int
        Numbers of cells that need attention. The first number includes the second. `unanswered` cells keep an earlier
        run's answer because a later run had none.
    warnings : tuple of str
        Warnings from reading the records.
    """

    out: Path
    cells: int
    totals: dict[str, int]
    not_as_expected: int
    missing: int
    conflicts: int
    unanswered: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        parts = ", ".join(f"{count} {KINDS[key].word}" for key, count in self.totals.items())
        conflicts = f"; {self.conflicts} came out differently in different runs" if self.conflicts else ""
        return f"{self.cells} cells: {parts}{conflicts}"


def build_report(
    paths: Sequence[Path],
    out: Path = DEFAULT_OUT,
    cases: Path | Sequence[Path] | None = None,
    programs: Sequence[Case] = (),
    *,
    history: Path | None = None,
    address: str = "",
    rejudge: Rejudge | None = None,
    where: str | None = None,
    title: str = TITLE,
    export: Sequence[str] = (),
    published: Path | None = None,
    artifacts: Path | None = None,
    coming: bool = False,
) -> ReportSummary:
    """Write the site (`harness.report.site`), and the exports: ``matrix.json``, ``.csv``, ``.md`` and more.

    The same records give the same bytes: the report contains no clock time and no facts about the machine that writes
    it.

    Parameters
    ----------
    paths : sequence of Path
        Files of records or Parquet, or folders of them.
    out : Path
        Folder to create, or an earlier report to replace.
    cases : Path or sequence of Path, optional
        Folders of the cases, whose files the report shows.
    programs : sequence of Case
        Programs in the project's configuration, whose files the report shows as well.
    history : Path, optional
        A history (`harness.analysis.history`). The report compares its runs, and each cell shows its earlier outcomes.
    address : str, optional
        The published address of the report, for the links of the feed.
    rejudge : callable, optional
        Returns a record with a new verdict from the cases' current expectations.
    where : str, optional
        A condition on cells (`harness.model.cell.RESULTS`). The report and its history contain only these cells.
    title : str
        The title of the answer page.
    export : sequence of str
        Names of exporters of other distributions (`harness.report.build`).
    published : Path, optional
        A published matrix (`harness.published`) to show next to the records, or alone without any. Counts and exports
        cover the records. A published matrix alone has no exports, because its own folder contains them.
    artifacts : Path, optional
        Folder of the built artifacts (``--keep-artifacts``), whose PTX and SASS cells then show.
    coming : bool
        Whether every page says that the reader's own cells are coming.

    Raises
    ------
    RecordError
        If the records are damaged.
    NothingToReport
        If there are neither records nor planned cells.
    UsageError, NothingToRun
        If `where` is invalid, or holds for no cell.
    ReportError
        If `out` contains anything other than an earlier report.
    """
    check(export)
    with _no_collection():
        read = _read(paths, (cases, programs), history, rejudge, where, published)
        site = replace(read, title=title, address=address, artifacts=artifacts, coming=coming)
        table, merged = site.own_table, site.own or site.merged
        # Both halves need these values.
        _ = site.code, site.known.entries, site.frame
        with _replacing(Path(out)) as folder:
            others = chain(front_files(site), _exports(site, address), exported(export, merged.records))
            in_parallel(
                lambda: _write(folder, chain(case_files_of(site), _lists(site))),
                lambda: _write(folder, others),
                # For a small report, starting a process takes longer than the report.
                apart=len(site.table) > _MANY,
            )
    counts = totals(table)
    return ReportSummary(
        out=Path(out),
        cells=len(table),
        totals=counts,
        not_as_expected=unexpected_among(counts),
        missing=len(merged.missing),
        conflicts=len(merged.conflicts),
        unanswered=len(merged.unanswered),
        warnings=(*site.warnings, *(site.code.warnings if site.code else ())),
    )


def _lists(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield exports that run in the half with the cases' pages, to balance the halves.

    They use no library that starts threads.
    """
    if site.exported:
        yield "matrix.md", matrix_markdown(site.own_table).encode()
        yield "junit.xml", junit_xml(site.own or site.merged)


def _exports(site: Site, address: str) -> Iterator[tuple[str, bytes]]:
    merged, table = site.own or site.merged, site.own_table
    if site.exported:
        inputs = merged.inputs.of({record["fingerprint"] for record in merged.records})
        yield "matrix.json", matrix_json(merged, table, site.files, site.warnings)
        yield "matrix.csv", matrix_csv(table)
        yield "results.parquet", results_parquet(merged.records, merged.plans, inputs)
    for name, data in badges(table).items():
        yield f"badges/{name}", data
    if site.fed:
        entries = entries_of(site.history) if site.history is not None else ()
        yield FEED, atom_feed(entries, site.releases, address=address)


def _read(
    paths: Sequence[Path],
    shown: tuple[Path | Sequence[Path] | None, Sequence[Case]],
    history: Path | None,
    rejudge: Rejudge | None,
    where: str | None,
    published: Path | None,
) -> Site:
    folders = (shown[0],) if isinstance(shown[0], Path) else tuple(shown[0] or ())
    results = read_results(paths)
    merged = tell_devices(merge_and_judge(results, rejudge))
    publication = read_publication(published, rejudge) if published else None
    own = merged if merged.records or merged.missing else None
    if publication:
        merged = side_by_side(own, publication.merged) if own else publication.merged
    elif not own:
        why = f" ({'; '.join(results.incomplete)})" if results.incomplete else ""
        raise NothingToReport(f"no records in {', '.join(map(str, paths)) or 'nothing'}{why}: run some cells first")
    earlier = read_history(history) if history is not None else None
    if where:
        merged = choose(merged, where)
        own = own and of_own(merged)
        kept = {cell["cell"] for cell in (*merged.records, *merged.missing)}
        earlier = earlier and replace(earlier, table=earlier.table[earlier.table["cell"].isin(kept)])
    warnings = [*results.warnings, *(earlier.warnings if earlier else ())]
    if publication:
        warnings += publication.warnings
    return Site(
        merged=merged,
        table=cells_frame(merged),
        warnings=tuple(warnings),
        cases=folders,
        programs={case.name: case for case in shown[1]},
        history=earlier,
        publication=publication,
        own=own if publication else None,
        wheels=wheels_in(published) if publication else (),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Disable Python's cyclic collector, which would scan millions of acyclic records repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _replacing(out: Path) -> Iterator[Path]:
    """Yield a folder to fill. It replaces `out` at the end if no error occurred."""
    out = out.resolve()
    if out.exists():
        _check_ours(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(f".{out.name}.new")
    new.mkdir(mode=0o700, exist_ok=True)
    with exclusive_folder(
        new,
        lambda who: ReportError(
            f"{out}: another report is written there{who}: wait until that one has ended, or name another folder"
        ),
    ):
        try:
            _make_room(new, out)
            folder = new / "new"
            folder.mkdir()
            yield folder
            if out.exists():
                out.rename(new / "old")
            try:
                folder.rename(out)
            except BaseException:
                if (new / "old").exists():
                    (new / "old").rename(out)
                raise
        finally:
            shutil.rmtree(new, ignore_errors=True)


def _make_room(new: Path, out: Path) -> None:
    """Restore and remove the files of a killed report."""
    if (new / "old").exists() and not out.exists():
        (new / "old").rename(out)
    for left in new.iterdir():
        shutil.rmtree(left)


def _check_ours(out: Path) -> None:
    """Refuse to replace anything except a report: ``--out .`` must not delete a user's work."""
    if not out.is_dir():
        raise ReportError(f"{out} is a file: name a folder for the report")
    others = sorted({item.name for item in out.iterdir()} - _OURS)
    if others:
        raise ReportError(f"{out} contains {others[0]}, which is not part of a report: name another folder")


def _write(folder: Path, files: Iterable[tuple[str, bytes]]) -> None:
    for name, data in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
