"""Features: cases as readers know them, and the words that find them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from harness.answers.spelling import words_of
from harness.answers.words import WEIGHTS
from harness.matrix.order import natural_key


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A case, as readers know it.

    Parameters
    ----------
    case, title, topic : str
        Its name, its title in plain words, its topic.
    features, links : tuple of str
        Tags, and upstream reports.
    reasons : tuple of str
        Why it is refused somewhere, and known faults.
    faults : tuple of (str, str)
        Reason and link of each known fault.
    """

    case: str
    title: str
    topic: str
    features: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()


def features_of(facts: Iterable[tuple[str, str, str, Sequence[str], Sequence[str], Any]]) -> dict[str, Feature]:
    """Features of ``(case, title, topic, features, links, expected)`` of records; topic by topic, by name."""
    first: dict[str, tuple[str, str, Sequence[str], Sequence[str]]] = {}
    reasons: dict[str, dict[str, None]] = {}
    faults: dict[str, dict[tuple[str, str], None]] = {}
    for case, title, topic, features, links, expected in facts:
        first.setdefault(case, (title, topic, features, links))
        if expected and expected["reason"]:
            reasons.setdefault(case, {})[expected["reason"]] = None
            if expected["xfail"]:
                faults.setdefault(case, {})[expected["reason"], expected["link"]] = None
    ordered = sorted(first, key=lambda case: (natural_key(first[case][1]), natural_key(case)))
    return {
        case: Feature(
            case=case,
            # With the project's name where the case has it: another project's case may have the same title.
            title=first[case][0] + "".join(f" ({whose})" for whose in case.split("@")[1:]),
            topic=first[case][1],
            features=tuple(first[case][2]),
            links=tuple(first[case][3]),
            reasons=tuple(reasons.get(case, ())),
            faults=tuple(faults.get(case, ())),
        )
        for case in ordered
    }


@cache
def words_of_feature(feature: Feature) -> tuple[list[str], list[str], list[str]]:
    """Words of a case: of its name, of title, topic and features, of causes and links (`harness.answers.words.WEIGHTS`)."""
    name = words_of(feature.case)
    title = words_of(" ".join((feature.title, feature.topic, *feature.features)))
    causes = [word for word in words_of(" ".join(feature.reasons)) if word[0].isalpha() and len(word) > 2]
    numbers = [link.rstrip("/").rpartition("/")[2] for link in feature.links]
    repositories = [part for link in feature.links if "github.com" in link for part in words_of(link.split("/")[4])]
    found = (name, title, [*causes, *(number for number in numbers if number.isdigit()), *repositories])
    assert len(found) == len(WEIGHTS) - 1
    return tuple(list(dict.fromkeys(words)) for words in found)  # type: ignore[return-value]
