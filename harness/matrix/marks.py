"""The table of outcomes: words, letters, colours and order for all output with cells or answers.

The terminal, the page with its style sheet and script, exports, answers, pictures and histories use this table. A cell
has a mark, which says whether the cell is as expected. Each mark belongs to a group, which says what the cell means for
a user of the feature. An answer summarizes several versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from harness.model import Status, Target, Verdict


@dataclass(frozen=True, kw_only=True)
class Ending:
    """The end of a cell, expected or not: the first word of an outcome (`harness.analysis.frame.outcome_of`).

    Parameters
    ----------
    verb : str
        The verb for the program in statements: ``builds``.
    of_tool : str
        The verb for the tool in sentences about releases: ``builds it``.
    """

    verb: str
    of_tool: str


ENDINGS: Mapping[str, Ending] = {
    "built": Ending(verb="builds", of_tool="builds it"),
    "compiled": Ending(verb="compiles to PTX, which was not assembled", of_tool="builds it"),
    "rejected": Ending(verb="rejected", of_tool="rejects it"),
    "timed_out": Ending(verb="does not come to an end", of_tool="does not come to an end"),
    "crashed": Ending(verb="crashes", of_tool="crashes on it"),
}
"""Decisions of a compiler, ordered by severity, the most severe last."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The meaning of cells for a user of the feature: whether it works, not whether that was expected.

    Parameters
    ----------
    letter : str
        Its letter in the rows of cells for answers.
    word, plural : str
        ``does not build`` for one cell, ``do not build`` for several.
    answered : bool
        Whether a compiler answered.
    colour : str
        Its colour in the picture of shared links.
    """

    letter: str
    word: str
    plural: str
    answered: bool = True
    colour: str = ""

    def words(self, count: int) -> str:
        """Return the words for a number of cells."""
        return self.word if count == 1 else self.plural


GROUPS: Mapping[str, Group] = {
    "works": Group(letter="w", word="builds", plural="build", colour="#007a59"),
    "empty": Group(letter="o", word="no kernels", plural="no kernels", answered=False, colour="#8a7f2e"),
    "not": Group(letter="x", word="does not build", plural="do not build", colour="#8a5a00"),
    "fault": Group(letter="k", word="known fault", plural="known fault", colour="#7b2d8b"),
    "surprise": Group(letter="s", word="surprise", plural="surprise", colour="#b3261e"),
    "unavailable": Group(letter="u", word="not available", plural="not available", answered=False),
    "missing": Group(letter=".", word="never arrived", plural="never arrived", answered=False),
    "na": Group(letter="n", word="not applicable", plural="not applicable", answered=False),
}
"""The groups by key, in order."""


@dataclass(frozen=True)
class Mark:
    """One kind of cell.

    Parameters
    ----------
    key : str
        Its name in exports and conditions, which call it ``mark``.
    letter : str
        The letter on the page, in exports and in a terminal.
    word : str
        Its name for readers.
    meaning : str
        The sentence of the legend.
    style : str
        Its style in a terminal, in rich's syntax.
    light, dark : str
        Its colours on the page: background, text, and part of a bar.
    group : str
        Key of its group (`GROUPS`).
    statuses : tuple of Status
        The statuses with this mark.
    verdict : Verdict, optional
        The verdict that the statuses require. By default, any verdict without another mark.
    severity : str
        The severity in GitLab's terms; empty if the cell is as expected.
    ascii : str
        The letter for ASCII-only streams, if it differs.
    """

    key: str
    letter: str
    word: str
    meaning: str
    style: str
    light: str
    dark: str
    group: str
    statuses: tuple[Status, ...] = ()
    verdict: Verdict | None = None
    severity: str = ""
    ascii: str = ""

    @property
    def plain(self) -> str:
        """The letter in ASCII."""
        return self.ascii or self.letter

    @property
    def as_expected(self) -> bool:
        """Return whether a run with only such cells exits with 0."""
        return not self.severity

    @property
    def css(self) -> str:
        """The class in the page's style sheet."""
        return self.key.replace("_", "-")


_ANSWERED = tuple(status for status in Status if status.answered)

_ALL = (
    Mark(
        "built", "✓", "built", "built, as expected",
        "green", "#cdebd4 #0c4a20 #4cb368", "#1c4b2b #b9f0c7 #379a55",
        "works", (Status.BUILT,), verdict=Verdict.PASS, ascii="B",
    ),
    Mark(
        "partial", "◐", "compiled only", "compiled to PTX, as expected; assembling for the target was not run",
        "green", "#e6f1e0 #35561f #9ccf7d", "#2b3d22 #cde8b8 #6f9a52",
        "works", ascii="P",  # `kind_of` separates it from `built`
    ),
    Mark(
        "no_kernels", "○", "no kernels", "built, and no kernel came out: nothing was compiled for the device",
        "yellow", "#f0eddc #4f4a2a #c9bf86", "#3a3724 #e9e2b8 #8f8650",
        "empty", ascii="0",  # `kind_of` separates it from `built`
    ),
    Mark(
        "rejected", "R", "rejected as expected", "rejected, as expected",
        "cyan", "#d3e4fb #103f7c #5b9ae8", "#1c3f6e #cfe3ff #4d8be0",
        "not", (Status.REJECTED,), verdict=Verdict.PASS,
    ),
    Mark(
        "died", "D", "died as expected", "crashed or timed out, as expected",
        "cyan", "#c9dbe0 #123f4d #5fa0b0", "#1e434f #c4e9f4 #4f93a6",
        "not", (Status.CRASHED, Status.TIMED_OUT), verdict=Verdict.PASS,
    ),
    Mark(
        "xfail", "x", "known failure", "fails in the known way",
        "yellow", "#f6e6b4 #594300 #e0b62f", "#564409 #ffe9a3 #c29a1d",
        "fault", _ANSWERED, verdict=Verdict.XFAIL,
    ),
    Mark(
        "fail", "F", "not as expected", "rejected or built against the expectation",
        "bold red", "#b3231b #ffffff #b3231b", "#f0675c #1a0302 #f0675c",
        "surprise", (Status.BUILT, Status.REJECTED), severity="major",
    ),
    Mark(
        "crashed", "C", "crashed", "the compiler crashed",
        "bold red", "#7d1652 #ffffff #7d1652", "#e57bb7 #25041a #e57bb7",
        "surprise", (Status.CRASHED,), severity="blocker",
    ),
    Mark(
        "timed_out", "T", "timed out", "the compiler did not come to an end",
        "bold red", "#934300 #ffffff #934300", "#f09b4c #221002 #f09b4c",
        "surprise", (Status.TIMED_OUT,), severity="blocker",
    ),
    Mark(
        "xpass", "X", "unexpectedly built", "built, where a known failure was expected",
        "bold magenta", "#6a2bc4 #ffffff #6a2bc4", "#b48cff #1a0836 #b48cff",
        "surprise", _ANSWERED, verdict=Verdict.XPASS, severity="minor",
    ),
    Mark(
        "unavailable", "U", "not available", "a part that was asked for is not installed",
        "bold yellow", "#4d535c #ffffff #4d535c", "#98a0ab #101216 #98a0ab",
        "unavailable", (Status.UNAVAILABLE,), severity="minor",
    ),
    Mark(
        "harness_error", "H", "harness error", "a fault of cumatrix itself",
        "bold red", "#17181b #ffffff #17181b", "#f2f2f3 #101216 #f2f2f3",
        "surprise", (Status.HARNESS_ERROR,), severity="blocker",
    ),
    Mark(
        "missing", "?", "missing", "planned, but never arrived",
        "bold yellow", "#ffffff #a3160f #d98a86", "#1c1f24 #ff9a91 #b35a54",
        "missing", severity="major",
    ),
    Mark(
        "unsupported", "–", "not applicable", "the toolkit or the backend does not support the combination; never a failure",
        "dim", "transparent #60656c #d7d9dc", "transparent #9ca2ab #3d424a",
        "na", (Status.UNSUPPORTED,), ascii="-",
    ),
)  # fmt: skip

KINDS: Mapping[str, Mark] = {kind.key: kind for kind in _ALL}
"""The kinds by key, in the order of the legend."""

_KIND_OF = {(status, kind.verdict): kind for kind in _ALL for status in kind.statuses}

LEAST_EXPECTED = sorted(KINDS, key=lambda key: ("blocker", "major", "minor", "").index(KINDS[key].severity))
"""The keys, the most severe first."""


def kind_of(record: Mapping[str, Any]) -> Mark:
    """Return the kind of a record, by its verdict and status."""
    kind = _kind_of(record["status"], record["verdict"])
    if kind.key == "built":
        return KINDS["no_kernels" if without_kernels(record) else "partial" if stopped_at_ptx(record) else "built"]
    return kind


@lru_cache(maxsize=256)
def _kind_of(status: str, verdict: str) -> Mark:
    of = Status(status)
    return _KIND_OF.get((of, Verdict(verdict))) or _KIND_OF[of, None]


def without_kernels(record: Mapping[str, Any]) -> bool:
    """Return whether a built program has no kernel: an empty file, an uninstantiated template, or a kernel behind a guard."""
    return record["status"] == Status.BUILT and record["artifact"] is not None and not record["artifact"]["kernels"]


def stopped_at_ptx(record: Mapping[str, Any]) -> bool:
    """Return whether the outcome is only PTX.

    PTX does not prove that ptxas accepts it, so a real target has no full success.
    """
    artifact = record["artifact"]
    return (
        artifact is not None
        and artifact["format"] == "ptx"
        and not Target.parse(record["target"]).virtual
        and not {"assemble", "link", "load", "launch", "verify"} & set(record["stages"])
    )


def as_expected(record: Mapping[str, Any]) -> bool:
    """Return whether a record is as expected.

    Exit codes, the page, analyses, badges and the nightly run use only this function.
    """
    return kind_of(record).as_expected


def letter_of(mark: str, status: str) -> str:
    """Return the letter of a cell for answers: whether the program works, independent of the case's expectation."""
    if status == Status.BUILT:
        return GROUPS["empty" if mark == "no_kernels" else "works"].letter
    # An error of cumatrix itself proves nothing about the program, nor does a mark of a later version.
    known = mark in KINDS and mark != "harness_error"
    return GROUPS[KINDS[mark].group if known else "missing"].letter


def unexpected_among(counts: Mapping[str, int]) -> int:
    """Return the number of cells that are not as expected, from numbers of cells by key of their kind."""
    return sum(count for key, count in counts.items() if not KINDS[key].as_expected)


def surprises_among(counts: Mapping[str, int]) -> int:
    """Return the same number as `unexpected_among` without unavailable cells."""
    return unexpected_among(counts) - grouped(counts).get("unavailable", 0)


def grouped(counts: Mapping[str, int]) -> dict[str, int]:
    """Return numbers of cells by key of `GROUPS`, from numbers by key of their kind, in order and without zeros."""
    found = {group: sum(count for key, count in counts.items() if KINDS[key].group == group) for group in GROUPS}
    return {group: count for group, count in found.items() if count}


def counted_group(group: str, count: int) -> str:
    """Return a count with the words of its group: ``1 builds``, ``3 do not build``."""
    return f"{count:,} {GROUPS[group].words(count)}"


@dataclass(frozen=True, kw_only=True)
class Tone:
    """The look of a kind of answer.

    Parameters
    ----------
    style : str
        The style in a terminal, in rich's syntax.
    badge : str
        Colour of a badge. White text on it has a contrast of at least 4.5.
    page : str
        The page's colours, by the prefix of their names in its style sheet; empty for plain text.
    border : str
        The page's colour of a border, by its name in the style sheet.
    """

    style: str
    badge: str
    page: str = ""
    border: str = ""


GOOD = Tone(style="green", badge="#2e7d32", page="built", border="built-b")
PARTIAL = Tone(style="yellow", badge="#8a5a00", page="partial", border="xfail-b")
KNOWN = Tone(style="yellow", badge="#8a5a00", page="xfail", border="xfail-b")
BAD = Tone(style="red", badge="#c62828", page="refused", border="fail")
NONE = Tone(style="dim", badge="#5f6368")


@dataclass(frozen=True, kw_only=True)
class AnswerKind:
    """A summary of several versions.

    Parameters
    ----------
    sign, plain : str
        The sign, and the sign for ASCII-only streams.
    sense : str
        ``works``: builds with the newest versions; ``part``: in some; ``refused``: in none; ``silent``: no compiler
        answered.
    tone : Tone
        The look.
    text : str
        The text if the statement names no version.
    """

    sign: str
    plain: str
    sense: str
    tone: Tone
    text: str = ""


ANSWER_KINDS: Mapping[str, AnswerKind] = {
    "works": AnswerKind(sign="✓", plain="+", sense="works", tone=GOOD, text=GROUPS["works"].word),
    "since": AnswerKind(sign="✓", plain="+", sense="works", tone=GOOD),
    "but": AnswerKind(sign="✓", plain="+", sense="works", tone=PARTIAL),
    "part": AnswerKind(sign="◐", plain="/", sense="part", tone=PARTIAL),
    "until": AnswerKind(sign="✗", plain="x", sense="part", tone=BAD),
    "never": AnswerKind(sign="✗", plain="x", sense="refused", tone=BAD, text="never"),
    "fault": AnswerKind(sign="!", plain="!", sense="refused", tone=KNOWN, text=GROUPS["fault"].word),
    "na": AnswerKind(sign="–", plain="-", sense="silent", tone=NONE, text=GROUPS["na"].word),
    "untried": AnswerKind(sign="?", plain="?", sense="silent", tone=NONE, text="not tried"),
}
"""The kinds of answer by key (`harness.answers.verdict.Support`).

``since`` builds with the newest versions, ``but`` with all except some, ``until`` only with earlier ones, and ``fault``
with none because of a known fault.
"""
