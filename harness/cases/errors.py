"""Errors of a case file: one sentence for each problem, with file, line and key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.cases.positions import Positions
from harness.errors import UsageError

Key = tuple[str | int, ...]
MAX_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong.

    Parameters
    ----------
    file : str
        The case file, as a user would write it.
    line : int
        Line in `file`, from 1; 0 where none can be named.
    key : str
        The key in dotted form (``expect.status``), or empty.
    message : str
        What is wrong, and what to write instead where that is known.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, self.key, self.message) if part)


class CaseError(UsageError):
    """A case that cannot be used; the message has one sentence a problem, each on its line."""

    def __init__(self, problems: Sequence[Problem] | str) -> None:
        self.problems: tuple[Problem, ...] = () if isinstance(problems, str) else tuple(problems)
        super().__init__(problems if isinstance(problems, str) else "\n".join(map(str, problems)))


class Report:
    """Collects the problems of one file, so that a user sees all of them at once."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file = file
        self.positions = Positions(text)
        self.problems: list[Problem] = []

    def add(self, key: Key, message: str, *, line: int | None = None) -> None:
        """Note a problem with what stands at `key`."""
        dotted = ".".join(part for part in key if isinstance(part, str))
        self.problems.append(
            Problem(file=self.file, line=self.line(key) if line is None else line, key=dotted, message=message)
        )

    def line(self, key: Key) -> int:
        """Line of `key`, or of the nearest thing around it."""
        return self.positions.line(key)

    def close(self) -> None:
        """Raise `CaseError` if there was any problem: the first ones, in the order of the file."""
        found = sorted(self.problems, key=lambda problem: problem.line)
        if len(found) > MAX_PROBLEMS:
            message = f"and {len(found) - MAX_PROBLEMS} more"
            found[MAX_PROBLEMS:] = [Problem(file=self.file, line=0, key="", message=message)]
        if found:
            raise CaseError(found)


def shown(value: object, limit: int = 60) -> str:
    """A value for a message, cut where it is long, without control characters."""
    try:
        text = repr(value)
    except RecursionError:  # a key of thousands of parts is as many tables
        return "tables within tables, thousands of them"
    return text if len(text) <= limit else text[: limit - 1] + "…"
