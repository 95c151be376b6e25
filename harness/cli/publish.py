"""``cumatrix publish``."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.options import cases_option, out_folder, results_argument
from harness.cli.terminal import say
from harness.errors import PartUnavailable, UsageError
from harness.protocol.text import counted


@click.command(cls=Command)
@results_argument()
@out_folder("reports/matrix", "Folder of the matrix")
@cases_option("The cases that the results are of")
def publish(results: tuple[Path, ...], out: Path, cases: Path) -> int:
    """Pack records for `ask` and `report`.

    RESULTS are .jsonl or .parquet files, folders of them, or an earlier published matrix to extend. The output is results.parquet (every
    record, without most logs), answers.json.gz (for `cumatrix ask`) and manifest.json (runs, commands, versions, and a digest of each
    case). Cells of a case whose program has changed are left out, and the case is named.

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
            say(f"  {case}: {counted(count, 'cell')}", err=True)
    sizes = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in done.sizes.items())
    say(f"{counted(done.cells, 'cell')}, {done.answered:,} of them answered by a compiler: {sizes}", err=True)
    say(out)
    return 0
