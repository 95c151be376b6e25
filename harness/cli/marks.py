"""What the terminal calls a cell: a letter, a word and a colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model import Verdict


@dataclass(frozen=True)
class Mark:
    """A letter, a word and a colour for what happened to a cell."""

    letter: str
    word: str
    style: str
    as_expected: bool


MARKS = {
    "built": Mark("B", "built", "green", True),
    "rejected": Mark("R", "rejected, as expected", "cyan", True),
    "crashed": Mark("C", "crashed, as expected", "cyan", True),
    "timed_out": Mark("T", "timed out, as expected", "cyan", True),
    "xfail": Mark("x", "fails, a known fault", "yellow", True),
    "unsupported": Mark("-", "means nothing here", "dim", True),
    "xpass": Mark("P", "a known fault is gone", "bold magenta", False),
    "fail built": Mark("B!", "built, not as expected", "bold red", False),
    "fail rejected": Mark("R!", "rejected, not as expected", "bold red", False),
    "fail crashed": Mark("C!", "crashed", "bold red", False),
    "fail timed_out": Mark("T!", "timed out", "bold red", False),
    "unavailable": Mark("U", "a part is unavailable", "bold yellow", False),
    "harness_error": Mark("E", "cumatrix's own fault", "bold red", False),
}


def mark(record: Mapping[str, Any]) -> Mark:
    """The mark of a record: by its verdict where that is not a plain pass, by its status else."""
    verdict, status = record["verdict"], record["status"]
    if verdict == Verdict.FAIL:
        return MARKS[f"fail {status}"]
    return MARKS[verdict if verdict in (Verdict.XFAIL, Verdict.XPASS) else status]
