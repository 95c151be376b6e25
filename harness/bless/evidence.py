"""Evidence for a case's expectations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from harness.analysis.cell_sets import cell_of, outcome_of
from harness.diagnostics import one_line
from harness.errors import UsageError
from harness.model import Case, Cell, Diagnostic, Expectation, Outcome, Stage, Status, Verdict
from harness.model.judge import expectation_of, judge, shortfall
from harness.protocol.text import counted
from harness.records import Merged, Record, failed_at
from harness.records.merge import is_of

_NO_ANSWER = (Status.UNAVAILABLE, Status.HARNESS_ERROR)


class WrongEvidence(UsageError):
    """Results that cannot be learned from. The message is one sentence that names the cells."""


@dataclass(frozen=True, eq=False)
class Observation:
    """A cell and its outcome.

    Parameters
    ----------
    cell : Cell
        Cell of the current case.
    outcome : Outcome
        Outcome to judge.
    run : str
        Name of the run with the outcome.
    """

    cell: Cell
    outcome: Outcome
    run: str

    def as_expected(self, expected: Expectation) -> bool:
        """Return whether the outcome meets an expectation: ``pass`` or ``xfail``."""
        return judge(expected, self.outcome) in (Verdict.PASS, Verdict.XFAIL)


@dataclass(frozen=True)
class Evidence:
    """The results of one case.

    Parameters
    ----------
    case : Case
        Current case.
    observations : tuple of Observation
        Cells with an outcome.
    unsupported : tuple of Cell
        Cells that are not applicable and have no expectation.
    stale : int
        Number of records of variants that the case no longer has.
    missing : tuple of str
        Ids of planned cells without a record.
    """

    case: Case
    observations: tuple[Observation, ...]
    unsupported: tuple[Cell, ...]
    stale: int
    missing: tuple[str, ...]


def evidence_of(case: Case, merged: Merged) -> Evidence:
    """Return the evidence for a case.

    Raises
    ------
    WrongEvidence
        If cells have no answer, or contradictory ones.
    RecordError
        If a record lacks a required value.
    """
    variants = {variant.name: variant for variant in case.variants}
    records = [record for record in merged.records if is_of(record, case) and not record.get("program")]
    known = [record for record in records if record["variant"] in variants]
    _refuse_wrong(case, known, merged)
    observations, unsupported = [], []
    for record in known:
        cell = cell_of(record, case, variants[record["variant"]])
        if record["status"] == Status.UNSUPPORTED:
            unsupported.append(cell)
        else:
            observations.append(Observation(cell, outcome_of(record), record["run"]))
            if lacking := shortfall(expectation_of(cell), observations[-1].outcome):
                raise WrongEvidence(
                    f"{case.name}: {one_line(record['cell'])} is built, but {one_line(lacking, 200)}: bless writes no requirements; "
                    "change the case's kernels, or write kernels = 0 in an [[expect]] for cells without them"
                )
    missing = [each["cell"] for each in merged.missing if is_of(each, case) and each["variant"] in variants]
    return Evidence(case, tuple(observations), tuple(unsupported), len(records) - len(known), tuple(missing))


def _refuse_wrong(case: Case, records: Sequence[Record], merged: Merged) -> None:
    silent = [record for record in records if record["status"] in _NO_ANSWER]
    if silent:
        counts = Counter(record["status"].replace("_", " ") for record in silent)
        which = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        first = silent[0]
        raise WrongEvidence(
            f"{case.name}: {counted(len(silent), 'cell')} without an answer ({which}), the first {one_line(first['cell'])}: "
            f"{one_line(first['reason'], 200)}; fix that and run again, or leave them out with --where"
        )
    cells = {record["cell"] for record in records}
    flaky = [conflict for conflict in merged.conflicts if conflict.cell in cells]
    if flaky:
        other = flaky[0].dropped[0]
        raise WrongEvidence(
            f"{case.name}: {counted(len(flaky), 'cell')} with two results that differ, the first {one_line(flaky[0].cell)}: "
            f"{failed_at(flaky[0].kept)} in run {one_line(flaky[0].kept['run'], 80)}, {failed_at(other)} in run "
            f"{one_line(other['run'], 80)}; name only the results that hold, or run the cells again with --fresh"
        )


def place_of(case: Case, cell: Cell) -> int | None:
    """Return the number of the first expectation that applies to a cell; None without one."""
    facts = cell.facts()
    return next((place for place, each in enumerate(case.expectations) if each.when(facts)), None)


_QUOTED = r""""[^"]*"|'[^']*'|`[^`]*`"""
_PATH = r"(?<![\w.])(?:\$\w+|[.…~])?/[^\s:,;]+"
_HEX = r"0x[0-9a-fA-F]+"
# A prefix names the tool. The class of a Python exception is not a prefix, except after a tool.
_WHO = re.compile(r"^(?!\w*(?:Error|Exception):)[\w.]+ ?: ")
_WHERE = re.compile(r" \(\w+\)$")
_TOKEN = re.compile(
    rf"(?P<space>\s*)(?:(?P<quoted>{_QUOTED})|(?P<path>{_PATH})|(?P<hex>{_HEX})|(?P<number>\b\d+\b)|(?P<word>\w+|\S))"
)
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")
_SHORT = 10
_LONG = 140
_MANGLED = 40
_ANY = {"path": r"\S+", "hex": "0x[0-9a-f]+", "number": r"\d+"}


@lru_cache(maxsize=1 << 14)
def core(message: str) -> str:
    """Strip the tool's prefix, quoted names, paths and numbers: ``incomplete type is not allowed``."""
    text = _WHERE.sub("", message.rstrip("…"))
    while (shorter := _WHO.sub("", text)) != text:
        text = shorter
    text = re.sub(f"{_QUOTED}|{_PATH}", "", text)
    return " ".join(re.sub(rf"{_HEX}|\b\d+\b", "N", text).split())


def same_kind(one: str, other: str) -> bool:
    """Return whether the longer of two cores only adds details to the shorter one."""
    short, long_ = sorted((one, other), key=len)
    return short == long_ or (len(short) >= _SHORT and short in long_)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    """Text of the token; empty if the messages differ."""
    space: str = ""
    """Pattern before the token: nothing, a space, or anything."""

    @property
    def key(self) -> str:
        """Part that must equal that of another message's token."""
        return self.text if self.kind == "word" else self.kind

    @property
    def pattern(self) -> str:
        """Regular expression for the token."""
        return self.space + self._pattern

    @property
    def _pattern(self) -> str:
        if self.kind == "quoted":
            quote = self.text[0]
            own = self.text if len(self.text) > 2 and len(self.text) < _MANGLED and "/home/" not in self.text else ""
            return escaped(own) if own else f"{quote}[^{quote}]*{quote}"
        return escaped(self.text) if self.text and self.kind != "path" else _ANY[self.kind]


def pattern_of(messages: Sequence[str]) -> str:
    """Return an expression that matches all messages, from their common words."""
    common = _tokens(messages[0])
    for message in messages[1:]:
        common = _common(common, _tokens(message))
    while common and common[0].kind == "word" and not common[0].text.isidentifier():
        common = common[1:]
    made = ""
    for token in common:
        if len(made) > _LONG:
            break
        made += token.pattern if made else replace(token, space="").pattern
    if common and sum(len(token.text) for token in common) >= _SHORT:
        return made
    return "|".join(escaped(message.rstrip("…")[:_LONG]) for message in messages[:8])


def _tokens(message: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(message.rstrip("…")):
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], " " if match["space"] else ""))
    return found


def _common(one: Sequence[_Token], other: Sequence[_Token]) -> list[_Token]:
    """Return the common tokens of two messages, in order, with a pattern for the text between them."""
    matcher = SequenceMatcher(None, [token.key for token in one], [token.key for token in other], autojunk=False)
    found: list[_Token] = []
    ends = (0, 0)
    for mine, theirs, size in matcher.get_matching_blocks():
        for step in range(size):
            first, second = one[mine + step], other[theirs + step]
            space = first.space if first.space == second.space else r"\s*"
            if not step and ends != (mine, theirs):
                space = ".*"
            same = first.text == second.text
            empty = first.text[0] * 2 if first.kind == "quoted" else ""
            found.append(_Token(first.kind, first.text if same else empty, ".*" if first.space == ".*" else space))
        ends = (mine + size, theirs + size)
    return found


def escaped(text: str) -> str:
    """Escape a text for RE2; an unprintable character matches any character."""
    return "".join(each if each.isprintable() else "." for each in _SPECIAL.sub(r"\\\1", text))


_ERRORS = ("fatal", "error")


class OutcomeKind(NamedTuple):
    """Common properties of a rule's cells.

    Parameters
    ----------
    status : Status
        Status.
    stage : Stage or None
        Stage, unless the cells are built.
    message : str
        Core of the message (`harness.bless.evidence.core`); empty if no message is characteristic.
    """

    status: Status
    stage: Stage | None = None
    message: str = ""


def kinds(cells: Sequence[Observation]) -> list[OutcomeKind]:
    """Return the kind of each cell's outcome.

    The function uses as few kinds as the messages allow. Each kind's message is the first one of some cell.
    """
    groups: dict[tuple[Status, Stage | None], list[int]] = {}
    for place, each in enumerate(cells):
        status = each.outcome.status
        groups.setdefault((status, None if status is Status.BUILT else each.outcome.stage), []).append(place)
    found = [OutcomeKind(Status.BUILT)] * len(cells)
    for (status, stage), places in groups.items():
        if status is not Status.REJECTED:
            # Messages before a crash or a time-out depend on its moment.
            names = dict.fromkeys(places, "")
        else:
            names = _names(
                {place: list(dict.fromkeys(core(item.message) for item in _errors(cells[place]))) for place in places}
            )
        for place, messages in names.items():
            found[place] = OutcomeKind(status, stage, messages)
    return found


def _names(logs: dict[int, list[str]]) -> dict[int, str]:
    """Choose one message per cell, so the cells share few different messages."""
    leading = {messages[0] for messages in logs.values() if messages}
    # Messages that differ only in details share the shortest one.
    short = {
        each: min(
            (other for other in leading if same_kind(each, other)), key=lambda other: (len(other), other), default=""
        )
        for each in {message for messages in logs.values() for message in messages}
    }
    names = {place: list(dict.fromkeys(filter(None, map(short.get, messages)))) for place, messages in logs.items()}
    named = {place: "" for place, messages in names.items() if not messages}
    while left := {place: messages for place, messages in names.items() if place not in named}:
        counts = Counter(each for messages in left.values() for each in messages)
        first = Counter(messages[0] for messages in left.values())
        best = min(counts, key=lambda each: (-counts[each], -first[each], each))
        named.update(dict.fromkeys((place for place, messages in left.items() if best in messages), best))
    return named


def _errors(each: Observation) -> list[Diagnostic]:
    return [item for item in each.outcome.diagnostics if item.severity in _ERRORS]


def pattern_for(cells: Iterable[Observation], kind: OutcomeKind) -> str | None:
    """Return an expression for a kind's message in every cell; None for a kind without message."""
    if not kind.message:
        return None
    found = (_message(each, kind.message) for each in cells)
    return pattern_of(list(dict.fromkeys(found)))


def _message(each: Observation, shown: str) -> str:
    """Return the cell's message that contains `shown`, with the shortest core."""
    fits = [item.message for item in _errors(each) if shown in core(item.message)]
    return min(fits, key=lambda message: len(core(message)))
