"""``cumatrix publish``."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.options import cases_option, out_folder, results_argument
from harness.cli.terminal import say
from harness.errors import PartUnavailable, UsageError


@click.command(cls=Command)
@results_argument()
@out_folder("reports/matrix", "Folder of the matrix")
@cases_option("The cases that the results are of")
def publish(results: tuple[Path, ...], out: Path, cases: Path) -> int:
    """Make small files of results, which others can ask (cumatrix ask) and read (cumatrix report).

    RESULTS are .jsonl files, .parquet files, folders of them, or a matrix that was published before, to extend it. Writes results.parquet
    (every record, without most logs), answers.json.gz (what cumatrix ask reads) and manifest.json (runs, commands, versions, and a digest of each case).
    Cells of a case that was another program when they were compiled are left out, and the case is named.

    \b
    cumatrix publish reports/*.jsonl
    cumatrix publish reports/matrix tonight.jsonl --out reports/matrix
    """
    try:
        from harness.report.publish import publish as write
    except ImportError as error:
        raise PartUnavailable(f"a matrix to publish needs {error.name}: pip install 'cumatrix[report]'") from None
    if not cases.is_dir():
        raise UsageError(f"there is no folder {cases}: name that of the cases with --cases")
    done = write(results, out, cases)
    for note in done.notes:
        say(f"cumatrix: {note}", err=True)
    if done.stale:
        say("left out, because these cases are other programs now:", err=True)
        for case, count in done.stale.items():
            say(f"  {case}: {count:,} cells", err=True)
    sizes = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in done.sizes.items())
    say(f"{done.cells:,} cells, {done.answered:,} of them answered by a compiler: {sizes}", err=True)
    say(out)
    return 0
