"""Free words: what they find, and which of it comes first. The page's script does the same (`assets/question.js`)."""

from __future__ import annotations

from collections.abc import Container, Sequence

WEIGHTS = (8, 5, 2, 6)
"""Weights of a word in a case's name, in its title, topic and features, in causes and links, and in the parameters of a line."""

_PREFIX = 3


def says(word: str, other: str, synonyms: Sequence[Sequence[str]]) -> bool:
    """Return whether a word of a question matches one of a title: a prefix, plural or synonym."""
    for each in alike(word, synonyms):
        stem = each[:-1] if len(each) > 4 and each.endswith("s") else each
        if each == other or (len(stem) >= _PREFIX and not stem.isdigit() and other.startswith(stem)):
            return True
    return False


def alike(word: str, synonyms: Sequence[Sequence[str]]) -> list[str]:
    """The word, and those that mean the same."""
    return [word, *(other for group in synonyms if word in group for other in group if other != word)]


def score(words: Sequence[str], fields: Sequence[Sequence[str]], synonyms: Sequence[Sequence[str]], said: Container[str] = ()) -> tuple[int, int]:  # fmt: skip
    """Count the missing words, and weigh the others.

    Parameters
    ----------
    words : sequence of str
        Free words of a question.
    fields : sequence of (sequence of str)
        Words of the name, the title, the causes, the parameters (`WEIGHTS`).
    synonyms : sequence of (sequence of str)
        Words that mean the same.
    said : container of str
        Words of what compilers said, for a question that is a message: they count one each.
    """
    missing = total = 0
    for word in words:
        found = max(
            (weight for weight, known in zip(WEIGHTS, fields, strict=True) if any(says(word, each, synonyms) for each in known)),
            default=0,
        )  # fmt: skip
        found = found or int(word in said)
        total += found
        missing += not found
    return missing, total
