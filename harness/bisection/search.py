"""Search for borders: a coarse sweep first, then each gap between two releases that differ.

The search knows no compilers: releases are places in a list, and outcomes are values that are equal or not. A history
need not be monotonic. A place may hold several cells (targets, variants). Each cell is a lane with its own history.
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
"""Outcome of each tested place; None if the place was untestable (skipped)."""


@dataclass(frozen=True)
class Border:
    """Two releases that differ, without a release with a known outcome between them.

    Parameters
    ----------
    before, after : int
        Places of the releases.
    """

    before: int
    after: int

    @property
    def between(self) -> range:
        """Places between the two; after a complete search all of them are untestable."""
        return range(self.before + 1, self.after)


class Search(Generic[LaneT]):
    """Choose the next places to test from the outcomes so far; no place is tested twice.

    Parameters
    ----------
    versions : sequence of str
        Releases, oldest first.
    every : bool
        Whether to test all of them.
    hopeless : collection of str
        Releases that count as skipped without a test.
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
        """Record the outcomes of a place; empty if the release was untestable."""
        if place in self.tried:
            raise ValueError(f"{self.versions[place]} was tried already")
        self.tried[place] = dict(outcomes)

    def next(self) -> list[int]:
        """Return the places to test next, together if possible; empty when every border is found."""
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
        """Every lane with an outcome, in the order of the first place."""
        return list(dict.fromkeys(lane for place in sorted(self.tried) for lane in self.tried[place]))

    def history(self, lane: LaneT) -> dict[int, Hashable | None]:
        """Return the outcomes of one lane by place, oldest first."""
        return {place: self.tried[place].get(lane) for place in sorted(self.tried)}

    def borders(self, lane: LaneT) -> list[Border]:
        """Return the known borders of one lane."""
        return borders(self.history(lane))

    def left(self) -> int:
        """Estimate the number of places left to try, if each known border stays one."""
        waiting = [place for place in self._sweep if place not in self.tried]
        gaps = {pair for lane in self.lanes for pair in _open(self.history(lane))}
        return len(waiting) + sum(math.ceil(math.log2(b - a)) for a, b in gaps)


def borders(history: History) -> list[Border]:
    """Return the borders between neighbouring known outcomes that differ."""
    known = [(place, outcome) for place, outcome in sorted(history.items()) if outcome is not None]
    return [Border(run.before, run.values[0]) for run in ranges(known) if run.before is not None]


def sweep(versions: Sequence[str], published: Sequence[str] = ()) -> list[int]:
    """Return the places of the coarse sweep.

    The sweep contains both ends, and the first and the last release of each major series. It contains the first release
    of each minor series (``0.59.0``), which brings most changes, unless nearly every release starts a series. It then
    contains the middle of each gap that is wider than the square root of the number of releases.

    Parameters
    ----------
    versions : sequence of str
        Testable releases, oldest first.
    published : sequence of str
        All releases, which determine how many start a series; `versions` if empty.
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
    """Group the places of releases by their first `length` numbers."""
    return [list(places) for _, places in groupby(range(len(numbers)), lambda place: tuple(numbers[place][:length]))]


def _numbers(version: str) -> tuple[int, ...]:
    try:
        return Version(version).release
    except InvalidVersion:
        return ()


def _open(history: History) -> Iterable[tuple[int, int]]:
    """Return the pairs of places around a border or an untestable end, with an untested place between them."""
    known = [place for place in sorted(history) if history[place] is not None]
    pairs = [(border.before, border.after) for border in borders(history)]
    if known:  # for untestable ends: the first and last testable releases
        pairs += [(a, b) for a, b in pairwise(sorted(history)) if b == known[0] or a == known[-1]]
    return [(a, b) for a, b in pairs if any(place not in history for place in range(a + 1, b))]


def _closer(history: History) -> Iterable[int]:
    """Yield a place per border that narrows it: the one furthest from all tested places."""
    for a, b in _open(history):
        tried = [place for place in history if a <= place <= b]
        yield max(
            (place for place in range(a + 1, b) if place not in history),
            key=lambda place: (min(abs(place - other) for other in tried), -place),
        )


_LONGEST = 160
# Versions of header libraries from a checkout (`harness.git.build_of`).
_BUILD = re.compile(r"=[\w.]+\+(?:git|local|build)\.[\w.]+")


@dataclass(frozen=True, order=True)
class Lane:
    """A cell without its release.

    Parameters
    ----------
    variant, backend, library, toolkit, target : str
        Values as in records; empty for the searched part.
    """

    variant: str
    backend: str
    library: str
    toolkit: str
    target: str

    @classmethod
    def of(cls, record: Mapping[str, Any], axis: str) -> Lane:
        """Return the lane of a cell's record.

        Parameters
        ----------
        axis : str
            Part of the cell with the release: ``library``, ``toolkit``, or the name of a header library; empty for
            none.
        """
        found = {key: record[key] for key in ("variant", "backend", "library", "toolkit", "target")}
        if axis == "library" and found["toolkit"].endswith(BUNDLED):
            found["toolkit"] = ""  # the release bundles the toolkit
        if axis in found:
            return cls(**{**found, axis: ""})
        if axis:
            text = re.sub(rf" ?--library={re.escape(axis)}=\S+", "", found["variant"])
            found["variant"] = ",".join(label for label in text.split(",") if not label.startswith(f"{axis}="))
        return cls(**found)

    @classmethod
    def of_commit(cls, record: Mapping[str, Any]) -> Lane:
        """Return the lane of a commit's cell, without the versions of development builds, which each commit changes."""
        lane = cls.of(record, "")
        library = library_of(lane.backend)
        distributions = LIBRARIES[library].distributions if library in LIBRARIES else ()
        is_build = any(name in distributions for name in record["toolchain"]["observed"].get("builds", ()))
        return replace(lane, library="" if is_build else lane.library, variant=_BUILD.sub("=", lane.variant))


@dataclass(frozen=True, kw_only=True)
class LaneOutcome:
    """The outcome of a lane at a release.

    Parameters
    ----------
    status, stage, verdict : str
        Values as in records.
    fingerprint : str
        Fingerprint of the most informative diagnostic; without diagnostics, the reason without numbers.
    words : str
        Message: the first diagnostic, or the reason.
    kind : str
        Kind of the cell (`harness.matrix.marks`).
    signal : int or None
        Signal that ended the compiler.
    partial : bool
        Whether the build stopped at PTX.
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
        """Key that equal outcomes share.

        The stage of a build is not a part of it, since it depends on the library, not on the program.
        """
        stage = None if self.status == Status.BUILT else self.stage
        return (self.status, stage, self.fingerprint, self.signal, self.partial)

    @property
    def good(self) -> bool | None:
        """Return whether the outcome is good; None for an expected refusal, and for inapplicable cells."""
        if self.verdict in (Verdict.FAIL, Verdict.XFAIL):
            return False
        return True if self.status == Status.BUILT else None

    @property
    def text(self) -> str:
        """Text with the message: ``rejected at assemble: uses too much shared data``."""
        if self.status == Status.UNSUPPORTED:
            return f"{self.brief} ({self.words})"
        return f"{self.brief}: {self.words}" if self.words else self.brief

    @property
    def brief(self) -> str:
        """Text without the message."""
        if self.status == Status.BUILT:
            return "compiled to PTX only" if self.partial else "built"
        if self.status == Status.UNSUPPORTED:
            return KINDS["unsupported"].word
        what = at_stage(self.status.replace("_", " "), self.stage)
        return f"{what} by signal {self.signal}" if self.signal else what


def outcome_of(record: Mapping[str, Any]) -> LaneOutcome | None:
    """Return the outcome of a record; None if the release was untestable (a missing part, or an internal error)."""
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
    """Return the release that a text names; for a series (``12``, ``0.58``) the newest.

    Raises
    ------
    UsageError
        If no release matches.
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
    """The releases that the user calls good and bad.

    Parameters
    ----------
    versions : tuple of str
        Releases between the named ones, oldest first. With one named release, all releases from it to the other end.
    good, bad : int or None
        Places of the named releases in `versions`; None if not named.
    """

    versions: tuple[str, ...]
    good: int | None = None
    bad: int | None = None

    @classmethod
    def of(cls, versions: Sequence[str], good: str | None, bad: str | None, called: str) -> Ends:
        """Read the values of ``--good`` and ``--bad``.

        Raises
        ------
        UsageError
            If a release is unknown, or fewer than two releases are left.
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
            raise UsageError(f"there is no release beyond {called} {versions[low]}: name the other end with {missing}")
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
        """Return a sentence if the outcomes contradict the user; empty otherwise.

        Raises
        ------
        PartUnavailable
            If a release that the user names was untestable.
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
