"""``cumatrix explain``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.artifacts import kernels_of_log
from harness.causes import Match, budget, causes_of, explain_log
from harness.cli.command import Command
from harness.cli.complete import where_option
from harness.cli.files import SUFFIXES
from harness.cli.options import RESULTS, cells_in, one_cell
from harness.cli.repro import command_for
from harness.cli.terminal import console_for, say_json
from harness.diagnostics import one_line, tells_most
from harness.errors import UsageError
from harness.model import Target, TargetError
from harness.records import Record, failed_at
from harness.records.merge import case_of

_MAX_BYTES = 32 << 20
_WHO = {
    "nvrtc": "NVRTC",
    "gcc": "the host compiler",
    "ld": "the host's linker",
    "sh": "the shell",
    "nvvm": "NVVM",
    "python": "Python",
}


@click.command(cls=Command)
@click.argument("what", required=False, metavar="[CELL|LOGFILE]")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Records with CELL: .jsonl files, results.parquet or folders. Default: reports.",
)
@where_option(
    """'case == "wmma/fragments" and status == "crashed"'""",
    "Search CELL, or the only cell, among cells for which this holds",
)
@click.option("--target", metavar="T", help="With a log of ptxas -v: the architecture whose limits count.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there.")
def explain(what: str | None, results: tuple[Path, ...], where: str | None, target: str | None, as_json: bool) -> int:
    """Name the cause and the remedy of an error in a log.

    LOGFILE is a compiler's log, or - for standard input. CELL is a cell's id, or a unique part of it. For built
    kernels, explain compares registers and shared memory with the limits of the compute capability. The exit code is 1
    if the cause of an error is unknown.

    \b
    cumatrix explain 'wmma/accumulator-16x16x8[arch=given] cupy-jitify@13.0.0 cuda12.4 sm_80' --results reports
    cumatrix explain --where 'case == "wmma/fragments" and target == "sm_80" and verdict == "fail"'
    cumatrix explain build.log
    pip install . 2>&1 | cumatrix explain -
    """
    if where:
        if what and _is_log(what, results):
            raise UsageError(f"--where chooses a cell among records, and {what} is a log: leave one of them out")
        return _cell(_find(what or "", results, where), results, as_json)
    if what is None:
        raise UsageError("name a cell or a log, or choose a cell with --where: see cumatrix explain --help")
    if _is_log(what, results):
        return _log(what, target, as_json)
    return _cell(_find(what, results), results, as_json)


def _is_log(what: str, results: Sequence[Path]) -> bool:
    """Return whether the argument is a log instead of a cell; a program is not a log."""
    return what == "-" or (not results and Path(what).is_file() and Path(what).suffix not in SUFFIXES)


def _log(name: str, target: str | None, as_json: bool) -> int:
    if name != "-" and Path(name).suffix in (".jsonl", ".parquet"):
        raise UsageError(f"{name} holds records, not a log: cumatrix explain CELL --results {name}")
    try:
        if target:
            Target.parse(target)
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as file:
            data = file.read(_MAX_BYTES)
    except TargetError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{name}: cannot be read: {error.strerror}") from None
    text = data.decode("utf-8", "replace")
    explained = explain_log(text)
    matches, unknown = explained.matches, explained.unexplained
    kernels = kernels_of_log(text, target)
    known = any(not match.of_warning for match in matches)
    if as_json:
        first = {"line": unknown.number, "text": one_line(unknown.text)} if unknown else None
        say_json(
            {
                "log": name,
                "causes": _causes(matches),
                "unexplained": first,
                "kernels": [_budget(kernel, arch) for kernel, arch in kernels],
            }
        )
    else:
        console = console_for(sys.stdout)
        if unknown:
            console.print(Text(f"no cause is known of the {'first ' if known else ''}error in this log:"))
            console.print(Text(f"  line {unknown.number}: {one_line(unknown.text, 300)}", "dim"), soft_wrap=True)
        _show_causes(console, matches)
        _show_budgets(console, kernels)
        if not matches and not kernels and not unknown:
            console.print("no known cause is in this log", markup=False)
    return 0 if known or ((matches or kernels) and not unknown) else 1


def _find(what: str, results: Sequence[Path], where: str | None = None) -> Record:
    if not results and not RESULTS.is_dir():
        what = f"{what} is no file, and there" if what else "there"
        raise UsageError(f"{what} is no folder {RESULTS} to look for a cell in: name the records with --results")
    records = cells_in(results, where)
    return records[one_cell(what, list(records), who="no cell" if where else f"{what} is no file, and no cell")]


def _cell(record: Record, results: Sequence[Path], as_json: bool) -> int:
    matches = causes_of(record)
    known = any(not match.of_warning for match in matches)
    failed = record["status"] not in ("built", "unsupported")
    repeat, to_add = command_for(record, results)
    kernels = [(kernel, record["target"]) for kernel in record["artifact"]["kernels"]] if record["artifact"] else []
    if as_json:
        keys = ("cell", "status", "stage", "verdict", "expected", "diagnostics")
        say_json(
            {
                **{key: value for key, value in record.items() if key in keys},
                "causes": _causes(matches),
                "kernels": [_budget(*kernel) for kernel in kernels],
                "repro": f"{repeat} {to_add}".strip(),
            }
        )
    else:
        console = console_for(sys.stdout)
        what = failed_at(record).replace("_", " ")
        console.print(
            Text.assemble((one_line(record["cell"]), "bold"), f": {what} ({record['verdict']})"), soft_wrap=True
        )
        for item in record["diagnostics"][:3]:
            words = tells_most(item["message"], record["log"])
            console.print(Text(f"  {item['severity']}: {one_line(words, 300)}"), soft_wrap=True)
        if record["reason"]:
            console.print(Text(f"  {one_line(record['reason'], 300)}"), soft_wrap=True)
        if failed and not known:
            console.print("no cause is known of this; the log is in its record", markup=False)
        _show_causes(console, matches)
        expected = record["expected"]
        if expected["reason"]:
            console.print(Text(f"The case says: {one_line(expected['reason'])}"), soft_wrap=True)
            console.print(Text(f"  {one_line(expected['link'])}", "dim"), soft_wrap=True)
        _show_budgets(console, kernels)
        if repeat:
            console.print()
            named = f", with the place of {one_line(case_of(record), 100)}" if to_add else ""
            console.print(
                Text(f"To repeat this without cumatrix{named}: {f'{repeat} {to_add}'.strip()}"), soft_wrap=True
            )
    return 1 if failed and not known else 0


def _show_causes(console: Console, matches: Sequence[Match]) -> None:
    for match in matches:
        cause = match.cause
        line = f"line {match.line}: " if match.line else ""
        where = f" ({cause.where})" if cause.where else ""
        console.print()
        console.print(
            Text.assemble("Of a warning: " if match.of_warning else "", (cause.title, "bold yellow"), where),
            soft_wrap=True,
        )
        if match.text:
            who = f", said by {_WHO.get(match.tool, match.tool)}" if match.tool else ""
            console.print(Text(f"  {line}{one_line(match.text, 200)}{who}", "dim"), soft_wrap=True)
        console.print(Text.assemble(("  Cause: ", "bold"), cause.cause), soft_wrap=True)
        console.print(Text.assemble(("  Remedy: ", "bold green"), cause.remedy), soft_wrap=True)
        for link in cause.links:
            console.print(Text(f"  {link}", "dim"), soft_wrap=True)


def _show_budgets(console: Console, kernels: Sequence[tuple[Mapping[str, Any], str]]) -> None:
    if not kernels:
        return
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for name in ("kernel", "target"):
        table.add_column(name, overflow="fold")
    for name in ("registers", "shared", "spills", "most threads", "dynamic shared", "occupancy at 256"):
        table.add_column(name, justify="right")
    sources, warnings = set(), []
    for kernel, target in kernels:
        found = budget(kernel, target)
        name = one_line(kernel["name"], 60)
        if found is None:
            table.add_row(
                Text(name),
                target,
                _known(kernel.get("num_regs")),
                _known(kernel.get("shared_bytes")),
                _known(kernel.get("spill_bytes")),
                "",
                "",
                "",
            )
            warnings.append(f"{name}: NVIDIA's tables have no limits of {target}")
            continue
        at_256 = next((f"{item.percent} % ({item.limit})" for item in found.occupancy if item.threads == 256), "none")
        table.add_row(
            Text(name), target, f"{_known(found.registers)}/255", f"{_known(found.shared)}/{found.limits.block_shared}", _known(found.spills),
            str(found.threads), str(found.dynamic), at_256,
        )  # fmt: skip
        sources.add(found.limits.source)
        warnings += [f"{name}: {warning}" for warning in found.warnings]
    console.print()
    console.print(table)
    for warning in warnings:
        console.print(Text.assemble(("  ! ", "yellow"), warning), soft_wrap=True)
    for source in sorted(sources):
        console.print(Text(f"  limits: {source}", "dim"), soft_wrap=True)


def _known(value: int | None) -> str:
    return "?" if value is None else str(value)


def _budget(kernel: Mapping[str, Any], target: str) -> dict[str, Any]:
    found = budget(kernel, target)
    return {"target": target, **(asdict(found) if found else {"kernel": kernel["name"], "limits": None})}


def _causes(matches: Sequence[Match]) -> list[dict[str, Any]]:
    return [
        {"name": item.cause.name, "title": item.cause.title, "where": item.cause.where, "line": item.line, "text": item.text,
         "of": "warning" if item.of_warning else "error", "said_by": item.tool,
         "cause": item.cause.cause, "remedy": item.cause.remedy, "links": list(item.cause.links)}
        for item in matches
    ]  # fmt: skip
