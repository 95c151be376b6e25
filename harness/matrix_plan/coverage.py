"""The tried cells of a plan, and the pairs of axes that its answers separate.

A *place* is a case with a backend, a library's release, a CUDA release and a target. A *step* is two places
of a part that are neighbours along one axis. A *square* is four, neighbours along two axes: with all four tried, a difference belongs to one of the
axes or to both together. With some of them the axes are *confounded*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from statistics import fmean
from typing import Any, NamedTuple

from harness.backends import BACKENDS, label_of
from harness.matrix.axes import AXIS, axis_key
from harness.matrix.ranges import spell
from harness.matrix_plan.parts import Part
from harness.model import Cell, Status
from harness.records import Record

AXES = ("library", "toolkit", "target")
"""The axes that parts cross, by their keys in records."""


class Place(NamedTuple):
    """A case with a toolchain and a target."""

    case: str
    backend: str
    library: str
    toolkit: str
    target: str

    @classmethod
    def of(cls, cell: Cell) -> Place:
        """The place of a cell."""
        chain = cell.toolchain
        return cls(cell.case.name, chain.backend, chain.library, str(chain.toolkit), str(cell.target))


@dataclass
class Count:
    """Cells of a place, by what is known of them."""

    planned: int = 0
    tried: int = 0
    unavailable: int = 0

    @property
    def missing(self) -> int:
        """Cells without any record."""
        return self.planned - self.tried - self.unavailable


class Pair(NamedTuple):
    """Two neighbouring values of each of two axes of a backend."""

    backend: str
    axes: tuple[str, str]
    first: tuple[str, str]
    second: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """A part of the plan against the records.

    Parameters
    ----------
    part : Part
        The part.
    places : Mapping[Place, Count]
        Its places.
    comparisons : sequence of tuple of Place
        Its steps and squares.
    separated, untried : int
        Squares with four tried places, and with none or one.
    confounded : Counter
        Cases by pair of values, of all other squares.
    """

    part: Part
    places: Mapping[Place, Count]
    comparisons: Sequence[tuple[Place, ...]]
    separated: int
    untried: int
    confounded: Counter[Pair] = field(default_factory=Counter)

    def values(self, axis: str) -> list[str]:
        """The values of an axis, in order."""
        return sorted({getattr(place, axis) for place in self.places} - {""}, key=axis_key(axis))

    def total(self, name: str) -> int:
        """Cells of all places: ``planned``, ``tried``, ``unavailable`` or ``missing``."""
        return sum(getattr(count, name) for count in self.places.values())

    def to_json(self) -> dict[str, Any]:
        """Its entry in ``publish --plan --json``."""
        return {
            "part": self.part.name,
            "why": self.part.why,
            "backends": self.values("backend"),
            **{axis: self.values(axis) for axis in AXES},
            **{name: self.total(name) for name in ("planned", "tried", "missing", "unavailable")},
            "squares": {
                "separated": self.separated,
                "confounded": sum(self.confounded.values()),
                "untried": self.untried,
            },
            "confounded": [
                {**pair._asdict(), "cases": cases}
                for pair, cases in sorted(self.confounded.items(), key=lambda item: (-item[1], item[0]))
            ],
        }


def statuses_of(records: Iterable[Record]) -> dict[str, str]:
    """Status by cell."""
    return {record["cell"]: record["status"] for record in records}


def cover(part: Part, cells: Iterable[Cell], statuses: Mapping[str, str]) -> Coverage:
    """The cells of a part against what is known.

    Parameters
    ----------
    part : Part
        The part.
    cells : iterable of Cell
        Its cells.
    statuses : Mapping[str, str]
        Status by cell (`statuses_of`).
    """
    places: dict[Place, Count] = {}
    for cell in cells:
        count = places.setdefault(Place.of(cell), Count())
        count.planned += 1
        status = statuses.get(cell.id)
        if status and (Status(status).answered or status == Status.UNSUPPORTED):
            count.tried += 1
        elif status:
            count.unavailable += 1
    whole = {place for place, count in places.items() if count.tried == count.planned}
    # An unavailable cell separates nothing, and never will.
    lost = {place for place, count in places.items() if count.unavailable}
    comparisons = list(_steps(places))
    separated = untried = 0
    confounded: Counter[Pair] = Counter()
    for pair, square in _squares(places):
        if not lost.isdisjoint(square):
            continue
        comparisons.append(square)
        there = [place in whole for place in square]
        if all(there):
            separated += 1
        elif sum(there) < 2:
            untried += 1
        else:
            confounded[pair] += 1
    return Coverage(
        part=part, places=places, comparisons=[each for each in comparisons if lost.isdisjoint(each)],
        separated=separated, untried=untried, confounded=confounded,
    )  # fmt: skip


def _neighbours(places: Iterable[Place]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Neighbouring values by backend and axis."""
    values: dict[tuple[str, str], set[str]] = {}
    for place in places:
        for axis in AXES:
            values.setdefault((place.backend, axis), set()).add(getattr(place, axis))
    return {key: list(pairwise(sorted(found, key=axis_key(key[1])))) for key, found in values.items()}


def _steps(places: Mapping[Place, Count]) -> Iterator[tuple[Place, ...]]:
    following = {key: dict(pairs) for key, pairs in _neighbours(places).items()}
    for place, axis in product(places, AXES):
        value = following[place.backend, axis].get(getattr(place, axis))
        if value is not None and (other := place._replace(**{axis: value})) in places:
            yield place, other


def _squares(places: Mapping[Place, Count]) -> Iterator[tuple[Pair, tuple[Place, ...]]]:
    following = {key: dict(pairs) for key, pairs in _neighbours(places).items()}
    for place, (one, other) in product(places, combinations(AXES, 2)):
        first, second = getattr(place, one), getattr(place, other)
        right = following[place.backend, one].get(first)
        below = following[place.backend, other].get(second)
        if right is None or below is None:
            continue
        square = tuple(place._replace(**{one: a, other: b}) for a, b in product((first, right), (second, below)))
        if all(corner in places for corner in square):
            yield Pair(place.backend, (one, other), (first, right), (second, below)), square


def seconds_of(records: Iterable[Record]) -> dict[tuple[str, str], float]:
    """Mean seconds of an answered cell, by case and backend."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if Status(record["status"]).answered:
            found.setdefault((record["case"], record["backend"]), []).append(float(record["seconds"] or 0.0))
    return {key: fmean(seconds) for key, seconds in found.items()}


def seconds_for(place: Place, seconds: Mapping[tuple[str, str], float]) -> float:
    """Seconds that a cell of a place takes; a guess for the backend where nothing was measured."""
    return seconds.get((place.case, place.backend)) or BACKENDS[place.backend].seconds


_HEAD = ("part", "tools", "versions", "CUDA", "targets", "cells", "tried", "missing", "unavailable", "confounded")


def coverage_table(coverages: Iterable[Coverage]) -> str:
    """A row a part: its axes, and its cells by what is known of them; ``confounded`` counts squares."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    for each in coverages:
        squares = each.separated + each.untried + sum(each.confounded.values())
        rows.append(
            (
                each.part.name,
                "; ".join(map(label_of, each.values("backend"))),
                *(_axis(each.values(axis)) for axis in AXES),
                *(f"{each.total(name):,}" for name in ("planned", "tried", "missing", "unavailable")),
                f"{sum(each.confounded.values()):,} of {squares:,}" if squares else "",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _axis(values: Sequence[str]) -> str:
    return spell(values, whole=2) + (f" ({len(values)})" if len(values) > 2 else "")


def pairs_of(coverages: Iterable[Coverage]) -> list[str]:
    """A line for each two neighbouring values of two axes that are confounded, those of most squares first."""
    total: Counter[Pair] = Counter()
    for each in coverages:
        total.update(each.confounded)
    return [_pair(pair, count) for pair, count in sorted(total.items(), key=lambda item: (-item[1], item[0]))]


def _pair(pair: Pair, count: int) -> str:
    first, second = (
        f"{AXIS[axis].title} {low} to {high}"
        for axis, (low, high) in zip(pair.axes, (pair.first, pair.second), strict=True)
    )
    return f"{label_of(pair.backend)}: {first} × {second} ({count:,})"
