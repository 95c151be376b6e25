"""Commands that compile what is missing of a plan: those first that separate most for the least time."""

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

_TIMEOUT = "300"  # as of the published runs
_START = 10.0  # seconds of a command before its first cell, roughly: without them, commands of three cells come first


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A command.

    Parameters
    ----------
    argv : tuple of str
        Its words, without ``cumatrix``.
    cells : int
        Missing cells that it compiles.
    seconds : float
        Their estimated time, one after another.
    separates : float
        Steps and squares that it completes; one that needs further commands counts by this one's part of what it lacks.
    """

    argv: tuple[str, ...]
    cells: int
    seconds: float
    separates: float

    def to_json(self) -> dict[str, Any]:
        """Its entry in ``publish --next N --json``."""
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
    """The next commands, the best one first; each counts the ones before it as done.

    Parameters
    ----------
    coverages : iterable of Coverage
        The parts of the plan.
    cases : sequence of Case
        All cases, for the names of topics.
    seconds : Mapping
        Seconds of a cell by case and backend.
    most : int
        How many commands.
    budget : float, optional
        Seconds that they may take together; a command that does not fit is left out.
    new : Mapping
        Releases by library with commands before all others.
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
    """By comparison, how many of its missing places are in which group."""
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
    """Places of one toolchain whose cases lack the same targets: a command names a complete crossing."""
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
    """Names of cases; of a topic, where all that the backend can compile of it are chosen, the topic's."""
    topics: dict[str, set[str]] = {}
    for case in cases:
        topics.setdefault(case.topic, set()).add(case.name)
    names = [topic for topic, all_of in topics.items() if all_of <= set(chosen)]
    within = {name for topic in names for name in topics[topic]}
    return sorted([*names, *(name for name in chosen if name not in within)])


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A plan against records.

    Parameters
    ----------
    coverages : sequence of Coverage
        Its parts, in their order.
    cases : sequence of Case
        All cases.
    seconds : Mapping
        Mean seconds of a cell by case and backend.
    new : Mapping
        New releases by library: their commands come first.
    """

    coverages: Sequence[Coverage]
    cases: Sequence[Case]
    seconds: Mapping[tuple[str, str], float]
    new: More

    def next(self, most: int, budget: float | None = None) -> list[Proposal]:
        """The next commands (`harness.matrix_plan.proposals.propose`)."""
        return propose(self.coverages, self.cases, self.seconds, most=most, budget=budget, new=self.new)


def compare(plan: Path, cases: Path, records: Iterable[Record], new: More = MappingProxyType({})) -> Compared:
    """Read a plan and compare its cells with records; `new` are further releases by library.

    Raises
    ------
    CaseError
        When the plan or a case cannot be used.
    """
    records = list(records)
    statuses = statuses_of(records)
    coverages = [
        cover(part, cells_of_part(part, load_cases(cases, part.cases), new), statuses) for part in read_plan(plan)
    ]
    return Compared(coverages=coverages, cases=load_cases(cases), seconds=seconds_of(records), new=new)


_WHEELS = {"cuda": "nvidia-cuda-nvrtc", "cutlass": "nvidia-cutlass"}
"""Wheels by release of CUDA and of header libraries, which are pinned by hash before they can be compiled with."""


@dataclass(frozen=True, kw_only=True)
class New:
    """A release.

    Parameters
    ----------
    name : str
        Of the library, or ``cuda``.
    version : str
        Its version.
    day : str
        Day of its upload; empty where the index does not have it.
    """

    name: str
    version: str
    day: str = ""

    @property
    def pinned(self) -> bool:
        """Return whether it compiles only after its wheels are pinned; libraries under test need no pin."""
        return self.name in _WHEELS

    def __str__(self) -> str:
        day = f" of {self.day}" if self.day else ""
        label = LIBRARIES[self.name].label or self.name if self.name in LIBRARIES else self.name.upper()
        how = "; .ci/pin_wheels.py pins its wheels" if self.pinned else ""
        return f"new on the index: {label} {self.version}{day}{how}"


def new_releases(index: Index) -> list[New]:
    """Final releases newer than the newest known one, by library, then oldest first.

    Raises
    ------
    PartUnavailable
        When the index cannot be asked.
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
    """Versions of a wheel as releases spell them: of CUDA ``13.5``, of a header library ``4.2.1``."""
    numbers = 2 if distribution == _WHEELS["cuda"] else 3
    for file in index.files(distribution):
        try:
            version = parse_wheel_filename(file.name)[1]
        except InvalidWheelFilename:
            continue
        if not version.is_prerelease and not file.yanked:
            yield Version(".".join(map(str, version.release[:numbers])))
