"""``cumatrix annotate``."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.options import all_cases_option, results_argument
from harness.cli.terminal import say_commands, say_json
from harness.records import merge, read_records
from harness.records.failures import findings
from harness.report.junit import DOCUMENTS, github


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
@all_cases_option("Folder of cases, in which files are looked for")
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
    merged = merge(read.records, read.plans)
    found = findings(merged.records, cases)
    if form == "github":
        say_commands(github(found))
    else:
        say_json(DOCUMENTS[form](found))
    return 0
