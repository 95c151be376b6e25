"""Types of single values in a record: those of JSON, and further restrictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.model import Target, TargetError
from harness.model.target import TARGET_PATTERN

LONGEST = 10**12
"""In seconds: sums and roundings of what is less are numbers of JSON."""


class InvalidValue(Exception):
    """A value that cannot stand where it stands.

    Parameters
    ----------
    problem : str
        What is wrong, without the key: ``must be text, not null``.
    path : list of str and int
        Keys and places that lead to the value, the innermost first.
    """

    def __init__(self, problem: str, path: list[str | int] | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str | int] = path or []

    def __str__(self) -> str:
        """``artifact.kernels[0].num_regs: must be a whole number, not text``."""
        key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in reversed(self.path))
        return f"{key.removeprefix('.')}: {self.problem}" if key else self.problem


@dataclass(frozen=True)
class Check:
    """The type of a value.

    Parameters
    ----------
    run : callable
        Raises `InvalidValue` on any other value.
    schema : Mapping
        The same as JSON Schema, as far as that can say it.
    kind : str
        The same in words: ``a whole number``.
    """

    run: Callable[[Any], None]
    schema: Mapping[str, Any]
    kind: str


def word_of(value: Any) -> str:
    """Describe a JSON value for people: ``text``, ``a number``, ``a table``."""
    words = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
    return words.get(type(value), "null")


def _of(kind: type, word: str, schema_type: str) -> Check:
    def run(value: Any) -> None:
        # bool is an int to isinstance, and `true` is no number of registers.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InvalidValue(
                f"must be {word}, not {value if kind is int and type(value) is float else word_of(value)}"
            )

    return Check(run, {"type": schema_type}, word)


TEXT = _of(str, "text", "string")
FLAG = _of(bool, "true or false", "boolean")
WHOLE = _of(int, "a whole number", "integer")
TABLE = _of(dict, "a table", "object")


def _filled(value: Any) -> None:
    TEXT.run(value)
    if not value:
        raise InvalidValue("must not be empty")


def _count(value: Any) -> None:
    WHOLE.run(value)
    if not -(2**63) <= value < 2**63:
        raise InvalidValue("must be a whole number that fits into 64 bits")


def _seconds(value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise InvalidValue(f"must be a number, not {word_of(value)}")
    try:
        fits = math.isfinite(value) and 0 <= value <= LONGEST
    except OverflowError:
        raise InvalidValue("must be a number of seconds, not one that is greater than any float") from None
    if not fits:
        raise InvalidValue(f"must be a number of seconds, not {value}")


def _target(value: Any) -> None:
    TEXT.run(value)
    try:
        Target.parse(value)
    except TargetError as error:
        raise InvalidValue(str(error)) from None


FILLED = Check(_filled, {"type": "string", "minLength": 1}, "text")
COUNT = Check(_count, {"type": "integer"}, WHOLE.kind)
"""A whole number that a column of ``results.parquet`` can hold."""
SECONDS = Check(_seconds, {"type": "number", "minimum": 0, "maximum": LONGEST}, "a number")
TARGET = Check(_target, {"type": "string", "pattern": f"^{TARGET_PATTERN}$"}, "a target")


def one_of(words: type[StrEnum]) -> Check:
    """One of the words of an enumeration."""
    known = frozenset(map(str, words))

    def run(value: Any) -> None:
        TEXT.run(value)
        if value not in known:
            raise InvalidValue(f"{value!r} is not one of {', '.join(words)}")

    return Check(run, {"enum": [str(word) for word in words]}, f"a {words.__name__.lower()}")


def constant(value: int) -> Check:
    """A number that is always the same."""
    return Check(WHOLE.run, {"const": value}, f"{value}")
