"""Putting a question to results."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from harness.answers.architecture import asks_for_itself
from harness.answers.asked import Query
from harness.answers.question import Chip, Vocabulary, parse
from harness.answers.store import vocabulary_of
from harness.cli.ask_show import Found
from harness.cli.ask_sources import AnswerSource
from harness.errors import UsageError


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
"""What a question is put without, one after another, where results know nothing of what it names."""


def elsewhere(found: Found, asked: Query, vocabulary: Vocabulary) -> tuple[str, Found]:
    """What the same results answer for other architectures or tools, where they know nothing at all of those that a question names; and for which of them."""
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
    """With the real architecture in the place of a virtual one that nobody tried: compilers name ``compute_120`` where they mean either."""
    real = {value: value.replace("compute_", "sm_") for value in chip.values if chip.kind == "target"}
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
