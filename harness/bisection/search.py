"""Select releases to try: a coarse sweep first, then every border between two that differ.

Nothing is known here of compilers: releases are places in a list, and outcomes are values that are equal or not. A history
need not be monotonic. What is tried may hold several cells (targets, variants): each is a lane, with a history of its own.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Generic, TypeVar

from packaging.version import InvalidVersion, Version

Lane = TypeVar("Lane", bound=Hashable)
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


class Search(Generic[Lane]):
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
        self.tried: dict[int, Mapping[Lane, Hashable | None]] = {
            place: {} for place, version in enumerate(self.versions) if version in hopeless
        }
        left = [place for place in range(len(self.versions)) if place not in self.tried]
        self._sweep = (
            left if every else [left[place] for place in sweep([self.versions[place] for place in left], self.versions)]
        )

    def add(self, place: int, seen: Mapping[Lane, Hashable | None]) -> None:
        """Take note of what was seen at a place; empty where the release could not be tried."""
        if place in self.tried:
            raise ValueError(f"{self.versions[place]} was tried already")
        self.tried[place] = dict(seen)

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
    def lanes(self) -> list[Lane]:
        """Every lane that was seen anywhere, in the order of their first sight."""
        return list(dict.fromkeys(lane for place in sorted(self.tried) for lane in self.tried[place]))

    def history(self, lane: Lane) -> dict[int, Hashable | None]:
        """The outcomes of one lane, by place, oldest first."""
        return {place: self.tried[place].get(lane) for place in sorted(self.tried)}

    def borders(self, lane: Lane) -> list[Border]:
        """The borders of one lane, as far as they are known."""
        return borders(self.history(lane))

    def left(self) -> int:
        """Estimate the number of places left to try, if each known border stays one."""
        waiting = [place for place in self._sweep if place not in self.tried]
        gaps = {pair for lane in self.lanes for pair in _open(self.history(lane))}
        return len(waiting) + sum(math.ceil(math.log2(b - a)) for a, b in gaps)


def borders(history: History) -> list[Border]:
    """Neighbors that differ, among those with an outcome."""
    known = [(place, seen) for place, seen in sorted(history.items()) if seen is not None]
    return [Border(a, b) for (a, one), (b, other) in pairwise(known) if one != other]


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
