"""The search for borders: a coarse sweep first, then each border between two releases that differ.

Nothing is known here of compilers: releases are places in a list, and outcomes are values that are equal or not. A history
need not be monotonic. What is tried may hold several cells (targets, variants): each is a lane, with a history of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Generic, TypeVar

from packaging.version import InvalidVersion, Version

from harness.backends import library_of
from harness.diagnostics import one_line, tells_most
from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.libraries import LIBRARIES
from harness.matrix.marks import KINDS, kind_of, stopped_at_ptx
from harness.matrix.ranges import ranges
from harness.model import Status, Verdict
from harness.model.cell import BUNDLED
from harness.records import at_stage

LaneT = TypeVar("LaneT", bound=Hashable)
History = Mapping[int, Hashable | None]
"""The outcome at each tried place; None if it could not be tried (skipped)."""


@dataclass(frozen=True)
class Border:
    """Two releases that differ, without a known one between them.

    Parameters
    ----------
    before, after : int
        Their places.
    """

    before: int
    after: int

    @property
    def between(self) -> range:
        """Places between the two: none of them could be tried, once the search has come to its end."""
        return range(self.before + 1, self.after)


class Search(Generic[LaneT]):
    """Says what to try next, from what was seen so far; no place is tried twice.

    Parameters
    ----------
    versions : sequence of str
        Releases, oldest first.
    every : bool
        Whether to try all of them.
    hopeless : collection of str
        Releases that need not be tried: they count as skipped.
    """

    def __init__(self, versions: Sequence[str], *, every: bool = False, hopeless: Collection[str] = ()) -> None:
        self.versions = list(versions)
        self.tried: dict[int, Mapping[LaneT, Hashable | None]] = {
            place: {} for place, version in enumerate(self.versions) if version in hopeless
        }
        left = [place for place in range(len(self.versions)) if place not in self.tried]
        self._sweep = (
            left if every else [left[place] for place in sweep([self.versions[place] for place in left], self.versions)]
        )

    def add(self, place: int, outcomes: Mapping[LaneT, Hashable | None]) -> None:
        """Take note of what was seen at a place; empty where the release could not be tried."""
        if place in self.tried:
            raise ValueError(f"{self.versions[place]} was tried already")
        self.tried[place] = dict(outcomes)

    def next(self) -> list[int]:
        """Places to try now, all at once if that can be; none when every border is found."""
        left = [place for place in self._sweep if place not in self.tried]
        if left:
            return left
        return sorted({place for lane in self.lanes for place in _closer(self.history(lane))})

    @property
    def sweeping(self) -> bool:
        """Return whether the coarse sweep is still running."""
        return any(place not in self.tried for place in self._sweep)

    @property
    def lanes(self) -> list[LaneT]:
        """Every lane that was seen anywhere, in the order of their first sight."""
        return list(dict.fromkeys(lane for place in sorted(self.tried) for lane in self.tried[place]))

    def history(self, lane: LaneT) -> dict[int, Hashable | None]:
        """The outcomes of one lane, by place, oldest first."""
        return {place: self.tried[place].get(lane) for place in sorted(self.tried)}

    def borders(self, lane: LaneT) -> list[Border]:
        """The borders of one lane, as far as they are known."""
        return borders(self.history(lane))

    def left(self) -> int:
        """Estimate the number of places left to try, if each known border stays one."""
        waiting = [place for place in self._sweep if place not in self.tried]
        gaps = {pair for lane in self.lanes for pair in _open(self.history(lane))}
        return len(waiting) + sum(math.ceil(math.log2(b - a)) for a, b in gaps)


def borders(history: History) -> list[Border]:
    """Neighbors that differ, among those with an outcome."""
    known = [(place, outcome) for place, outcome in sorted(history.items()) if outcome is not None]
    return [Border(run.before, run.values[0]) for run in ranges(known) if run.before is not None]


def sweep(versions: Sequence[str], published: Sequence[str] = ()) -> list[int]:
    """Places of the coarse sweep: where changes come, and nothing far from all that is tried.

    Both ends; the first and the last release of each major series; the first of each minor series (``0.59.0``), which most
    changes come with, unless nearly every release is one; then the middles of what is wider than the root of their number.

    Parameters
    ----------
    versions : sequence of str
        Those that can be tried, oldest first.
    published : sequence of str
        All that there are, which say how many are the first of a series; `versions` when empty.
    """
    count = len(versions)
    numbers = [_numbers(version) for version in versions]
    every = [_numbers(version) for version in published or versions]
    chosen = {0, count - 1} if count else set()
    for series in _series(numbers, 1):
        chosen |= {series[0], series[-1]}
    if 3 * len(_series(every, 2)) <= 2 * len(every):
        chosen |= {series[0] for series in _series(numbers, 2)}
    widest = max(2, round(math.sqrt(count)))
    while gap := next(((a, b) for a, b in pairwise(sorted(chosen)) if b - a > widest), None):
        chosen.add(sum(gap) // 2)
    return sorted(chosen)


def _series(numbers: Sequence[Sequence[int]], length: int) -> list[list[int]]:
    """Places of releases that have the first numbers in common."""
    return [list(places) for _, places in groupby(range(len(numbers)), lambda place: tuple(numbers[place][:length]))]


def _numbers(version: str) -> tuple[int, ...]:
    try:
        return Version(version).release
    except InvalidVersion:
        return ()


def _open(history: History) -> Iterable[tuple[int, int]]:
    """Pairs of places with a border between them, or an end of what can be tried, and something left to try."""
    known = [place for place in sorted(history) if history[place] is not None]
    pairs = [(border.before, border.after) for border in borders(history)]
    if known:  # if the ends could not be tried: the first and last releases that can
        pairs += [(a, b) for a, b in pairwise(sorted(history)) if b == known[0] or a == known[-1]]
    return [(a, b) for a, b in pairs if any(place not in history for place in range(a + 1, b))]


def _closer(history: History) -> Iterable[int]:
    """For each border a place that brings it closer: the one that lies furthest from all that is tried."""
    for a, b in _open(history):
        tried = [place for place in history if a <= place <= b]
        yield max(
            (place for place in range(a + 1, b) if place not in history),
            key=lambda place: (min(abs(place - other) for other in tried), -place),
        )


_LONGEST = 160
# Header libraries of a checkout (`harness.git.build_of`).
_BUILD = re.compile(r"=[\w.]+\+(?:git|local|build)\.[\w.]+")


@dataclass(frozen=True, order=True)
class Lane:
    """A cell without the release that is looked for: the rest of what tells it from others.

    Parameters
    ----------
    variant, backend, library, toolkit, target : str
        As records have them; empty where releases stand.
    """

    variant: str
    backend: str
    library: str
    toolkit: str
    target: str

    @classmethod
    def of(cls, record: Mapping[str, Any], axis: str) -> Lane:
        """The lane of a cell's record.

        Parameters
        ----------
        axis : str
            The part of the cell that holds the release: ``library``, ``toolkit``, or the name of a header library; empty for none of these.
        """
        found = {key: record[key] for key in ("variant", "backend", "library", "toolkit", "target")}
        if axis == "library" and found["toolkit"].endswith(BUNDLED):
            found["toolkit"] = ""  # a release brings it along
        if axis in found:
            return cls(**{**found, axis: ""})
        if axis:
            text = re.sub(rf" ?--library={re.escape(axis)}=\S+", "", found["variant"])
            found["variant"] = ",".join(label for label in text.split(",") if not label.startswith(f"{axis}="))
        return cls(**found)

    @classmethod
    def of_commit(cls, record: Mapping[str, Any]) -> Lane:
        """The lane of a cell of one commit: without the versions of development builds, which each commit changes."""
        lane = cls.of(record, "")
        library = library_of(lane.backend)
        distributions = LIBRARIES[library].distributions if library in LIBRARIES else ()
        is_build = any(name in distributions for name in record["toolchain"]["observed"].get("builds", ()))
        return replace(lane, library="" if is_build else lane.library, variant=_BUILD.sub("=", lane.variant))


@dataclass(frozen=True, kw_only=True)
class LaneOutcome:
    """The outcome of a release.

    Parameters
    ----------
    status, stage, verdict : str
        As records have them.
    fingerprint : str
        Of the most telling diagnostic; of another reason, its words without numbers.
    words : str
        The message: the first diagnostic, or the reason.
    kind : str
        Kind of the cell (`harness.matrix.marks`).
    signal : int or None
        What ended the compiler.
    partial : bool
        Whether PTX is all that was made.
    """

    status: str
    stage: str | None
    verdict: str
    fingerprint: str = ""
    words: str = ""
    kind: str = ""
    signal: int | None = None
    partial: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """By what two outcomes are the same. How far something got that was built depends on the library, not on the program."""
        stage = None if self.status == Status.BUILT else self.stage
        return (self.status, stage, self.fingerprint, self.signal, self.partial)

    @property
    def good(self) -> bool | None:
        """Return whether it is as it should be; None for an expected refusal, and for inapplicable cells."""
        if self.verdict in (Verdict.FAIL, Verdict.XFAIL):
            return False
        return True if self.status == Status.BUILT else None

    @property
    def text(self) -> str:
        """``rejected at assemble: uses too much shared data``."""
        if self.status == Status.UNSUPPORTED:
            return f"{self.brief} ({self.words})"
        return f"{self.brief}: {self.words}" if self.words else self.brief

    @property
    def brief(self) -> str:
        """The same without the message."""
        if self.status == Status.BUILT:
            return "compiled to PTX only" if self.partial else "built"
        if self.status == Status.UNSUPPORTED:
            return KINDS["unsupported"].word
        what = at_stage(self.status.replace("_", " "), self.stage)
        return f"{what} by signal {self.signal}" if self.signal else what


def outcome_of(record: Mapping[str, Any]) -> LaneOutcome | None:
    """The outcome of a record; None if the release could not be tried: a missing part, or an internal error."""
    status = Status(record["status"])
    if status in (Status.UNAVAILABLE, Status.HARNESS_ERROR):
        return None
    diagnostics = record["diagnostics"] if status is not Status.BUILT else []
    words = tells_most(diagnostics[0]["message"], record.get("log", "")) if diagnostics else record["reason"]
    fingerprint = diagnostics[0].get("fingerprint") or words if diagnostics else re.sub(r"[\d.]+", "N", words)
    return LaneOutcome(
        status=status,
        stage=record["stage"],
        verdict=record["verdict"],
        fingerprint=fingerprint,
        words=one_line(words, _LONGEST),
        kind=kind_of(record).key,
        signal=record["signal"],
        partial=status is Status.BUILT and stopped_at_ptx(record),
    )


LaneHistory = Mapping[tuple[int, Lane], LaneOutcome]


def release_of(text: str, versions: Sequence[str], called: str) -> str:
    """The release that a user means; of a series (``12``, ``0.58``) the newest.

    Raises
    ------
    UsageError
        When there is none.
    """
    if text in versions:
        return text
    try:
        wanted = Version(text)
        found = [version for version in versions if Version(version).release[: len(wanted.release)] == wanted.release]
        found = found or [version for version in versions if Version(version) == wanted]
    except InvalidVersion:
        found = []
    if not found:
        raise UsageError(
            f"{called} has no release {text!r} among those that can be tried{did_you_mean(text, versions)}"
        )
    return found[-1]


@dataclass(frozen=True)
class Ends:
    """The releases that a user calls good and bad.

    Parameters
    ----------
    versions : tuple of str
        Releases from one to the other, oldest first; from the one that is named to the end where only one is.
    good, bad : int or None
        Their places among these; None for one that is not named.
    """

    versions: tuple[str, ...]
    good: int | None = None
    bad: int | None = None

    @classmethod
    def of(cls, versions: Sequence[str], good: str | None, bad: str | None, called: str) -> Ends:
        """Read what a user wrote.

        Raises
        ------
        UsageError
            On a release that is not known, and where fewer than two are left.
        """
        named = [release_of(text, versions, called) if text else None for text in (good, bad)]
        places = [versions.index(name) if name else None for name in named]
        if places[0] is not None and places[0] == places[1]:
            raise UsageError(f"--good and --bad both name {called} {named[0]}: there is nothing between")
        low = min([place for place in places if place is not None], default=0)
        high = max(place for place in places if place is not None) if None not in places else len(versions) - 1
        if places[0] is None and places[1] is not None:
            low, high = 0, places[1]
        if low == high and len(versions) > 1:
            missing = "--bad" if places[1] is None else "--good"
            raise UsageError(f"nothing lies beyond {called} {versions[low]}: name the other end with {missing}")
        return cls(tuple(versions[low : high + 1]), *(None if place is None else place - low for place in places))

    def good_of(self, history: LaneHistory, lane: Lane, each: LaneOutcome) -> bool | None:
        """Return whether an outcome is good: by the named releases if they differ, else by its case."""
        good, bad = (None if place is None else history.get((place, lane)) for place in (self.good, self.bad))
        if good and not (bad and bad.key == good.key):
            return each.key == good.key
        if bad and self.good is None:
            return each.key != bad.key
        return each.good

    def contradiction(self, history: LaneHistory, reasons: Mapping[int, str]) -> str:
        """A sentence if the outcomes contradict the user; empty otherwise.

        Raises
        ------
        PartUnavailable
            When a release that the user names could not be tried.
        """
        for option, place in (("--good", self.good), ("--bad", self.bad)):
            if place is not None and place in reasons:
                raise PartUnavailable(
                    f"{self.versions[place]}, which {option} names, could not be tried: {reasons[place]}"
                )
        if self.good is None or self.bad is None:
            return ""
        lanes = {lane for _, lane in history}
        pairs = [(history.get((self.good, lane)), history.get((self.bad, lane))) for lane in sorted(lanes)]
        known = [(good, bad) for good, bad in pairs if good and bad]
        if not known:
            return ""
        names = f"{self.versions[self.good]}, which --good names, and {self.versions[self.bad]}, which --bad names,"
        if all(good.key == bad.key for good, bad in known):
            return f"{names} show the same: {known[0][0].text}"
        changed = [(good, bad) for good, bad in known if good.key != bad.key]
        if all(good.good is False and bad.good is True for good, bad in changed):
            return (
                f"{names} are the other way round: the first is {changed[0][0].text}, the second {changed[0][1].text}"
            )
        return ""
