"""``cumatrix report``, ``merge`` and ``annotate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from harness.cli.command import Command
from harness.cli.complete import where_option
from harness.cli.options import all_cases_option, out_folder, results_argument
from harness.cli.terminal import say, say_commands, say_json
from harness.errors import NothingToRun, UsageError, needs
from harness.matrix.marks import counted_group, grouped, surprises_among
from harness.project.current import here
from harness.project.programs import configured
from harness.protocol.text import counted
from harness.published import is_published, published_folder
from harness.records import merge as merge_records
from harness.records import read_records, write_merged
from harness.records.failures import findings
from harness.records.plan import missing_shards
from harness.records.record_names import choose
from harness.report.junit import DOCUMENTS, github

OWN = Path("reports")
"""Default folder of records."""


@click.command(cls=Command)
@results_argument(required=False)
@click.option(
    "--published/--no-published",
    default=None,
    help="Also show the matrix that is published with cumatrix. Default: if no RESULTS are named.",
)
@click.option(
    "--matrix",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Another published matrix (cumatrix publish) instead.",
)
@out_folder("reports/html", "Folder of the page")
@all_cases_option("Folder of cases, whose current expectations judge the results")
@click.option(
    "--history",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="History of earlier runs (cumatrix history): changes, trends, and the outcomes of each cell.",
)
@where_option("""'toolkit == "12.9" and backend in ("nvrtc", "nvcc")'""", "Only the cells for which this holds")
@click.option("--title", default="CUDA compatibility matrix", show_default=True, help="Title of the page.")
@click.option(
    "--export",
    multiple=True,
    metavar="NAME",
    help="Also run an exporter of another distribution, into exports/NAME.",
)
@click.option(
    "--artifacts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of artifacts (--keep-artifacts): cells then show their PTX, and their SASS if an installed CUDA has nvdisasm (cumatrix toolkits install 13.5 --with nvdisasm), next to another cell's. Default: artifacts of the project's configuration.",
)
@click.option(
    "--coming",
    is_flag=True,
    help="Before a run: write the page of the published matrix alone, with a note that your cells follow. An earlier page stays.",
)
@click.option("--address", default="", metavar="URL", help="Address of the published page, for the links of its feed.")
def report(
    results: tuple[Path, ...],
    published: bool | None,
    matrix: Path | None,
    out: Path,
    cases: tuple[Path, ...],
    history: Path | None,
    where: str | None,
    title: str,
    address: str,
    export: tuple[str, ...],
    artifacts: Path | None,
    coming: bool,
) -> int:
    """Build the page from records.

    RESULTS are .jsonl files, results.parquet of earlier reports, or folders of them. By default, the page shows the
    folder reports and, separately, the published matrix. The output is index.html and its pages, JSON of each feature
    (api/v1), matrix.json, matrix.csv, matrix.md, results.parquet, junit.xml, a badge per environment and, with
    --history or a published matrix, a feed. Exports contain your records: the page of a published matrix alone
    (cumatrix report reports/matrix) has no exports, since that folder's results.parquet is its export.

    \b
    cumatrix report
    cumatrix report reports --where 'topic == "wmma" and cc >= "9.0"' --out wmma
    """
    if coming and (results or published is False):
        raise UsageError("--coming shows the published matrix alone: it takes no RESULTS and no --no-published")
    if coming and (out / "index.html").is_file():
        say(f"Page of an earlier report: {out / 'index.html'}")
        return 0
    alone = len(results) == 1 and matrix is None and published is None and is_published(results[0])
    if alone:
        matrix, results = results[0], ()
    published_matrix = matrix or (published_folder() if published or (published is None and not results) else None)
    if matrix and published is False:
        raise UsageError("--matrix and --no-published exclude each other")
    if matrix and not is_published(matrix):
        raise UsageError(f"{matrix} is no published matrix: cumatrix publish makes one")
    if (published or coming) and published_matrix is None:
        raise UsageError(
            "this installation has no published matrix: a checkout has one in reports/matrix, and the wheel contains it"
        )
    if not results and not alone and not coming:
        results = (OWN,) if OWN.is_dir() else ()
    if not results and published_matrix is None:
        raise UsageError(f"there is no folder {OWN} here: run cases first, or name results")
    named = click.get_current_context().get_parameter_source("artifacts") is ParameterSource.COMMANDLINE
    if named and artifacts and not artifacts.is_dir():
        raise UsageError(f"there is no folder {artifacts}: cumatrix run --keep-artifacts {artifacts} makes it")
    write_page(
        results, out, cases, history=history, where=where, title=title, address=address, export=export, published=published_matrix,
        artifacts=artifacts, coming=coming,
    )  # fmt: skip
    return 0


def write_page(
    results: Sequence[Path],
    out: Path,
    cases: Sequence[Path],
    *,
    history: Path | None = None,
    where: str | None = None,
    title: str = "CUDA compatibility matrix",
    address: str = "",
    export: Sequence[str] = (),
    published: Path | None = None,
    artifacts: Path | None = None,
    coming: bool = False,
) -> None:
    """Write the page, judged by the current cases and configuration, and print a summary."""
    try:
        from harness.analysis.cell_sets import rejudger
        from harness.report.build import build_report
    except ImportError as error:
        raise needs("the report", "report", error) from None
    programs = configured(here())
    summary = build_report(
        results,
        out,
        [folder for folder in cases if folder.is_dir()],
        programs,
        history=history,
        address=address,
        title=title,
        # The page before a run must be ready quickly, so the matrix keeps its published verdicts.
        rejudge=None if coming else rejudger(cases, programs),
        where=where,
        export=export,
        published=published,
        artifacts=artifacts,
        coming=coming,
    )
    for warning in summary.warnings:
        say(f"cumatrix: {warning}", err=True)
    if coming:
        say(f"Page of the published matrix: {out / 'index.html'}")
        return
    words = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in summary.totals.items())
    say(f"{counted(summary.cells, 'cell')}: {words}; {surprises_among(summary.totals)} not as expected", err=True)
    say(", ".join(counted_group(group, count) for group, count in grouped(summary.totals).items()), err=True)
    if summary.conflicts:
        say(f"{summary.conflicts} came out differently in different runs: see matrix.html", err=True)
    if summary.unanswered:
        say(f"{summary.unanswered} keep an earlier run's answer, because a later run had none", err=True)
    say(out / "index.html")


@click.command(cls=Command)
@results_argument()
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="File of the merged records.",
)
@where_option("""'environment == "cupy13" and status != "built"'""", "Only the cells for which this holds")
def merge(results: tuple[Path, ...], out: Path, where: str | None) -> int:
    """Merge the records of several runs.

    If two runs disagree on a cell, the later one counts and merge lists the disagreement. A run with an unavailable part
    does not replace another run's answer. merge also lists planned cells without a record.

    \b
    cumatrix merge reports --out all.jsonl
    cumatrix merge reports --where 'toolkit >= "12.0"' --out cuda12.jsonl
    """
    read = read_records(results, inputs=True)
    for warning in read.warnings:
        say(f"cumatrix: {warning}", err=True)
    merged = merge_records(read.records, read.plans, read.inputs)
    if not merged.records and not merged.missing:
        raise NothingToRun("there are no records in these files")
    if where:
        merged = choose(merged, where)
    write_merged(merged, out)
    for conflict in merged.conflicts:
        say(f"cumatrix: {conflict}", err=True)
    for item in merged.unanswered:
        say(f"no answer from a later run: {item}", err=True)
    for cell in merged.missing:
        say(f"never arrived: {cell['cell']}", err=True)
    shards = missing_shards(merged.plans)
    for sentence in shards:
        say(sentence, err=True)
    there = " of the parts that are there" if shards else ""
    counts = (len(merged.records), f"{len(merged.missing)}{there} never arrived", f"{len(merged.conflicts)} disagreed")
    say("{} cells, {}, {}".format(*counts), err=True)
    return 1 if merged.missing or shards else 0


@click.command(cls=Command)
@results_argument()
@click.option(
    "--format",
    "form",
    type=click.Choice(["github", *DOCUMENTS]),
    default="github",
    show_default=True,
    help="GitHub's annotations, SARIF for code scanning, or GitLab's code quality report.",
)
@all_cases_option("Folder of cases, to find files in")
def annotate(results: tuple[Path, ...], form: str, cases: tuple[Path, ...]) -> int:
    """Report unexpected cells to CI, at file and line.

    RESULTS are .jsonl files or folders of them. Equal failures of a program become one annotation, with their cells and a command that
    compiles one of them again. The exit code is always 0: the run itself has failed already.

    \b
    cumatrix annotate reports                              in a step of GitHub Actions
    cumatrix annotate reports --format sarif > cumatrix.sarif
    cumatrix annotate reports --format gitlab > gl-code-quality-report.json
    """
    read = read_records(results)
    merged = merge_records(read.records, read.plans)
    found = findings(merged.records, cases)
    if form == "github":
        say_commands(github(found))
    else:
        say_json(DOCUMENTS[form](found))
    return 0
