"""Outcomes that one rule can name: status, stage, and the message that tells it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.bless.evidence import Seen
from harness.bless.messages import core, pattern_of, same_kind
from harness.model import Diagnostic, Stage, Status

_ERRORS = ("fatal", "error")


class OutcomeKind(NamedTuple):
    """The common properties of a rule's cells.

    Parameters
    ----------
    status : Status
        What happened.
    stage : Stage or None
        Where, unless it was built.
    said : str
        What the message comes down to (`harness.bless.messages.core`); empty where none tells it.
    """

    status: Status
    stage: Stage | None = None
    said: str = ""


def kinds(seen: Sequence[Seen]) -> list[OutcomeKind]:
    """The kind of each cell's outcome; as few as the messages allow, each by a message that is the most telling one of some cell."""
    groups: dict[tuple[Status, Stage | None], list[int]] = {}
    for place, each in enumerate(seen):
        status = each.outcome.status
        groups.setdefault((status, None if status is Status.BUILT else each.outcome.stage), []).append(place)
    found = [OutcomeKind(Status.BUILT)] * len(seen)
    for (status, stage), places in groups.items():
        if status is not Status.REJECTED:
            # What a compiler said before it died or was ended depends on when that was.
            names = dict.fromkeys(places, "")
        else:
            names = _names(
                {place: list(dict.fromkeys(core(item.message) for item in _errors(seen[place]))) for place in places}
            )
        for place, said in names.items():
            found[place] = OutcomeKind(status, stage, said)
    return found


def _names(said: dict[int, list[str]]) -> dict[int, str]:
    """For each cell one of its messages, so that few different ones are taken."""
    leading = {messages[0] for messages in said.values() if messages}
    # What differs in details only goes by the shortest.
    short = {
        each: min(
            (other for other in leading if same_kind(each, other)), key=lambda other: (len(other), other), default=""
        )
        for each in {message for messages in said.values() for message in messages}
    }
    names = {place: list(dict.fromkeys(filter(None, map(short.get, messages)))) for place, messages in said.items()}
    named = {place: "" for place, messages in names.items() if not messages}
    while left := {place: messages for place, messages in names.items() if place not in named}:
        counts = Counter(each for messages in left.values() for each in messages)
        first = Counter(messages[0] for messages in left.values())
        best = min(counts, key=lambda each: (-counts[each], -first[each], each))
        named.update(dict.fromkeys((place for place, messages in left.items() if best in messages), best))
    return named


def _errors(each: Seen) -> list[Diagnostic]:
    return [item for item in each.outcome.diagnostics if item.severity in _ERRORS]


def pattern_for(cells: Iterable[Seen], kind: OutcomeKind) -> str | None:
    """A regular expression that finds the message of a kind in all of some cells; None where no message tells it."""
    if not kind.said:
        return None
    found = (_message(each, kind.said) for each in cells)
    return pattern_of(list(dict.fromkeys(found)))


def _message(each: Seen, said: str) -> str:
    """The message of a cell that says it, in as few words as any does."""
    fits = [item.message for item in _errors(each) if said in core(item.message)]
    return min(fits, key=lambda message: len(core(message)))
