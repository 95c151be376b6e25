"""From a question and results to the answer with all that belongs to it; what the command and the public package both need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.answers.answer import Answer, Asked, answer, command_for
from harness.answers.cells import Known
from harness.answers.question import Vocabulary, parse
from harness.answers.table import vocabulary_of
from harness.errors import NothingToRun, UsageError

PUBLISHED = Path("reports/matrix/results.parquet")
"""The published matrix, in a checkout; a package has it beside `harness`."""


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer, with the question and what it was answered from."""

    answer: Answer
    asked: Asked
    known: Known
    vocabulary: Vocabulary

    @property
    def tried(self) -> bool:
        """Whether anybody tried what was asked for."""
        return any(said.proof for finding in self.answer.findings for said in finding.said)

    @property
    def commands(self) -> tuple[str, ...]:
        """Commands that try it: through the case that fits best, and with a file of one's own."""
        first = self.answer.findings[0].case if self.answer.findings else ""
        own = command_for(self.asked, self.vocabulary)
        return (command_for(self.asked, self.vocabulary, first), own) if first else (own,)


def reply_to(question: str, known: Known) -> Reply:
    """Answer a question.

    Raises
    ------
    NothingToRun
        Where there is nothing to answer from.
    UsageError
        Where the question names no feature, or an architecture or a release that nothing knows.
    """
    if not known.rows:
        raise NothingToRun("there are no results to answer from")
    vocabulary = vocabulary_of(known)
    asked = Asked(chips=tuple(parse(question, vocabulary)))
    _check(asked)
    return Reply(answer=answer(asked, known, vocabulary), asked=asked, known=known, vocabulary=vocabulary)


def published() -> Path:
    """The published matrix; raises `UsageError` where there is none."""
    root = Path(__file__).parents[2]
    for place in (PUBLISHED, root / PUBLISHED, root / "harness" / "matrix_library" / PUBLISHED.name):
        if place.is_file():
            return place
    raise UsageError(f"there is no {PUBLISHED} here: name results to answer from, as in --results reports")


def _check(asked: Asked) -> None:
    """An architecture or a release that nothing knows is bad usage; a word is not."""
    for chip in asked.unknown:
        if chip.name != "word":
            what = {"target": "architecture", "version": "version of anything named before it"}.get(chip.name, "")
            near = (
                f"; the nearest {'are' if len(chip.near) > 1 else 'is'} {' and '.join(chip.near)}" if chip.near else ""
            )
            raise UsageError(f"nothing is known as {chip.text}{f', no {what}' if what else ''}{near}")
    if not any(chip.kind in {"word", "header", "tool"} for chip in asked.chips):
        words = [f"{chip.text}{f' (did you mean {chip.near[0]}?)' if chip.near else ''}" for chip in asked.unknown]
        what = f"no feature is called {', '.join(words)}" if words else "the question names no feature"
        raise UsageError(f"{what}: ask for one, such as wmma, grid sync or fp8; cumatrix cases list shows all")
