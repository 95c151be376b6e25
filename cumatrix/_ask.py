"""Answers to questions in plain words, from results."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import cast

from rich.console import Console

from cumatrix._results import Results
from harness.answers.answer import command_for
from harness.answers.query import FeatureFinding as Found
from harness.answers.query import Query, ToolFinding
from harness.answers.question import Vocabulary
from harness.answers.store import Store, known_of
from harness.cli.ask_output import AnswerSource, print_answers, put, sources_of
from harness.cli.ask_output import Found as Answers
from harness.diagnostics import one_line
from harness.errors import NothingToRun
from harness.records import Record

_WIDTH = 160


@dataclass(frozen=True, kw_only=True)
class ToolAnswer:
    """The finding for a feature with one tool.

    Parameters
    ----------
    tool, backend, library : str
        The tool's name for readers, its backend, and the header library whose versions count. Most tools have no such library: empty.
    targets : tuple of str
        The architectures of the finding.
    kind : str
        ``works``, ``since``, ``but``, ``part``, ``until``, ``never``, ``fault`` (a known one), ``na`` or ``untried``.
    text, note : str
        The answer and its restrictions, in words.
    tried : str
        The tried versions and CUDA releases, in words; empty if there are none.
    cells : tuple of str
        Ids of the cells that the answer is based on.
    """

    tool: str
    backend: str
    library: str
    targets: tuple[str, ...]
    kind: str
    text: str
    note: str
    tried: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A feature that matches a question.

    Parameters
    ----------
    case, title, variants : str
        The case, its title, and the variants that match.
    tools : tuple of ToolAnswer
        The finding for each tool.
    faults : tuple of tuple
        Known faults: the reason, and the address of a page or an empty string.
    source : str
        ``published``, ``own`` (your results in ``reports``), or ``results`` (the argument of `ask`).
    stale : bool
        Whether the published results are of another version of the case.
    """

    case: str
    title: str
    variants: str
    tools: tuple[ToolAnswer, ...]
    faults: tuple[tuple[str, str], ...]
    source: str
    stale: bool


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a question; true if any cell was tried.

    Parameters
    ----------
    findings : tuple of Finding
        The matching features, best match first; published results come before your own.
    more : int
        Number of further matching features.
    unknown : tuple of str
        Words of the question that match no feature.
    newest : str
        Day of the newest run; empty if no record has one.
    commands : tuple of str
        Commands that compile the feature on your machine.
    """

    findings: tuple[Finding, ...]
    more: int
    unknown: tuple[str, ...]
    newest: str
    commands: tuple[str, ...]
    found: tuple[Answers, Query, Vocabulary] = field(repr=False, compare=False)

    def __bool__(self) -> bool:
        return any(answer.proven for _, answer in self.found[0])

    def __str__(self) -> str:
        """Return the text that the command prints, without colours."""
        text = io.StringIO()
        print_answers(Console(file=text, width=_WIDTH, color_system=None, legacy_windows=False), *self.found)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        parts = []
        for each in self.findings:
            rows = "".join(
                f"<tr><td>{_text(of_tool.tool)}</td><td>{_text(', '.join(of_tool.targets))}</td><td><b>{_text(of_tool.text)}</b></td>"
                f"<td>{_text(of_tool.note)}</td><td>{_text(of_tool.tried)}</td></tr>"
                for of_tool in each.tools
            )
            parts.append(
                f"<h4>{_text(each.title)}</h4><p><code>{_text(each.case)}</code> {_text(each.variants)}</p><table>"
                f"<thead><tr><th>tool</th><th>architectures</th><th>answer</th><th></th><th>tried</th></tr></thead><tbody>{rows}</tbody></table>"
            )
        if not self:
            parts.append(f"<p>Not tried: <code>{_text(self.commands[0])}</code></p>")
        return "".join(parts)


def ask(question: str, results: Results | str | PathLike[str] | Iterable[str | PathLike[str]] | None = None) -> Answer:
    """Answer a question in plain words, as ``cumatrix ask`` does, without compiling.

    Parameters
    ----------
    question : str
        A feature, and architectures, CUDA releases, tools and libraries: ``"bf16 wmma sm_75"``.
    results : Results, path or several paths, optional
        The results to search: `Results`, ``.parquet`` or ``.jsonl`` files, or folders of them. The default is the matrix published with
        cumatrix and your own results in ``reports``.

    Raises
    ------
    UsageError
        If the question names no feature, or an unknown architecture or release; if there is no published matrix.
    RecordError
        If results cannot be read.
    NothingToRun
        If there are no results.
    PartUnavailable
        If `results` is Parquet and pyarrow is missing.
    """
    if isinstance(results, Results):
        if not results.records:
            raise NothingToRun("there are no results to answer from")
        store = Store.of(known_of(cast("Record", record) for record in results.records))
        sources = [AnswerSource(name="results", title="these results", store=store)]
    else:
        paths = () if results is None else (results,) if isinstance(results, str | PathLike) else tuple(results)
        sources = sources_of(tuple(map(Path, paths)))
    query, vocabulary, found = put(question, sources)
    findings = [_finding(each, source) for source, answer in found for each in answer.findings]
    own = command_for(query, vocabulary)
    return Answer(
        findings=tuple(findings), more=sum(answer.more for _, answer in found), unknown=tuple(chip.text for chip in query.unknown),
        newest=max(source.newest for source in sources),
        commands=(command_for(query, vocabulary, findings[0].case), own) if findings else (own,), found=(found, query, vocabulary),
    )  # fmt: skip


def _finding(found: Found, source: AnswerSource) -> Finding:
    return Finding(
        case=found.case, title=found.title, variants=found.label, tools=tuple(map(_support, found.tools)), faults=found.faults,
        source=source.name, stale=source.stale(found.case),
    )  # fmt: skip


def _support(finding: ToolFinding) -> ToolAnswer:
    return ToolAnswer(
        tool=finding.tool, backend=finding.entry.backend, library=finding.entry.axis, targets=finding.targets, kind=finding.verdict.kind,
        text=finding.verdict.text, note="; ".join(filter(None, (finding.verdict.note, finding.overall))),
        tried=finding.tried if finding.proof else "", cells=tuple(row.cell for row in finding.proof),
    )  # fmt: skip


def _text(text: str) -> str:
    return escape(one_line(text))
