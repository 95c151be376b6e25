"""``cumatrix ask``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.command import Command
from harness.cli.terminal import say_json


@click.command(cls=Command)
@click.argument("question", nargs=-1, required=True, metavar="QUESTION")
@click.option(
    "--results",
    multiple=True,
    type=click.Path(path_type=Path, exists=True),
    metavar="FILE",
    help="Answer from these results (.parquet, .jsonl, or a folder of .jsonl) and no others.",
)
@click.option(
    "--all", "every", is_flag=True, help="Show every feature that the question is about, not only the first 5."
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as one JSON object on stdout.")
def ask(question: tuple[str, ...], results: tuple[Path, ...], every: bool, as_json: bool) -> int:
    """Answer a question from results: does it work, and since when?

    QUESTION names a feature. It may also name architectures (sm_90, Turing, RTX 4090), CUDA releases (cuda 13.0),
    libraries and tools (numba 0.59, cutlass 3.5.1, nvcc, jitify) and host compilers (gcc-13, clang-19). It can ask what
    breaks between two releases, what fails, what you may drop, whether a release is broken, for limits and first
    releases, and for the cause of a message. Nothing is compiled. The exit code is 3 if nothing was tested or no case
    matches the question; cumatrix then prints a command that tests it.

    Answers come from the published matrix, and separately from your own results in the folder reports.

    \b
    cumatrix ask "bf16 wmma sm_75"
    cumatrix ask grid sync numba 0.59
    cumatrix ask does wgmma work on sm_120
    cumatrix ask what breaks between CUDA 12.9 and 13.0
    cumatrix ask may I drop sm_70
    cumatrix ask first CUDA with sm_120
    cumatrix ask gcc-14 nvcc 13.0
    cumatrix ask cutlass 3.5.1 cuda 13.0 sm_90 --results nightly.parquet
    """
    # These imports would slow down help and completion.
    from harness.answers.answer import SHOWN
    from harness.cli.ask_output import elsewhere, put, show, sources_of, to_json

    query, vocabulary, found = put(" ".join(question), sources_of(results), sys.maxsize if every else SHOWN)
    if as_json:
        say_json(to_json(found, query))
    else:
        show(found, query, vocabulary, *elsewhere(found, query, vocabulary))
    return 0 if any(answer.proven for _, answer in found) else 3
