"""What compilers really said, and the cause that has to be told of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from harness.causes import catalogue, explain_log

CORPUS = Path(__file__).parent / "corpus"


class Excerpt(NamedTuple):
    """A log, the cause that it has (``none``: no error of it has a known one), who said it, and of which program."""

    cause: str
    by: str
    name: str
    log: str


def excerpts() -> list[Excerpt]:
    found = []
    for file in sorted(CORPUS.glob("*.log")):
        for part in file.read_text("utf-8").split("#### ")[1:]:
            head, _, log = part.partition("\n")
            cause, by, name = head.split(" | ")
            found.append(Excerpt(cause, by, name, log))
    return found


EXCERPTS = excerpts()


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda item: f"{item.name}-{item.by}")
def test_the_cause_of_the_error_comes_first(excerpt: Excerpt) -> None:
    explained = explain_log(excerpt.log)
    told = [match.cause.name for match in explained.matches if not match.of_warning]
    assert (told or ["none"])[0] == excerpt.cause
    if excerpt.cause == "none":
        assert explained.unexplained or not explained.matches


@pytest.mark.parametrize("excerpt", EXCERPTS, ids=lambda item: f"{item.name}-{item.by}")
def test_build_services_put_margins_before_the_same_words(excerpt: Excerpt) -> None:
    """pip indents what a compiler said, docker and GitHub number and date it."""
    lines = [f"      {line}" for line in excerpt.log.splitlines()]
    dated = [f"2026-01-31T12:00:00.0000000Z {line}" for line in excerpt.log.splitlines()]
    for log in ("\n".join(lines), "\n".join(dated)):
        told = [match.cause.name for match in explain_log(log).matches if not match.of_warning]
        assert (told or ["none"])[0] == excerpt.cause


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("ptxas warning : Stack size for entry function '_Z1kPi' cannot be statically determined\n", "recursion-stack"),
        ("UserWarning: The detected CUDA version (12.2) has a minor version mismatch with the version that was used to compile PyTorch (12.1).\n", "torch-cuda-mismatch"),
    ],
)  # fmt: skip
def test_where_there_are_only_warnings_theirs_is_told(log: str, cause: str) -> None:
    explained = explain_log(log)
    assert [(match.cause.name, match.of_warning) for match in explained.matches] == [(cause, True)]
    assert explained.unexplained is None


def test_nothing_of_the_corpus_is_named_that_is_not_in_the_catalogue() -> None:
    assert {item.cause for item in EXCERPTS} - {"none"} <= set(catalogue())
    assert len(EXCERPTS) > 400
