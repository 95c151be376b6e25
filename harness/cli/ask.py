"""``cumatrix ask``."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from harness.answers.answer import Answer, Asked, Finding, Said, answer, command_for, grouped, tried
from harness.answers.cells import Known
from harness.answers.question import Chip, Vocabulary, parse
from harness.answers.read import read_known
from harness.answers.table import vocabulary_of
from harness.cli.command import Command
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line
from harness.errors import NothingToRun, UsageError

PUBLISHED = Path("reports/matrix/results.parquet")
"""The published matrix, in a checkout; a package has it beside `harness`."""

_SIGNS = {
    "works": ("✓", "green"),
    "since": ("✓", "green"),
    "but": ("✓", "green"),
    "part": ("◐", "yellow"),
    "until": ("✗", "red"),
    "never": ("✗", "red"),
    "fault": ("!", "yellow"),
    "na": ("–", "dim"),
    "untried": ("?", "dim"),
}
_PLAIN = {"✓": "+", "◐": "/", "✗": "x", "–": "-"}


@click.command(cls=Command)
@click.argument("question", nargs=-1, required=True, metavar="QUESTION")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help=f"Answer from these results (.parquet, .jsonl or a folder of .jsonl). Default: {PUBLISHED} of the checkout.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object on stdout.")
def ask(question: tuple[str, ...], results: tuple[Path, ...], as_json: bool) -> int:
    """Does it work? Since when? Answers from a published matrix, with proof; nothing is compiled.

    QUESTION names a feature, and may name architectures (sm_90, Turing, RTX 4090), CUDA releases (cuda 13.0), tools and libraries
    with or without versions (numba 0.59, cutlass 3.5.1, nvcc, jitify). Exits with 3 where nobody tried it, and names the command that does.

    \b
    cumatrix ask "bf16 wmma sm_75"
    cumatrix ask grid sync numba 0.59
    cumatrix ask does wgmma work on sm_120
    cumatrix ask cutlass 3.5.1 cuda 13.0 sm_90 --results reports
    """
    known = read_known(results or [_published()])
    if not known.rows:
        raise NothingToRun("there are no results to answer from")
    vocabulary = vocabulary_of(known)
    asked = Asked(chips=tuple(parse(" ".join(question), vocabulary)))
    _check(asked)
    found = answer(asked, known, vocabulary)
    if as_json:
        say_json(_to_json(found, asked, known))
    else:
        _show(found, asked, known, vocabulary)
    return 0 if any(said.proof for finding in found.findings for said in finding.said) else 3


def _published() -> Path:
    root = Path(__file__).parents[2]
    for place in (PUBLISHED, root / PUBLISHED, root / "harness" / "matrix_library" / PUBLISHED.name):
        if place.is_file():
            return place
    raise UsageError(f"there is no {PUBLISHED} here: name results to answer from, as in --results reports")


def _check(asked: Asked) -> None:
    """An architecture or a release that nothing knows is bad usage; a word is not."""
    for chip in asked.unknown:
        if chip.name != "word":
            what = {"target": "architecture", "version": "version of anything named before it"}.get(chip.name, "")
            near = (
                f"; the nearest {'are' if len(chip.near) > 1 else 'is'} {' and '.join(chip.near)}" if chip.near else ""
            )
            raise UsageError(f"nothing is known as {chip.text}{f', no {what}' if what else ''}{near}")
    if not any(chip.kind in {"word", "header", "tool"} for chip in asked.chips):
        words = [f"{chip.text}{f' (did you mean {chip.near[0]}?)' if chip.near else ''}" for chip in asked.unknown]
        what = f"no feature is called {', '.join(words)}" if words else "the question names no feature"
        raise UsageError(f"{what}: ask for one, such as wmma, grid sync or fp8; cumatrix cases list shows all")


def _show(found: Answer, asked: Asked, known: Known, vocabulary: Vocabulary) -> None:
    console = console_for(sys.stdout)
    for chip in asked.unknown:
        near = f"; did you mean {' or '.join(chip.near)}?" if chip.near else ""
        say(f"cumatrix: no feature is called {chip.text}{near}", err=True)
    before = ""
    for finding in found.findings:
        _show_finding(console, finding, title=finding.case != before)
        before = finding.case
    if found.more:
        console.print(f"and {found.more} more features: say more of what you look for, or see the page", style="dim")
    untried = not any(said.proof for finding in found.findings for said in finding.said)
    if untried:
        console.print("Nobody tried that here. To try it:" if not found.findings else "To try it:", style="bold")
        first = found.findings[0] if found.findings else None
        console.print(f"  {command_for(asked, vocabulary, first.case if first else '')}", soft_wrap=True)
        if first:
            console.print(f"  {command_for(asked, vocabulary)}    # with your own file", soft_wrap=True)
    console.print(Text(_age(known), "dim"), soft_wrap=True)


def _show_finding(console: Any, finding: Finding, *, title: bool) -> None:
    if title:
        console.print(Text.assemble((finding.title, "bold"), (f"  {finding.case}", "dim")), soft_wrap=True)
    if finding.label:
        console.print(Text(f" {finding.label}", "italic"), soft_wrap=True)
    told = [said for said in finding.said if not said.verdict.silent] or finding.said
    width = max(len(said.tool) for said in told)
    place = max(len(said.place) for said in told)
    for said in told:
        sign, style = _SIGNS[said.verdict.kind]
        if (console.encoding or "").lower().replace("-", "") != "utf8":
            sign = _PLAIN.get(sign, sign)
        line = Text(f"  {sign} ", style)
        line.append(f"{said.tool:<{width}}  {said.place:<{place}}  ", "default")
        line.append(said.verdict.text, f"{style} bold")
        more = "; ".join(filter(None, (said.verdict.note, said.overall)))
        line.append(f" ({more})" if more else "", "default")
        line.append(f"  tried {tried(said.entry, said.targets[-1])}" if said.proof else "", "dim")
        console.print(line, soft_wrap=True)
        for row in said.proof:
            reason = f": {one_line(row.message, 120)}" if row.message and row.letter != "w" else ""
            console.print(Text(f"      {row.cell}{reason}", "dim"), soft_wrap=True)
    silent: dict[str, list[str]] = {}
    for said in finding.said:
        if said not in told:
            silent.setdefault(said.verdict.text, []).append(said.tool)
    for text, tools in silent.items():
        console.print(Text(f"  ? {', '.join(dict.fromkeys(tools))}: {text}", "dim"), soft_wrap=True)
    for reason, link in (
        finding.faults[:3] if any(said.verdict.kind not in ("works", "na", "untried") for said in finding.said) else ()
    ):
        console.print(Text(f"  known fault: {reason}{f' ({link})' if link else ''}", "yellow"), soft_wrap=True)
    console.print()


def _age(known: Known) -> str:
    day = grouped(known.runs)
    text = f"From {sum(1 for row in known.rows if row.letter not in '.un'):,} answered cells"
    if not day:
        return f"{text}."
    days = (datetime.now(UTC).date() - date.fromisoformat(day)).days
    when = "today" if days < 1 else "1 day ago" if days == 1 else f"{days} days ago"
    return f"{text}, the newest of {day} ({when})."


def _to_json(found: Answer, asked: Asked, known: Known) -> dict[str, Any]:
    def said_of(said: Said) -> dict[str, Any]:
        return {
            "backend": said.entry.backend,
            "library": said.entry.axis,
            "targets": list(said.targets),
            "kind": said.verdict.kind,
            "answer": said.verdict.text,
            "note": "; ".join(filter(None, (said.verdict.note, said.overall))),
            "cells": [row.cell for row in said.proof],
        }

    def chip_of(chip: Chip) -> dict[str, Any]:
        return chip.to_json()

    return {
        "chips": [chip_of(chip) for chip in asked.chips],
        "newest": grouped(known.runs),
        "more": found.more,
        "findings": [
            {
                "case": finding.case,
                "title": finding.title,
                "variants": finding.label,
                "said": [said_of(said) for said in finding.said],
                "faults": [{"reason": reason, "link": link} for reason, link in finding.faults],
            }
            for finding in found.findings
        ],
    }
