"""The kinds of cell: the legend of the page, of the terminal and of every export, and what of them is as expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.model import Status, Verdict


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One kind of cell.

    Parameters
    ----------
    key : str
        Its name in exports and queries (there it is called ``mark``).
    letter : str
        The letter on the page, in exports and in a terminal.
    plain : str
        The same where a stream has ASCII only.
    word : str
        Its name for readers.
    meaning : str
        The sentence of the legend.
    style : str
        Its style in a terminal, as rich spells styles.
    as_expected : bool
        Whether a run of only such cells exits with 0.
    group : str
        The meaning for a user of the feature (`GROUPS`): whether it works, not whether that was expected.
    """

    key: str
    letter: str
    plain: str
    word: str
    meaning: str
    style: str
    as_expected: bool
    group: str

    @property
    def css(self) -> str:
        """Its class in the page's style sheet."""
        return self.key.replace("_", "-")

    def letter_in(self, encoding: str) -> str:
        """`letter` where the encoding of a stream has it, else `plain`."""
        try:
            self.letter.encode(encoding)
        except (UnicodeEncodeError, LookupError):
            return self.plain
        return self.letter


SURPRISE = "surprise"

GROUPS: Mapping[str, str] = {
    "works": "works",
    "not": "does not work",
    "fault": "known fault",
    SURPRISE: "surprise",
    "unavailable": "not available",
    "missing": "never arrived",
    "na": "not applicable",
}
"""The meaning of cells for users, by key, in order: an expected cell may work or not."""

_PLURALS = {"works": "work", "not": "do not work"}


def counted_group(group: str, count: int) -> str:
    """``1 works``, ``3 do not work``."""
    return f"{count:,} {GROUPS[group] if count == 1 else _PLURALS.get(group, GROUPS[group])}"


_GROUP_OF = {
    **dict.fromkeys(("built", "partial"), "works"),
    **dict.fromkeys(("rejected", "died"), "not"),
    "xfail": "fault",
    "unavailable": "unavailable",
    "missing": "missing",
    "unsupported": "na",
}


def _kind(key: str, letter: str, word: str, meaning: str, style: str, *, good: bool, plain: str = "") -> Mark:
    return Mark(
        key=key,
        letter=letter,
        plain=plain or letter,
        word=word,
        meaning=meaning,
        style=style,
        as_expected=good,
        group=_GROUP_OF.get(key, SURPRISE),
    )


_ALL = (
    _kind("built", "✓", "built", "built, as expected", "green", good=True, plain="B"),
    _kind(
        "partial",
        "◐",
        "compiled only",
        "compiled to PTX, as expected; assembling for the target was not run",
        "green",
        good=True,
        plain="P",
    ),
    _kind("rejected", "R", "rejected as expected", "rejected, as expected", "cyan", good=True),
    _kind("died", "D", "died as expected", "crashed or timed out, as expected", "cyan", good=True),
    _kind("xfail", "x", "known failure", "fails in the known way", "yellow", good=True),
    _kind("fail", "F", "not as expected", "rejected or built against the expectation", "bold red", good=False),
    _kind("crashed", "C", "crashed", "the compiler crashed", "bold red", good=False),
    _kind("timed_out", "T", "timed out", "the compiler did not come to an end", "bold red", good=False),
    _kind(
        "xpass",
        "X",
        "unexpectedly built",
        "built, where a known failure was expected",
        "bold magenta",
        good=False,
    ),
    _kind("unavailable", "U", "not available", "a part that was asked for is not installed", "bold yellow", good=False),
    _kind("harness_error", "H", "harness error", "a fault of cumatrix itself", "bold red", good=False),
    _kind("missing", "?", "missing", "planned, but never arrived", "bold yellow", good=False),
    _kind(
        "unsupported",
        "–",
        "not applicable",
        "the toolkit or the backend does not support the combination; never a failure",
        "dim",
        good=True,
        plain="-",
    ),
)

KINDS: Mapping[str, Mark] = {kind.key: kind for kind in _ALL}
"""Every kind by its key, in the order of the legend."""


def kind_of(record: Mapping[str, Any]) -> Mark:
    """The kind of a record: by its verdict, and by its status where that says more."""
    return _kind_of(record["status"], record["verdict"], stopped_at_ptx(record))


def as_expected(record: Mapping[str, Any]) -> bool:
    """Return whether a record is as expected. Exit codes, the page, analyses, badges and the nightly run use only this."""
    return kind_of(record).as_expected


def unexpected_among(counts: Mapping[str, int]) -> int:
    """Count the cells that are not as expected, from numbers of cells by key of their kind."""
    return sum(count for key, count in counts.items() if not KINDS[key].as_expected)


def surprises_among(counts: Mapping[str, int]) -> int:
    """Like `unexpected_among`, but ignoring unavailable cells."""
    return unexpected_among(counts) - grouped(counts).get("unavailable", 0)


def grouped(counts: Mapping[str, int]) -> dict[str, int]:
    """Cells by key of `GROUPS`, of numbers of cells by key of their kind; in order, without those that do not occur."""
    found = {group: sum(count for key, count in counts.items() if KINDS[key].group == group) for group in GROUPS}
    return {group: count for group, count in found.items() if count}


@lru_cache(maxsize=256)
def _kind_of(status: str, verdict: str, partial: bool) -> Mark:
    return KINDS[_key(Status(status), Verdict(verdict), partial=partial)]


def _key(status: Status, verdict: Verdict, *, partial: bool) -> str:
    if not status.answered:
        return status
    match verdict:
        case Verdict.XFAIL | Verdict.XPASS:
            return verdict
        case Verdict.PASS if status is Status.BUILT:
            return "partial" if partial else "built"
        case Verdict.PASS:
            return "rejected" if status is Status.REJECTED else "died"
    return status if status in (Status.CRASHED, Status.TIMED_OUT) else "fail"


def stopped_at_ptx(record: Mapping[str, Any]) -> bool:
    """Return whether only PTX was made. PTX cannot show that ptxas would refuse, so for a real target it is not a full success."""
    artifact = record["artifact"]
    return (
        artifact is not None
        and artifact["format"] == "ptx"
        and record["target"].startswith("sm_")
        and not {"assemble", "link", "load", "launch", "verify"} & set(record["stages"])
    )
