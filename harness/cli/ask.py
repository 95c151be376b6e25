"""``cumatrix ask``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from harness.answers.architecture import asks_for_itself
from harness.answers.asked import Asked
from harness.answers.question import Vocabulary, parse
from harness.answers.store import vocabulary_of
from harness.cli.ask_show import Found, show, to_json
from harness.cli.ask_sources import Source, sources_of
from harness.cli.command import Command
from harness.cli.terminal import say_json
from harness.errors import UsageError


@click.command(cls=Command)
@click.argument("question", nargs=-1, required=True, metavar="QUESTION")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Answer from these results (.parquet, .jsonl, or a folder of .jsonl) and no others.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object on stdout.")
def ask(question: tuple[str, ...], results: tuple[Path, ...], as_json: bool) -> int:
    """Does it work? Since when? Answers from results, with proof; nothing is compiled.

    Answers come from the matrix that is published with cumatrix, and below it, apart, from your own results in the folder reports.

    QUESTION names a feature, and may name architectures (sm_90, Turing, RTX 4090), CUDA releases (cuda 13.0), tools and libraries
    with or without versions (numba 0.59, cutlass 3.5.1, nvcc, jitify), host compilers (gcc-13, clang-19, glibc 2.43). Exits with 3 where nobody tried it, and names the command that does.

    \b
    cumatrix ask "bf16 wmma sm_75"
    cumatrix ask grid sync numba 0.59
    cumatrix ask does wgmma work on sm_120
    cumatrix ask gcc-14 nvcc 13.0
    cumatrix ask cutlass 3.5.1 cuda 13.0 sm_90 --results nightly.parquet
    """
    asked, vocabulary, found = put(" ".join(question), sources_of(results))
    if as_json:
        say_json(to_json(found, asked))
    else:
        show(found, asked, vocabulary)
    return 0 if any(answer.proven for _, answer in found) else 3


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
