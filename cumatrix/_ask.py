"""Questions in plain words, answered from results."""

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
        What readers call it, the backend, and the header library whose versions count; that is empty mostly.
    targets : tuple of str
        The architectures of the finding.
    kind : str
        ``works``, ``since``, ``but``, ``part``, ``until``, ``never``, ``fault`` (a known one), ``na`` or ``untried``.
    text, note : str
        The answer, and what else is known, in words.
    tried : str
        The tried versions and CUDA releases, in words; empty without any.
    cells : tuple of str
        Ids of the cells that show it.
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
    """A feature that a question is about.

    Parameters
    ----------
    case, title, variants : str
        The case, its title, and which variants of it.
    tools : tuple of ToolAnswer
        What is known, by tool.
    faults : tuple of tuple
        Known faults: the reason and the address of a page, which may be empty.
    source : str
        ``published``, ``own`` (your results in ``reports``), or ``results`` for those that were named.
    stale : bool
        Whether it was another version of the case that was published.
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
        The features that it is about, those that fit best first; what is published before your own.
    more : int
        Number of further ones.
    unknown : tuple of str
        Words of the question that no feature has.
    newest : str
        Day of the newest run; empty where nothing tells.
    commands : tuple of str
        What tries it for real.
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
        """As the command prints it, without colours."""
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
    """Answer a question in plain words, as ``cumatrix ask`` does; nothing is compiled.

    Parameters
    ----------
    question : str
        A feature, and architectures, CUDA releases, tools and libraries: ``"bf16 wmma sm_75"``.
    results : Results, path or several paths, optional
        What to answer from: `Results`, or ``.parquet``, ``.jsonl`` or folders of these. Without it, the matrix that is published with
        cumatrix, and your own results in ``reports``.

    Raises
    ------
    UsageError
        When the question names no feature, or an architecture or a release that nothing knows; when there is no published matrix.
    RecordError
        When results cannot be read.
    NothingToRun
        When there are none.
    PartUnavailable
        Without pyarrow, for Parquet.
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
