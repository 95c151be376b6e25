"""Words as questions and programs spell them, and the nearest known ones. The page's script does the same (`assets/question.js`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NEAREST = 3
_WORD = re.compile(r"[^\s,;?!()\"'\u201c\u201d]+")
_SAID = re.compile(r"(?<![\w$.])[a-z]{4,40}(?![\w$])")
_PART = re.compile(r"[a-z]+[a-z0-9]*|[0-9]+[a-z0-9]*")


def tokens_of(text: str) -> list[str]:
    """A question's words, in lower case: ``["cutlass", "3.5.1", "sm_90"]``."""
    return [token.rstrip(".:") for token in _WORD.findall(text.lower()) if token.rstrip(".:")]


def words_of(text: str) -> list[str]:
    """Words of a title, a name or a parameter, in lower case: ``fragment=bf16`` has two."""
    return _PART.findall(text.lower())


def words_said(messages: Iterable[str]) -> frozenset[str]:
    """Searchable words of compiler messages: no numbers, no mangled names."""
    return frozenset(word for message in messages for word in _SAID.findall(message.lower()))


def version_of(text: str) -> tuple[int, ...]:
    """The numbers of a version, to order and to compare by; nothing of what is no version."""
    return tuple(int(part) for part in text.split(".")) if re.fullmatch(r"\d{1,9}(\.\d{1,9})*", text) else ()


def in_series(version: str, series: str) -> bool:
    """Return whether 13.6.0 belongs to the series 13, or 13.6; a text that is no version matches only itself."""
    numbers, wanted = version_of(version), version_of(series)
    if not numbers or not wanted:
        return version == series
    return (*numbers, *(0,) * len(wanted))[: len(wanted)] == wanted


def spell_span(names: Sequence[str]) -> str:
    """``12.3.0 to 14.2.0``, of versions in order; empty of none."""
    return "" if not names else names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def nearest_versions(version: str, known: Iterable[str]) -> list[str]:
    """The known versions on both sides of one that is not known."""
    wanted = version_of(version)
    ordered = sorted((item for item in known if version_of(item)), key=version_of)
    below = [item for item in ordered if version_of(item) < wanted]
    above = [item for item in ordered if version_of(item) >= wanted]
    return [*below[-1:], *above[:1]]


def nearest_words(word: str, known: Sequence[str]) -> list[str]:
    """Known words that are at most two letters away (one, for short words), the nearest first."""
    most = 1 if len(word) < 5 else 2
    found = [(distance(word, item), item) for item in known if abs(len(item) - len(word)) <= most]
    return [item for far, item in sorted(found) if far <= most][:NEAREST]


def distance(one: str, other: str) -> int:
    """Number of letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
