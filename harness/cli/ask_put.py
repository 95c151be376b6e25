"""Putting a question to results."""

from __future__ import annotations

from collections.abc import Sequence

from harness.answers.architecture import asks_for_itself
from harness.answers.asked import Asked
from harness.answers.question import Vocabulary, parse
from harness.answers.store import vocabulary_of
from harness.cli.ask_show import Found
from harness.cli.ask_sources import Source
from harness.errors import UsageError


def put(question: str, sources: Sequence[Source]) -> tuple[Asked, Vocabulary, Found]:
    """Put a question to results: what it asks for, all that it could name, and what each of the results answers.

    Raises
    ------
    UsageError
        Where it names no feature, or an architecture or a release that nothing knows.
    """
    vocabulary = vocabulary_of(*(source.store for source in sources))
    asked = Asked(chips=tuple(parse(question, vocabulary)))
    _check(asked)
    return asked, vocabulary, [(source, source.store.answer(asked, vocabulary)) for source in sources]


def without_targets(found: Found, asked: Asked, vocabulary: Vocabulary) -> Found:
    """What the same results answer for all architectures, where they know nothing at all of those that a question names."""
    if not asked.targets or any(answer.findings for _, answer in found):
        return []
    wider = Asked(chips=tuple(chip for chip in asked.chips if chip.kind != "target"))
    if not any(chip.kind in {"word", "header", "host", "tool"} for chip in wider.chips):
        return []
    answers = [(source, source.store.answer(wider, vocabulary)) for source, _ in found]
    return [(source, answer) for source, answer in answers if answer.proven]


def _check(asked: Asked) -> None:
    """An architecture or a release that nothing knows is bad usage; a word is not."""
    for chip in asked.unknown:
        if chip.name != "word":
            what = {"target": "architecture", "version": "version of anything named before it"}.get(chip.name, "")
            near = (
                f"; the nearest {'are' if len(chip.near) > 1 else 'is'} {' and '.join(chip.near)}" if chip.near else ""
            )
            raise UsageError(f"nothing is known as {chip.text}{f', no {what}' if what else ''}{near}")
    if not asks_for_itself(asked) and not any(chip.kind in {"word", "header", "host", "tool"} for chip in asked.chips):
        words = [f"{chip.text}{f' (did you mean {chip.near[0]}?)' if chip.near else ''}" for chip in asked.unknown]
        what = f"no feature is called {', '.join(words)}" if words else "the question names no feature"
        raise UsageError(f"{what}: ask for one, such as wmma, grid sync or fp8; cumatrix cases list shows all")
