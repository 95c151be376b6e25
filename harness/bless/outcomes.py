"""Outcomes that one rule can name: status, stage, and the message that tells it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from harness.bless.evidence import Seen
from harness.model import Diagnostic, Stage, Status

_ERRORS = ("fatal", "error")
# What differs between two messages of one kind, as `harness.diagnostics.parse.fingerprint` has it.
_PARTS = re.compile(r"""("[^"]*"|'[^']*'|`[^`]*`|(?<!\S)/\S+|0x[0-9a-fA-F]+|\b\d+\b)""")
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")
_LONG = 160
_SHORT = 8


class Kind(NamedTuple):
    """What cells of one rule have in common.

    Parameters
    ----------
    status : Status
        What happened.
    stage : Stage or None
        Where, unless it was built.
    said : str
        Fingerprint of the message; empty where none tells it.
    """

    status: Status
    stage: Stage | None = None
    said: str = ""


def kinds(seen: Sequence[Seen]) -> list[Kind]:
    """The kind of each cell's outcome; as few as the messages allow, each by a message that is the most telling one of some cell."""
    groups: dict[tuple[Status, Stage | None], list[int]] = {}
    for place, each in enumerate(seen):
        status = each.outcome.status
        groups.setdefault((status, None if status is Status.BUILT else each.outcome.stage), []).append(place)
    found = [Kind(Status.BUILT)] * len(seen)
    for (status, stage), places in groups.items():
        if status is not Status.REJECTED:
            # What a compiler said before it died or was ended depends on when that was.
            names = dict.fromkeys(places, "")
        else:
            names = _names({place: [print_of(item) for item in _errors(seen[place])] for place in places})
        for place, said in names.items():
            found[place] = Kind(status, stage, said)
    return found


def _names(said: dict[int, list[str]]) -> dict[int, str]:
    """For each cell one of its messages, so that few different ones are taken."""
    leading = {messages[0] for messages in said.values() if messages}
    named = {place: "" for place, messages in said.items() if not messages}
    while left := {place: messages for place, messages in said.items() if place not in named}:
        counts = Counter(each for messages in left.values() for each in set(messages) & leading)
        first = Counter(messages[0] for messages in left.values())
        best = min(counts, key=lambda each: (-counts[each], -first[each], each))
        named.update(dict.fromkeys((place for place, messages in left.items() if best in messages), best))
    return named


def print_of(item: Diagnostic) -> str:
    """What tells messages of different kinds apart."""
    return item.fingerprint or item.message


def _errors(each: Seen) -> list[Diagnostic]:
    return [item for item in each.outcome.diagnostics if item.severity in _ERRORS]


def pattern_for(cells: Iterable[Seen], kind: Kind) -> str | None:
    """A regular expression that finds the message of a kind in all of some cells; None where no message tells it."""
    if not kind.said:
        return None
    messages = list(
        dict.fromkeys(
            next(item.message for item in _errors(each) if print_of(item) == kind.said).rstrip("…") for each in cells
        )
    )
    split = [_PARTS.split(message) for message in messages]
    pattern, plain = "", 0
    for place, parts in enumerate(zip_longest(*split)):
        same = len(set(parts)) == 1
        if place % 2 == 0 and not same:
            text = _shared(parts)
            return _whole(pattern + _escaped(text), plain + len(text), messages)
        if place % 2 == 0:
            pattern, plain = pattern + _escaped(parts[0]), plain + len(parts[0])
        elif None in parts:
            break
        else:
            pattern += _escaped(parts[0]) if same and parts[0].lstrip("\"'`")[:1] != "/" else _any(parts)
        if plain > _LONG:
            break
    return _whole(pattern, plain, messages)


def _whole(pattern: str, plain: int, messages: Sequence[str]) -> str:
    """The pattern, or where hardly anything is left of it the messages themselves."""
    if plain >= _SHORT or len(messages) == 1:
        return pattern.rstrip() or _escaped(messages[0])
    return "|".join(_escaped(message[:_LONG]) for message in messages[:8]) if len(messages) <= 8 else pattern


def _shared(parts: Sequence[str | None]) -> str:
    texts = [part or "" for part in parts]
    shortest = min(texts, key=len)
    for end in range(len(shortest), 0, -1):
        if all(text.startswith(shortest[:end]) for text in texts):
            return shortest[:end]
    return ""


def _any(parts: Sequence[str]) -> str:
    first = parts[0]
    if all(part.startswith("0x") for part in parts):
        return "0x[0-9a-f]+" if not any(re.search("[A-F]", part) for part in parts) else "0x[0-9a-fA-F]+"
    if all(part.isdigit() for part in parts):
        return r"\d+"
    if first[0] in "\"'`" and all(part[0] == first[0] for part in parts):
        return f"{first[0]}[^{first[0]}]*{first[0]}"
    return r"\S+"


def _escaped(text: str) -> str:
    """The text as RE2 finds it."""
    return _SPECIAL.sub(r"\\\1", text)
