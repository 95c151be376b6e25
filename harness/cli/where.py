"""``--where``, and words after ``-k`` as the condition that they stand for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import click

from harness.errors import UsageError

EXAMPLE = """'cc >= "8.0" and backend == "numba"'"""


def where_option(example: str, what: str = "Only cells for which this holds") -> Callable[[Any], Any]:
    """The option.

    Parameters
    ----------
    example : str
        A condition that is worth asking of this command.
    what : str
        What the command does with it.
    """
    return click.option(
        "--where", metavar="CONDITION", callback=_not_empty, help=f"{what}: {example}. Names: docs/selection.md."
    )


def _not_empty(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """A condition that is empty, as out of a variable that is not set, must not choose everything."""
    if value is not None and not value.strip():
        raise UsageError(f"--where has no condition: write one, as in {EXAMPLE}")
    return value


def where_of(where: str | None, words: str | None) -> str | None:
    """One condition out of ``--where`` and ``-k``, which is told of; None without either.

    Raises
    ------
    UsageError
        When `words` cannot be read.
    """
    if not words:
        return where
    from harness.hints import hint  # as below

    condition = _condition_of(words)
    hint(f"-k will go with the next release: write --where {shlex.quote(condition)}")
    return f"({where}) and ({condition})" if where else condition


def _condition_of(words: str) -> str:
    """``"tf32" in cell and not "jitify" in cell`` out of ``tf32 and not jitify``."""
    from harness.model.condition import Condition, ConditionError  # for which help and completion need not wait

    parts = [
        word if word in ("and", "or", "not", "(", ")") else f"{_quoted(word)} in cell"
        for word in re.findall(r"\(|\)|[^\s()]+", words)
    ]
    text = " ".join(parts).replace("( ", "(").replace(" )", ")")
    try:
        Condition.parse(text, names={"cell": str})
    except ConditionError as error:
        why = error if "may" in str(error) else "it has words with and, or, not and parentheses"
        raise UsageError(f"cannot read -k {words[:200]!r}: {why}; better write --where, as in {EXAMPLE}") from None
    return text


def _quoted(word: str) -> str:
    """A text of Python's, with the quotes that shells leave alone where that can be."""
    return f'"{word}"' if '"' not in word and "\\" not in word and word.isprintable() else repr(word)
