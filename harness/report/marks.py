"""What a cell of the matrix shows: a letter, a word and a colour for status and verdict together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One kind of cell.

    Parameters
    ----------
    key : str
        Its name in exports, and its class in the style sheet (with ``-`` for ``_``).
    letter, word : str
        What eyes and what screen readers get.
    meaning : str
        The sentence of the legend.
    good : bool
        Whether a run of only such cells is as expected.
    """

    key: str
    letter: str
    word: str
    meaning: str
    good: bool = False


_ALL = (
    Mark(key="built", letter="✓", word="built", meaning="built, as expected", good=True),
    Mark(
        key="partial",
        letter="◐",
        word="compiled only",
        meaning="compiled to PTX, as expected; assembling for the target was not run",
        good=True,
    ),
    Mark(key="rejected", letter="R", word="rejected as expected", meaning="rejected, as expected", good=True),
    Mark(
        key="died",
        letter="D",
        word="died as expected",
        meaning="crashed or timed out, as expected",
        good=True,
    ),
    Mark(key="xfail", letter="x", word="known failure", meaning="fails in the known way", good=True),
    Mark(key="fail", letter="F", word="not as expected", meaning="rejected or built against the expectation"),
    Mark(key="crashed", letter="C", word="crashed", meaning="the compiler crashed"),
    Mark(key="timed_out", letter="T", word="timed out", meaning="the compiler did not come to an end"),
    Mark(
        key="xpass",
        letter="X",
        word="unexpectedly built",
        meaning="built, where a known failure was expected",
    ),
    Mark(
        key="unavailable",
        letter="U",
        word="unavailable",
        meaning="a part that was asked for is not installed",
    ),
    Mark(key="harness_error", letter="H", word="harness error", meaning="a fault of cumatrix itself"),
    Mark(key="missing", letter="?", word="missing", meaning="planned, but never arrived"),
    Mark(
        key="unsupported",
        letter="–",
        word="unsupported",
        meaning="the combination means nothing; never a failure",
        good=True,
    ),
)

MARKS: Mapping[str, Mark] = {mark.key: mark for mark in _ALL}
"""Every mark by its key, in the order of the legend."""


def mark_of(record: Mapping[str, Any]) -> Mark:
    """The mark of a record."""
    return MARKS[_key(record)]


def _key(record: Mapping[str, Any]) -> str:
    status, verdict = record["status"], record["verdict"]
    if status in ("unsupported", "unavailable", "harness_error"):
        return str(status)
    match verdict:
        case "xfail" | "xpass":
            return str(verdict)
        case "pass":
            if status == "built":
                return "partial" if _stopped_at_ptx(record) else "built"
            return "rejected" if status == "rejected" else "died"
    return str(status) if status in ("crashed", "timed_out") else "fail"


def _stopped_at_ptx(record: Mapping[str, Any]) -> bool:
    """PTX cannot show that ptxas would refuse, so for a real target it is no full green."""
    artifact = record["artifact"]
    return (
        artifact is not None
        and artifact["format"] == "ptx"
        and record["target"].startswith("sm_")
        and not {"assemble", "link", "load", "launch", "verify"} & set(record["stages"])
    )
