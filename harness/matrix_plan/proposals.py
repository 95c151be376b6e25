"""Commands that compile missing cells of a plan, in the order of the separations that they yield per time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from harness.answers.table import known_releases
from harness.backends import BACKENDS, library_of
from harness.cases.discovery import load_cases
from harness.environments.index import Index
from harness.environments.releases import published
from harness.libraries import LIBRARIES, with_releases
from harness.matrix.axes import target_key
from harness.matrix_plan.coverage import (
    Count,
    Coverage,
    More,
    Place,
    cells_of_part,
    cover,
    read_plan,
    seconds_for,
    seconds_of,
    statuses_of,
)
from harness.model import Case
from harness.records import Record

_TIMEOUT = "300"  # timeout of the published runs
_START = 10.0  # rough seconds until a command's first cell; without them, commands of three cells come first


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A command that compiles missing cells.

    Parameters
    ----------
    argv : tuple of str
        Arguments after ``cumatrix``.
    cells : int
        Number of missing cells that it compiles.
    seconds : float
        Estimated time of the cells in sequence.
    separates : float
        Steps and squares that it completes. A comparison that needs further commands counts by this command's share of
        its missing places.
    """

    argv: tuple[str, ...]
    cells: int
    seconds: float
    separates: float

    def to_json(self) -> dict[str, Any]:
        """Return the entry in ``publish --next N --json``."""
        return {
            "argv": list(self.argv),
            "cells": self.cells,
            "seconds": round(self.seconds, 1),
            "separates": round(self.separates, 2),
        }


def propose(
    coverages: Iterable[Coverage],
    cases: Sequence[Case],
    seconds: Mapping[tuple[str, str], float],
    *,
    most: int,
    budget: float | None = None,
    new: More = MappingProxyType({}),
) -> list[Proposal]:
    """Return the next commands, the best first; each assumes that the ones before it have run.

    Parameters
    ----------
    coverages : iterable of Coverage
        The parts of the plan.
    cases : sequence of Case
        All cases, for the names of topics.
    seconds : Mapping
        Seconds per cell by case and backend.
    most : int
        Maximum number of commands.
    budget : float, optional
        Seconds for all commands; a command that exceeds the rest is skipped.
    new : Mapping
        Releases by library whose commands come first.
    """
    coverages = list(coverages)
    counts: dict[Place, Count] = {}
    for coverage in coverages:
        for place, count in coverage.places.items():
            # Parts may name different variants of a case: the larger one covers both.
            if place not in counts or count.missing > counts[place].missing:
                counts[place] = count
    missing = {place: count.missing for place, count in counts.items() if count.missing}
    groups = _groups(missing)
    group_of = {place: number for number, group in enumerate(groups) for place in group}
    lacks: list[Counter[int]] = []
    """For each comparison, the number of its missing places by group."""
    lacking: dict[int, list[int]] = {}
    for comparison in dict.fromkeys(each for coverage in coverages for each in coverage.comparisons):
        found = Counter(group_of[place] for place in comparison if place in group_of)
        for number in found:
            lacking.setdefault(number, []).append(len(lacks))
        lacks.append(found)
    gains = {
        number: sum(lacks[each][number] / lacks[each].total() for each in lacking.get(number, ()))
        for number in range(len(groups))
    }
    costs = [sum(seconds_for(place, seconds) * missing[place] for place in group) for group in groups]
    first = [group[0].library in new.get(library_of(group[0].backend), ()) for group in groups]
    proposals: list[Proposal] = []
    left = budget if budget is not None else float("inf")
    while len(proposals) < most:
        fitting = [number for number in gains if costs[number] <= left]
        if not fitting:
            break
        best = max(fitting, key=lambda number: (first[number], gains[number] / (costs[number] + _START), -number))
        group = groups[best]
        proposals.append(
            Proposal(
                argv=_argv(group, cases),
                cells=sum(missing[place] for place in group),
                seconds=costs[best],
                separates=gains.pop(best),
            )
        )
        left -= costs[best]
        for each in lacking.get(best, ()):
            lack = lacks[each]
            before = lack.total()
            del lack[best]
            for number, places in lack.items():
                gains[number] += places / lack.total() - places / before
    return proposals


def _groups(missing: Collection[Place]) -> list[tuple[Place, ...]]:
    """Group places of one toolchain whose cases lack the same targets, since a command names a complete crossing."""
    lacking: dict[tuple[str, str, str, str], list[Place]] = {}
    for place in missing:
        lacking.setdefault((place.backend, place.library, place.toolkit, place.case), []).append(place)
    groups: dict[tuple[object, ...], list[Place]] = {}
    for (backend, library, toolkit, _), places in lacking.items():
        targets = frozenset(place.target for place in places)
        groups.setdefault((backend, library, toolkit, targets), []).extend(places)
    return [tuple(group) for group in groups.values()]


def _argv(group: Sequence[Place], cases: Sequence[Case]) -> tuple[str, ...]:
    first = group[0]
    library = library_of(first.backend)
    release = ("--with", f"{library}={first.library}") if library else ()
    targets = sorted({place.target for place in group}, key=target_key)
    language = BACKENDS[first.backend].language
    names = _named({place.case for place in group}, [case for case in cases if language(case)])
    return (
        "run", *names, "-b", first.backend, *release, "-t", first.toolkit, "-a", ",".join(targets), "--timeout", _TIMEOUT,
    )  # fmt: skip


def _named(chosen: Collection[str], cases: Sequence[Case]) -> list[str]:
    """Return names of cases, and of topics if all of a topic's cases for the backend are chosen."""
    topics: dict[str, set[str]] = {}
    for case in cases:
        topics.setdefault(case.topic, set()).add(case.name)
    names = [topic for topic, all_of in topics.items() if all_of <= set(chosen)]
    within = {name for topic in names for name in topics[topic]}
    return sorted([*names, *(name for name in chosen if name not in within)])


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A plan compared with records.

    Parameters
    ----------
    coverages : sequence of Coverage
        Parts, in the order of the plan.
    cases : sequence of Case
        All cases.
    seconds : Mapping
        Mean seconds of a cell by case and backend.
    new : Mapping
        New releases by library; their commands come first.
    """

    coverages: Sequence[Coverage]
    cases: Sequence[Case]
    seconds: Mapping[tuple[str, str], float]
    new: More

    def next(self, most: int, budget: float | None = None) -> list[Proposal]:
        """Return the next commands (`harness.matrix_plan.proposals.propose`)."""
        return propose(self.coverages, self.cases, self.seconds, most=most, budget=budget, new=self.new)


def compare(plan: Path, cases: Path, records: Iterable[Record], new: More = MappingProxyType({})) -> Compared:
    """Read a plan and compare its cells with records; `new` are further releases by library.

    Raises
    ------
    CaseError
        If the plan or a case is invalid.
    """
    records = list(records)
    statuses = statuses_of(records)
    coverages = [
        cover(part, cells_of_part(part, load_cases(cases, part.cases), new), statuses) for part in read_plan(plan)
    ]
    return Compared(coverages=coverages, cases=load_cases(cases), seconds=seconds_of(records), new=new)


_WHEELS = {"cuda": "nvidia-cuda-nvrtc", "cutlass": "nvidia-cutlass"}
"""Wheels of CUDA and of header libraries. New releases need a pin by hash before a run can use them."""


@dataclass(frozen=True, kw_only=True)
class New:
    """A new release on the index.

    Parameters
    ----------
    name : str
        Name of the library, or ``cuda``.
    version : str
        Version.
    day : str
        Day of the upload; empty if the index does not provide it.
    """

    name: str
    version: str
    day: str = ""

    @property
    def pinned(self) -> bool:
        """Return whether the release needs pinned wheels before it compiles; libraries under test need none."""
        return self.name in _WHEELS

    def __str__(self) -> str:
        day = f" of {self.day}" if self.day else ""
        label = LIBRARIES[self.name].label or self.name if self.name in LIBRARIES else self.name.upper()
        how = "; .ci/pin_wheels.py pins its wheels" if self.pinned else ""
        return f"new on the index: {label} {self.version}{day}{how}"


def new_releases(index: Index) -> list[New]:
    """Return final releases that are newer than the newest known one, by library, oldest first.

    Raises
    ------
    PartUnavailable
        If the index cannot be reached.
    """
    known = {name: max(map(Version, releases)) for name, releases in known_releases().items() if releases}
    found = []
    for name in with_releases():
        for release in published(name, index):
            version = release.version
            final = not (version.is_prerelease or version.local or release.yanked)
            if final and name in known and version > known[name]:
                found.append(New(name=name, version=str(version), day=release.day))
    for name, wheel in _WHEELS.items():
        newer = {version for version in _versions(wheel, index) if version > known[name]}
        found += [New(name=name, version=str(version)) for version in sorted(newer)]
    return found


def _versions(distribution: str, index: Index) -> Iterator[Version]:
    """Yield versions of a wheel in the spelling of releases: ``13.5`` for CUDA, ``4.2.1`` for a header library."""
    numbers = 2 if distribution == _WHEELS["cuda"] else 3
    for file in index.files(distribution):
        try:
            version = parse_wheel_filename(file.name)[1]
        except InvalidWheelFilename:
            continue
        if not version.is_prerelease and not file.yanked:
            yield Version(".".join(map(str, version.release[:numbers])))
