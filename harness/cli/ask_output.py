"""Output of ``cumatrix ask``: text and JSON."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from harness.answers.answer import SHOWN, command_for, finding_json, is_about_architecture
from harness.answers.query import FeatureFinding, Query, QueryResult, Reply, ReplyRow
from harness.answers.question import Chip, Vocabulary
from harness.answers.replies import combined, reply_to_message, without_lead
from harness.answers.store import Store, read_packed, vocabulary_of
from harness.answers.verdict import WORKS
from harness.answers.vocabulary import read
from harness.answers.wheels import WheelReplies, names_of, wheels_in
from harness.cli.terminal import console_for, printable
from harness.diagnostics import one_line
from harness.errors import NothingToRun, UsageError
from harness.matrix.axes import version_key
from harness.matrix.marks import ANSWER_KINDS, GROUPS
from harness.model import Target
from harness.protocol.text import counted
from harness.published import ANSWERS, published_folder, read_manifest, stale_cases
from harness.records.make import NO_TENSOR_CORES, TENSOR_CORES
from harness.wheels.published import Package

OWN = Path("reports")
"""Folder of the user's own records."""


@dataclass(frozen=True, kw_only=True)
class AnswerSource:
    """Results that answer questions.

    Parameters
    ----------
    name : str
        ``published``, ``own``, or ``results`` for results that the user names.
    title : str
        Name for readers.
    store : Store
        The results.
    made_of : Mapping[str, str]
        Digest of each case, for published results.
    wheels : tuple of Package
        Packages whose wheels were read.
    """

    name: str
    title: str
    store: Store
    made_of: Mapping[str, str] = field(default_factory=dict)
    wheels: tuple[Package, ...] = ()

    def stale(self, case: str) -> bool:
        """Return whether the cells are from another version of the case than the current one."""
        return bool(stale_cases({case: self.made_of[case]})) if case in self.made_of else False

    @cached_property
    def newest(self) -> str:
        """Day of the newest run; empty if no plan records it."""
        return max(self.store.runs.values(), default="")[:10]


def sources_of(results: tuple[Path, ...]) -> list[AnswerSource]:
    """Return the named results; by default, the published matrix and the user's own results.

    Raises
    ------
    RecordError
        If results cannot be read.
    NothingToRun
        If the named files contain no results.
    UsageError
        If there are neither published nor own results.
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
                wheels=wheels_in(folder),
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
"""Number of features shown for other architectures."""

Found = Sequence[tuple[AnswerSource, QueryResult]]
"""The answer from each source."""


def show(found: Found, query: Query, vocabulary: Vocabulary, others: str = "", elsewhere: Found = ()) -> None:
    """Print answers; `elsewhere` has those for other architectures or tools if the requested ones have no answer."""
    console = console_for(sys.stdout)
    if not elsewhere:
        print_answers(console, found, query, vocabulary)
        return
    console.print(f"Not tried{_requested(query)}. For {others}:", style="bold", soft_wrap=True)
    for source, answer in elsewhere:
        _show_findings(console, answer.findings[:_ELSEWHERE], source)
    console.print("To try it:", style="bold", soft_wrap=True)
    console.print(f"  {command_for(query, vocabulary)}", soft_wrap=True)
    for source, _ in elsewhere:
        console.print(Text(_age(source), "dim"), soft_wrap=True)


def _requested(query: Query) -> str:
    """Return the tools, CUDA releases and architectures as typed: `` with numba 0.59.0 on sm_120``."""
    used = [chip.text for chip in query.chips if chip.kind in ("tool", "toolkit")]
    return "".join(
        (f" with {' and '.join(used)}" if used else "", f" on {', '.join(query.targets)}" if query.targets else "")
    )


def print_answers(console: Console, found: Found, query: Query, vocabulary: Vocabulary) -> None:
    """Print answers: published ones first, then the user's own under a heading."""
    shown = [(source, answer) for source, answer in found if answer.proven] or found[:1]
    for source, answer in shown:
        if len(found) > 1:
            console.print(Text(f"From {source.title}", "bold underline"), soft_wrap=True)
        if answer.sentence:
            console.print(Text(answer.sentence, "bold"), soft_wrap=True)
        if answer.reply:
            _show_reply(console, answer.reply)
        elif answer.lacking:
            _show_closest(console, answer, query)
        else:
            console.print()
            _show_findings(console, answer.findings, source)
        if answer.more and not answer.lacking:
            console.print(f"{counted(answer.more, 'more feature')}: --all shows all", style="dim", soft_wrap=True)
    if not any(answer.reply and answer.reply.known for _, answer in shown):
        _show_commands(console, shown, query, vocabulary)
    if vocabulary.in_messages(query.words) and not any(answer.reply for _, answer in shown):
        console.print(Text("For the cause of what a compiler said: cumatrix explain build.log", "dim"), soft_wrap=True)
    for source, _ in found:
        console.print(Text(_age(source) if query.intent != "runs" else _of_wheels(source), "dim"), soft_wrap=True)


def _of_wheels(source: AnswerSource) -> str:
    count = sum(len(package.releases) for package in source.wheels)
    newest = max((release.uploaded for package in source.wheels for release in package.releases), default="")
    return f"From {source.title}: {counted(count, 'wheel')} of {counted(len(source.wheels), 'package')}{f', the newest of {newest}' if newest else ''}."


def _show_commands(console: Console, shown: Found, query: Query, vocabulary: Vocabulary) -> None:
    first = next((answer.findings[0] for _, answer in shown if answer.findings and not answer.lacking), None)
    if any(answer.proven for _, answer in shown):
        console.print(Text(f"To try your own program: {command_for(query, vocabulary)}", "dim"), soft_wrap=True)
        return
    console.print("To try it:", style="bold", soft_wrap=True)
    if first and first.case:
        console.print(f"  {command_for(query, vocabulary, first.case)}", soft_wrap=True)
        console.print(f"  {command_for(query, vocabulary)}    # with your own file", soft_wrap=True)
    else:
        console.print(f"  {command_for(query, vocabulary)}", soft_wrap=True)


def _show_closest(console: Console, answer: QueryResult, query: Query) -> None:
    """Print the titles of cases that match some words of the question, without statements."""
    for chip in query.unknown:
        if chip.near:
            console.print(f"  Did you mean {' or '.join(chip.near)}?", soft_wrap=True)
    if query.words and answer.findings:
        console.print("The closest cases:", soft_wrap=True)
        for case, title in {finding.case: finding.title for finding in answer.findings if finding.case}.items():
            console.print(Text.assemble("  ", title, (f"  {case}", "dim")), soft_wrap=True)
    console.print()


def _show_reply(console: Console, reply: Reply) -> None:
    before = ""
    for row in reply.rows:
        if row.case and row.case != before:
            console.print(
                Text.assemble(("\n" if not before else "") + row.title, (f"  {row.case}", "dim")), soft_wrap=True
            )
        before = row.case
        line = Text("  ")
        if row.kind:
            kind = ANSWER_KINDS[row.kind]
            line.append(f"{printable(kind.sign, kind.plain, console.encoding)} ", kind.tone.style)
        line.append(row.text)
        console.print(line, soft_wrap=True)
        for cell in row.cells:
            console.print(Text(f"      {cell}", "dim"), soft_wrap=True)
    for source in reply.sources:
        console.print(Text(f"  {source}", "dim"), soft_wrap=True)
    console.print()


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
    answered = [of_tool for of_tool in finding.tools if not of_tool.verdict.silent] or finding.tools
    width = max(len(of_tool.tool) for of_tool in answered)
    place = max(len(of_tool.place) for of_tool in answered)
    for of_tool in answered:
        kind = ANSWER_KINDS[of_tool.verdict.kind]
        style = kind.tone.style
        line = Text(f"  {printable(kind.sign, kind.plain, console.encoding)} ", style)
        line.append(f"{of_tool.tool:<{width}}  {of_tool.place:<{place}}  ", "default")
        line.append(of_tool.verdict.text, f"{style} bold")
        more = "; ".join(filter(None, (of_tool.verdict.note, of_tool.overall)))
        line.append(f" ({more})" if more else "", "default")
        line.append(f"  tried {of_tool.tried}" if of_tool.proof else "", "dim")
        console.print(line, soft_wrap=True)
        for row in of_tool.proof:
            shown = row.letter != WORKS or row.message.startswith((TENSOR_CORES, NO_TENSOR_CORES))
            reason = f": {one_line(row.message, 120)}" if row.message and shown else ""
            console.print(Text(f"      {row.cell}{reason}", "dim"), soft_wrap=True)
    texts_of: dict[str, list[str]] = {}
    for of_tool in finding.tools:
        if of_tool not in answered:
            texts_of.setdefault(of_tool.tool, []).append(of_tool.verdict.text)
    silent: dict[str, list[str]] = {}
    for tool, texts in texts_of.items():
        # A missing part or an inapplicable cell is more informative than an untested architecture.
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


def to_json(found: Found, query: Query) -> dict[str, Any]:
    """Return the answers as plain values: those of the first source, and the user's own under ``own``."""
    (first, answer), *others = found
    own = next(((source, answer) for source, answer in others), None)
    return {
        "chips": [chip.to_json() for chip in query.chips],
        "intent": query.intent,
        **_answer(first, answer),
        **({"own": _answer(*own)} if own else {}),
    }


def _answer(source: AnswerSource, answer: QueryResult) -> dict[str, Any]:
    return {
        "sentence": answer.sentence,
        "lacking": list(answer.lacking),
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
                "tools": [finding_json(of_tool) for of_tool in finding.tools],
                "faults": [{"reason": reason, "link": link} for reason, link in finding.faults],
            }
            for finding in answer.findings
            if not answer.lacking
        ],
        "closest": list(dict.fromkeys(finding.case for finding in answer.findings)) if answer.lacking else [],
        "rows": [asdict(row) for row in answer.reply.rows] if answer.reply else [],
        "sources": list(answer.reply.sources) if answer.reply else [],
    }


def put(question: str, sources: Sequence[AnswerSource], most: int = SHOWN) -> tuple[Query, Vocabulary, Found]:
    """Answer a question; return the query, the vocabulary and the answer from each source.

    Parameters
    ----------
    question : str
        Text as typed.
    sources : sequence of AnswerSource
        Results that answer.
    most : int
        Maximum number of findings per source.

    Raises
    ------
    UsageError
        If the question names nothing, or an unknown architecture or release.
    """
    packages = [package for source in sources for package in source.wheels]
    vocabulary = replace(vocabulary_of(*(source.store for source in sources)), packages=names_of(packages))
    releases: dict[str, Sequence[str]] = {}
    for source in sources:
        for name, found in source.store.releases.items():
            releases[name] = sorted({*releases.get(name, ()), *found}, key=version_key)
    reading = read(question, vocabulary, releases)
    if reading.intent.name == "why":
        features = {name: feature for source in sources for name, feature in source.store.features.items()}
        if reply := reply_to_message(question, features.values()):
            named = dict.fromkeys(
                (chip.name if chip.kind == "target" else chip.text).replace("compute_", "sm_")
                for chip in reading.chips
                if "target" in (chip.kind, chip.name)
            )
            first = [about for name in named if (about := _border(name, sources[0].store))]
            reply = replace(reply, rows=(*reply.rows, *(ReplyRow(text=each.sentence) for each in first)))
            query = Query(chips=reading.chips, intent="why")
            return query, vocabulary, [(sources[0], QueryResult(sentence=reply.sentence, reply=reply))]
    tried = {target for source in sources for target in source.store.targets}
    chips = tuple(_tried(chip, tried) for chip in reading.chips)
    query = Query(chips=chips, intent=reading.intent.name, decides=reading.intent.decides)
    _check(query)
    if not (query.chips or reading.keys):
        raise UsageError("the question names no feature: ask for one, such as wmma, grid sync or fp8; cumatrix cases list shows all")  # fmt: skip
    if reading.intent.key == "package":
        of_wheels = WheelReplies(packages)
        about = combined([reply for key in reading.keys if (reply := of_wheels.of(key))])
        source = next(source for source in sources if source.wheels)
        return query, vocabulary, [(source, QueryResult(sentence=about.sentence if about else "", reply=about))]
    if reading.keys:
        answers = [
            (source, combined([reply for key in reading.keys if (reply := source.store.replies.of(key))]))
            for source in sources
        ]
        if replied := [
            (source, QueryResult(sentence=reply.sentence, reply=reply))
            for source, given in answers
            if given
            for reply in (given if query.decides else without_lead(given),)
        ]:
            return query, vocabulary, replied
        if reading.intent.key == "release":
            nothing = QueryResult(
                sentence=f"Not known: no cells to compare for {' '.join(chip.text for chip in chips)}."
            )
            return query, vocabulary, [(source, nothing) for source in sources]
    return query, vocabulary, [(source, source.store.answer(query, vocabulary, most)) for source in sources]


def _border(name: str, store: Store) -> Reply | None:
    """Return the last CUDA release of an architecture that CUDA dropped, else its first one."""
    last = (
        store.replies.of(f"last {name}")
        if re.fullmatch(r"sm_\d+[af]?", name) or name in store.replies.vocabulary.architectures
        else None
    )
    return last if last and " is the last release " in last.sentence else store.replies.of(f"first {name}")


_WIDER = (
    ("other architectures", frozenset({"target"})),
    ("other tools", frozenset({"tool", "toolkit"})),
    ("other tools and architectures", frozenset({"target", "tool", "toolkit"})),
)
"""Kinds of names to drop from a question, one step after another, if no source has results for them."""


def elsewhere(found: Found, query: Query, vocabulary: Vocabulary) -> tuple[str, Found]:
    """Return the dropped names and the answers without them, if no source has answers for the question."""
    if is_about_architecture(query) or any(
        answer.findings or answer.lacking or (answer.reply and answer.reply.known) for _, answer in found
    ):
        return "", []
    for name, kinds in _WIDER:
        chips = tuple(chip for chip in query.chips if chip.kind not in kinds)
        if len(chips) == len(query.chips) or not any(chip.kind in {"word", "header", "host", "tool"} for chip in chips):
            continue
        answers = [(source, source.store.answer(replace(query, chips=chips), vocabulary)) for source, _ in found]
        if proven := [(source, answer) for source, answer in answers if answer.proven]:
            return name, proven
    return "", []


def _tried(chip: Chip, targets: Container[str]) -> Chip:
    """Use the real architecture for an untested virtual one: compilers name ``compute_120`` for both."""
    real = {value: str(Target.parse(value).real) for value in chip.values if chip.kind == "target"}
    if not any(value not in targets and other in targets for value, other in real.items()):
        return chip
    return replace(chip, values=tuple(value if value in targets else real[value] for value in chip.values))


def _check(query: Query) -> None:
    """Raise `UsageError` for an unknown architecture or release; an unknown word is not an error."""
    for chip in query.unknown:
        if chip.name != "word":
            what = {"target": "architecture", "version": "version of anything named before it"}.get(chip.name, "")
            near = (
                f"; the nearest {'are' if len(chip.near) > 1 else 'is'} {' and '.join(chip.near)}" if chip.near else ""
            )
            raise UsageError(f"nothing is known as {chip.text}{f', no {what}' if what else ''}{near}")
