"""``cumatrix ask``."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from harness.answers.answer import Answer, Asked, Finding, Said, grouped, tried
from harness.answers.cells import Known
from harness.answers.question import Chip
from harness.answers.read import read_known
from harness.answers.reply import PUBLISHED, Reply, published, reply_to
from harness.cli.command import Command
from harness.cli.terminal import console_for, say, say_json
from harness.diagnostics import one_line

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
    reply = reply_to(" ".join(question), read_known(results or [published()]))
    if as_json:
        say_json(_to_json(reply.answer, reply.asked, reply.known))
    else:
        for chip in reply.asked.unknown:
            near = f"; did you mean {' or '.join(chip.near)}?" if chip.near else ""
            say(f"cumatrix: no feature is called {chip.text}{near}", err=True)
        show_reply(console_for(sys.stdout), reply)
    return 0 if reply.tried else 3


def show_reply(console: Console, reply: Reply) -> None:
    """Print an answer."""
    before = ""
    for finding in reply.answer.findings:
        _show_finding(console, finding, title=finding.case != before)
        before = finding.case
    if reply.answer.more:
        console.print(
            f"and {reply.answer.more} more features: say more of what you look for, or see the page", style="dim"
        )
    if not reply.tried:
        found = reply.answer.findings
        console.print("Nobody tried that here. To try it:" if not found else "To try it:", style="bold")
        console.print(f"  {reply.commands[0]}", soft_wrap=True)
        if found:
            console.print(f"  {reply.commands[1]}    # with your own file", soft_wrap=True)
    console.print(Text(_age(reply.known), "dim"), soft_wrap=True)


def _show_finding(console: Console, finding: Finding, *, title: bool) -> None:
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
