"""Answers of ``cumatrix ask``, for readers and as JSON."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.answers.answer import FeatureFinding, QueryResult, asks_for_itself, command_for, said_json, sentence_of
from harness.answers.query import Query
from harness.answers.question import Chip, Vocabulary, parse
from harness.answers.store import Store, read_packed, vocabulary_of
from harness.answers.verdict import WORKS
from harness.cli.terminal import console_for, printable, say
from harness.diagnostics import one_line
from harness.errors import NothingToRun, UsageError
from harness.matrix.marks import ANSWER_KINDS, GROUPS
from harness.model import Target
from harness.protocol.text import counted
from harness.published import ANSWERS, published_folder, read_manifest, stale_cases

OWN = Path("reports")
"""The folder of the user's own records."""


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Results that a question is put to.

    Parameters
    ----------
    name : str
        ``published``, ``own``, or ``results`` for those that were named.
    title : str
        What readers call them.
    store : Store
        The results.
    made_of : Mapping[str, str]
        Digest by case, of what is published.
    """

    name: str
    title: str
    store: Store
    made_of: Mapping[str, str] = field(default_factory=dict)

    def stale(self, case: str) -> bool:
        """Return whether its cells are of another version of the case than the present one."""
        return bool(stale_cases({case: self.made_of[case]})) if case in self.made_of else False

    @cached_property
    def newest(self) -> str:
        """Day of its newest run; empty where no plan tells."""
        return max(self.store.runs.values(), default="")[:10]


def sources_of(results: tuple[Path, ...]) -> list[AnswerSource]:
    """The named results; by default, the published matrix and the user's own.

    Raises
    ------
    RecordError
        When some cannot be read.
    NothingToRun
        When there are none in those that were named.
    UsageError
        When there are none at all.
    """
    if results:
        from harness.answers.store import read_known

        store = Store.of(read_known(results))
        if not store.features:
            raise NothingToRun("there are no results to answer from")
        return [AnswerSource(name="results", title=", ".join(map(str, results)), store=store)]
    found = []
    folder = published_folder()
    if folder is not None:
        found.append(
            AnswerSource(
                name="published",
                title="the published matrix",
                store=read_packed(folder / ANSWERS),
                made_of=read_manifest(folder).cases,
            )
        )
    if any(OWN.rglob("*.jsonl")):
        from harness.answers.store import read_known

        own = Store.of(read_known([OWN]))
        if own.features:
            found.append(AnswerSource(name="own", title=f"your own results in {OWN}", store=own))
    if not found:
        raise UsageError("there are no results to answer from: name some, as in --results nightly.parquet, or run cases first: cumatrix run")  # fmt: skip
    return found


_UNTRIED = ANSWER_KINDS["untried"].text
_ELSEWHERE = 3
"""Variants of features that are shown for other architectures."""

Found = Sequence[tuple[AnswerSource, QueryResult]]
"""The answer of each of the results."""


def show(found: Found, asked: Query, vocabulary: Vocabulary, others: str = "", elsewhere: Found = ()) -> None:
    """Print answers, and on stderr the words that nothing is known by; `elsewhere` are those for others (architectures, tools), where there are none for what was asked."""
    for chip in asked.unknown:
        near = f"; did you mean {' or '.join(chip.near)}?" if chip.near else ""
        say(f"cumatrix: no feature is called {chip.text}{near}", err=True)
    console = console_for(sys.stdout)
    if not elsewhere:
        print_answers(console, found, asked, vocabulary)
        return
    console.print(f"Nobody tried that{_asked_for(asked)}. For {others}:", style="bold", soft_wrap=True)
    for source, answer in elsewhere:
        _show_findings(console, answer.findings[:_ELSEWHERE], source)
    console.print("To try it:", style="bold", soft_wrap=True)
    console.print(f"  {command_for(asked, vocabulary)}", soft_wrap=True)
    for source, _ in elsewhere:
        console.print(Text(_age(source), "dim"), soft_wrap=True)


def _asked_for(asked: Query) -> str:
    """`` with numba 0.59.0 on sm_120``: tools, CUDA releases and architectures as they were typed."""
    used = [chip.text for chip in asked.chips if chip.kind in ("tool", "toolkit")]
    return "".join(
        (f" with {' and '.join(used)}" if used else "", f" on {', '.join(asked.targets)}" if asked.targets else "")
    )


def print_answers(console: Console, found: Found, asked: Query, vocabulary: Vocabulary) -> None:
    """Print answers: published ones first, then the user's own under a heading."""
    told = [(source, answer) for source, answer in found if answer.proven] or found[:1]
    for source, answer in told:
        if len(found) > 1:
            console.print(Text(f"From {source.title}", "bold underline"), soft_wrap=True)
        if answer.findings:
            console.print(Text(sentence_of(answer.findings, asked.targets), "bold"), soft_wrap=True)
            console.print()
        _show_findings(console, answer.findings, source)
        if answer.more:
            console.print(f"and {answer.more} more features: say more of what you look for, or see the page (cumatrix report)", style="dim", soft_wrap=True)  # fmt: skip
    first = next((answer.findings[0] for _, answer in told if answer.findings), None)
    if not any(answer.proven for _, answer in told):
        console.print("To try it:" if first else "Nobody tried that here. To try it:", style="bold", soft_wrap=True)
        console.print(f"  {command_for(asked, vocabulary, first.case if first else '')}", soft_wrap=True)
        if first and first.case:
            console.print(f"  {command_for(asked, vocabulary)}    # with your own file", soft_wrap=True)
    else:
        console.print(Text(f"To try your own program: {command_for(asked, vocabulary)}", "dim"), soft_wrap=True)
    if vocabulary.are_said(asked.words):
        console.print(Text("For the cause of what a compiler said: cumatrix explain build.log", "dim"), soft_wrap=True)
    for source, _ in found:
        console.print(Text(_age(source), "dim"), soft_wrap=True)


def _show_findings(console: Console, findings: Sequence[FeatureFinding], source: AnswerSource) -> None:
    before = None
    for finding in findings:
        _show_finding(console, finding, source, title=finding.case != before)
        before = finding.case


def _show_finding(console: Console, finding: FeatureFinding, source: AnswerSource, *, title: bool) -> None:
    if title:
        name = f"  {finding.case}" if finding.case else ""
        console.print(Text.assemble((finding.title, "bold"), (name, "dim")), soft_wrap=True)
        if source.stale(finding.case):
            console.print(Text("  The case is another program now: these answers are of an earlier version of it.", "yellow"), soft_wrap=True)  # fmt: skip
    if finding.label:
        console.print(Text(f" {finding.label}", "italic"), soft_wrap=True)
    told = [said for said in finding.said if not said.verdict.silent] or finding.said
    width = max(len(said.tool) for said in told)
    place = max(len(said.place) for said in told)
    for said in told:
        kind = ANSWER_KINDS[said.verdict.kind]
        style = kind.tone.style
        line = Text(f"  {printable(kind.sign, kind.plain, console.encoding)} ", style)
        line.append(f"{said.tool:<{width}}  {said.place:<{place}}  ", "default")
        line.append(said.verdict.text, f"{style} bold")
        more = "; ".join(filter(None, (said.verdict.note, said.overall)))
        line.append(f" ({more})" if more else "", "default")
        line.append(f"  tried {said.tried}" if said.proof else "", "dim")
        console.print(line, soft_wrap=True)
        for row in said.proof:
            reason = f": {one_line(row.message, 120)}" if row.message and row.letter != WORKS else ""
            console.print(Text(f"      {row.cell}{reason}", "dim"), soft_wrap=True)
    untold: dict[str, list[str]] = {}
    for said in finding.said:
        if said not in told:
            untold.setdefault(said.tool, []).append(said.verdict.text)
    silent: dict[str, list[str]] = {}
    for tool, texts in untold.items():
        # That something is missing, or not applicable, says more than that an architecture was left out.
        silent.setdefault(next((text for text in texts if text != _UNTRIED), _UNTRIED), []).append(tool)
    for text, tools in silent.items():
        console.print(Text(f"  ? {', '.join(tools)}: {text}", "dim"), soft_wrap=True)
    for reason, link in finding.faults[:3]:
        console.print(
            Text(f"  {GROUPS['fault'].word}: {reason}{f' ({link})' if link else ''}", "yellow"), soft_wrap=True
        )
    console.print()


def _age(source: AnswerSource) -> str:
    text = f"From {source.title}: {counted(source.store.answered, 'answered cell')}"
    if not source.newest:
        return f"{text}."
    days = (datetime.now(UTC).date() - date.fromisoformat(source.newest)).days
    when = "today" if days < 1 else "1 day ago" if days == 1 else f"{days} days ago"
    return f"{text}, the newest of {source.newest} ({when})."


def to_json(found: Found, asked: Query) -> dict[str, Any]:
    """The same as plain values: the answers of the first results, and the user's own under ``own``."""
    (first, answer), *others = found
    own = next(((source, answer) for source, answer in others), None)
    return {
        "chips": [chip.to_json() for chip in asked.chips],
        **_answer(first, answer, asked),
        **({"own": _answer(*own, asked)} if own else {}),
    }


def _answer(source: AnswerSource, answer: QueryResult, asked: Query) -> dict[str, Any]:
    return {
        "sentence": sentence_of(answer.findings, asked.targets) if answer.findings else "",
        "from": source.name,
        "newest": source.newest,
        "answered": source.store.answered,
        "more": answer.more,
        "findings": [
            {
                "case": finding.case,
                "title": finding.title,
                "variants": finding.label,
                "stale": source.stale(finding.case),
                "said": [said_json(said) for said in finding.said],
                "faults": [{"reason": reason, "link": link} for reason, link in finding.faults],
            }
            for finding in answer.findings
        ],
    }


def put(question: str, sources: Sequence[AnswerSource]) -> tuple[Query, Vocabulary, Found]:
    """Put a question to results: what it asks for, all that it could name, and what each of the results answers.

    Raises
    ------
    UsageError
        Where it names no feature, or an architecture or a release that nothing knows.
    """
    vocabulary = vocabulary_of(*(source.store for source in sources))
    tried = {target for source in sources for target in source.store.targets}
    asked = Query(chips=tuple(_tried(chip, tried) for chip in parse(question, vocabulary)))
    _check(asked)
    return asked, vocabulary, [(source, source.store.answer(asked, vocabulary)) for source in sources]


_WIDER = (
    ("other architectures", frozenset({"target"})),
    ("other tools", frozenset({"tool", "toolkit"})),
    ("other tools and architectures", frozenset({"target", "tool", "toolkit"})),
)
"""Parts to drop from a question, one after another, when the results know nothing of its names."""


def elsewhere(found: Found, asked: Query, vocabulary: Vocabulary) -> tuple[str, Found]:
    """Answers for other architectures or tools, when the results have none for those of the question; and the dropped parts."""
    if asks_for_itself(asked) or any(answer.findings for _, answer in found):
        return "", []
    for name, kinds in _WIDER:
        chips = tuple(chip for chip in asked.chips if chip.kind not in kinds)
        if len(chips) == len(asked.chips) or not any(chip.kind in {"word", "header", "host", "tool"} for chip in chips):
            continue
        answers = [(source, source.store.answer(Query(chips=chips), vocabulary)) for source, _ in found]
        if proven := [(source, answer) for source, answer in answers if answer.proven]:
            return name, proven
    return "", []


def _tried(chip: Chip, targets: Container[str]) -> Chip:
    """Use the real architecture for an untried virtual one: compilers name ``compute_120`` for either."""
    real = {value: str(Target.parse(value).real) for value in chip.values if chip.kind == "target"}
    if not any(value not in targets and other in targets for value, other in real.items()):
        return chip
    return replace(chip, values=tuple(value if value in targets else real[value] for value in chip.values))


def _check(asked: Query) -> None:
    """An architecture or a release that nothing knows is bad usage; a word is not."""
    for chip in asked.unknown:
        if chip.name != "word":
            what = {"target": "architecture", "version": "version of anything named before it"}.get(chip.name, "")
            near = (
                f"; the nearest {'are' if len(chip.near) > 1 else 'is'} {' and '.join(chip.near)}" if chip.near else ""
            )
            raise UsageError(f"nothing is known as {chip.text}{f', no {what}' if what else ''}{near}")
    if not asks_for_itself(asked) and all(chip.kind in {"target", "unknown"} for chip in asked.chips):
        words = [f"{chip.text}{f' (did you mean {chip.near[0]}?)' if chip.near else ''}" for chip in asked.unknown]
        what = f"no feature is called {', '.join(words)}" if words else "the question names no feature"
        raise UsageError(f"{what}: ask for one, such as wmma, grid sync or fp8; cumatrix cases list shows all")
