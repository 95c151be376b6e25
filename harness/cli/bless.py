"""``cumatrix bless``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from harness.cases.discovery import find_cases
from harness.cases.load import project_of_case
from harness.cli.command import Command
from harness.cli.complete import where_option
from harness.cli.options import cases_option
from harness.cli.terminal import console_for, say
from harness.errors import NothingToRun, PartUnavailable, UsageError
from harness.protocol.text import counted
from harness.records import merge, read_records
from harness.records.files import replace_files
from harness.records.merge import case_of
from harness.records.record_names import choose

if TYPE_CHECKING:
    from harness.bless.bless import Blessing

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_RESULTS = (".jsonl", ".parquet")


@click.command(cls=Command)
@click.argument("what", nargs=-1, required=True, metavar="RESULTS… [CASE]…")
@cases_option(name="root")
@where_option("""'toolkit >= "12.0" and backend != "nvcc"'""", "Learn only from cells for which this holds")
@click.option(
    "--anew", "relearn", is_flag=True, help="Also learn expectations that are right, which may simplify them."
)
@click.option("--diff", "only_diff", is_flag=True, help="Show the changes, and write nothing.")
@click.option("-y", "--yes", is_flag=True, help="Write without asking.")
def bless(what: tuple[str, ...], root: Path, where: str | None, relearn: bool, only_diff: bool, yes: bool) -> int:
    """Write observed outcomes into cases as expectations.

    RESULTS are .jsonl files or folders of them. CASE is a case's name, a topic or a path, as for `cumatrix run`. By
    default, bless updates all cases with results.

    \b
    cumatrix run demo/sum -t 11.8,12.4,12.9,13.0 --out sum.jsonl
    cumatrix bless sum.jsonl demo/sum --diff
    cumatrix bless sum.jsonl demo/sum

    Cells that do not meet their expectation get a new one, with the smallest condition that separates them from all
    other tested cells: cc < "8.0", toolkit >= "12.4" and toolkit < "12.8". Expectations that are right, or that apply
    to no tested cell, stay unchanged. A wrong expectation keeps its reason, link and comments if its cells still fail.
    bless then counts the cells without a result, shows the difference and asks before it writes.

    Look at the outcomes before you bless them: bless treats every outcome as right. The reason of a new expectation
    begins with "observed". Replace it by the real one, and set xfail = true for a fault that should be fixed. bless
    refuses results with unavailable cells, with harness errors, or with different outcomes of a cell in two runs.

    The exit code is 1 if --diff shows a difference, or if you answer no.
    """
    try:
        from harness.bless.bless import bless as bless_case
    except ImportError as error:
        raise PartUnavailable(f"bless needs {error.name}: pip install {error.name}") from None
    results, selection = _sorted_out(what, root)
    if not (yes or only_diff or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError(
            "bless asks before it writes, which needs a terminal: --yes writes without asking, --diff only shows"
        )
    read = read_records(results)
    for warning in read.warnings:
        say(f"cumatrix: {warning}", err=True)
    merged = merge(read.records, read.plans)
    if where:
        merged = choose(merged, where)
    paths = find_cases(root, selection)
    names = {path: path.parent.relative_to(root).as_posix() for path in paths}
    owners = {name: project_of_case(path.parent, name) for path, name in names.items()}
    cases = [(case_of(record), record.get("project", "")) for record in merged.records if not record.get("program")]
    # Cases of the same name in other projects are different cases.
    known = {name for name, project in cases if project == owners.get(name)}
    for path in paths:
        if selection and names[path] not in known:
            say(f"{names[path]}: no results", err=True)
    blessings = [bless_case(path, root, merged, relearn=relearn) for path in paths if names[path] in known]
    if not blessings:
        raise NothingToRun(
            "there are no results of these cases" if selection else "there are no results of any case here"
        )
    console = console_for(sys.stdout)
    for each in blessings:
        _show(console, each)
    changed = [each for each in blessings if each.after != each.before]
    if not changed:
        return 0
    if only_diff:
        return 1
    files = "this file" if len(changed) == 1 else f"these {len(changed)} files"
    if not yes and not click.confirm(f"Write {files}?", default=False, err=True):
        say("nothing is written", err=True)
        return 1
    _write(changed)
    return 0


def _sorted_out(what: Sequence[str], root: Path) -> tuple[list[Path], list[str]]:
    """Split the arguments into results and names of cases."""
    results, selection = [], []
    for item in what:
        path = Path(item)
        inside = root.is_dir() and path.exists() and path.resolve().is_relative_to(root.resolve())
        if path.suffix in _RESULTS or (path.is_dir() and not inside and next(path.rglob("*.jsonl"), None)):
            results.append(path)
        else:
            selection.append(item)
    for path in results:
        if path.suffix == ".parquet":
            raise UsageError(f"{path}: bless reads .jsonl files, which tell all that was asked for")
    if not results:
        raise UsageError(f"name the results, .jsonl files or folders of them: {what[0]} is neither")
    return results, selection


def _show(console: Console, each: Blessing) -> None:
    for line in each.diff:
        style = "bold" if line.startswith(("---", "+++")) else _STYLES.get(line[:1], "")
        console.print(Text(line, style), soft_wrap=True)
    found = each.proposal
    cells = counted(each.cells, "cell")
    if each.after == each.before:
        say(
            f"{each.name}: all of {cells} are as expected, nothing changes"
            if not found.wrong
            else f"{each.name}: nothing changes",
            err=True,
        )
    else:
        counts = {"new": found.new, "changed": found.changed, "dropped": found.dropped}
        words = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "in another order"
        say(f"{each.name}: {found.wrong:,} of {cells} not as expected; expectations: {words}", err=True)
    for sentence in each.open:
        say(f"  no evidence: {sentence}", err=True)


def _write(changed: Sequence[Blessing]) -> None:
    for each in changed:
        if each.path.read_bytes().decode("utf-8-sig") != each.before:
            raise UsageError(f"{each.name} was changed in the meantime: nothing is written")
    modes = {each.path: each.path.stat().st_mode for each in changed}
    marks = {
        each.path: b"\xef\xbb\xbf" if each.path.read_bytes().startswith(b"\xef\xbb\xbf") else b"" for each in changed
    }
    replace_files({each.path: marks[each.path] + each.after.encode() for each in changed})
    for path, mode in modes.items():
        path.chmod(mode & 0o7777)
    for each in changed:
        say(f"{each.path} is written", err=True)
