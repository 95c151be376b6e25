"""``plan.toml``: parts of the published matrix, each a complete crossing of axes, and the coverage of each.

A *place* is a case with a backend, a library's release, a CUDA release and a target. A *step* is a pair of places of a
part that are neighbours along one axis. A *square* is four places, neighbours along two axes. If all four are tested, a
difference belongs to one of the axes or to both together. If only some are tested, the axes are *confounded*.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

from packaging.version import Version

from harness.answers.table import known_releases
from harness.backends import BACKENDS, label_of
from harness.cases.toml import Report, parse_toml, read_toml_text, shown
from harness.engine.environment import Environment
from harness.engine.environments import bundled_tools
from harness.engine.plan import choose_backends, plan
from harness.engine.program_axes import HostCompilers
from harness.environments.index import File
from harness.environments.releases import Published, choose, parse_with
from harness.errors import NothingToRun, UsageError
from harness.libraries import LIBRARIES
from harness.matrix.axes import AXIS, axis_key
from harness.matrix.ranges import spell
from harness.model import Case, Cell, HostCompiler, Status, ToolkitRef
from harness.model.target import TargetError, check_known, parse_targets
from harness.protocol.messages import Distribution
from harness.records import Record
from harness.toolkits import parse_toolkits

PLAN = "plan.toml"
"""Name of the plan's file in the folder of the matrix."""

_TEXTS = ("name", "why", "backends", "toolkits", "targets", "where")
_LISTS = ("cases", "with")
_NEEDED = ("name", "why", "backends", "targets")
_MOST = 200  # parts, and packages
_MOST_RELEASES = 50
_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,80}[A-Za-z0-9])?"

More = Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Part:
    """A complete crossing of axes, spelled as the options of ``cumatrix run``.

    Parameters
    ----------
    name, why : str
        Name and reason.
    backends, toolkits, targets, where : str
        The options of these names. `where` may be empty. `toolkits` may be empty for libraries that bundle CUDA's
        tools: each release has its own.
    cases : tuple of str
        Cases and topics; by default all except heavy cases.
    releases : tuple of str
        The key ``with``: releases of libraries, ``numba=0.61.2,0.63.1``. ``all`` selects every known release.
    """

    name: str
    why: str
    backends: str
    targets: str
    toolkits: str = ""
    where: str = ""
    cases: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()


def read_plan(path: Path) -> list[Part]:
    """Read a plan.

    Raises
    ------
    CaseError
        If the plan is invalid: one sentence per problem, with file, line and key.
    """
    text = read_toml_text(path, str(path))
    data = parse_toml(text, str(path))
    report = Report(str(path), text)
    for key in data:
        if key not in ("part", "wheels"):
            report.add((key,), "is no key of a plan, which has [[part]] and [wheels]")
    tables = data.get("part")
    if not isinstance(tables, list) or not 0 < len(tables) <= _MOST or not all(isinstance(t, dict) for t in tables):
        report.add(("part",), f"must be 1 to {_MOST} tables [[part]]")
        report.close()
        return []
    parts = [_part(table, number, report) for number, table in enumerate(tables)]
    names: set[str] = set()
    for number, part in enumerate(parts):
        if part and part.name in names:
            report.add(("part", number, "name"), f"{shown(part.name)} is the name of an earlier part")
        names.add(part.name if part else "")
    report.close()
    return [part for part in parts if part]


@dataclass(frozen=True, kw_only=True)
class WheelPlan:
    """Packages of the wheel survey: the table ``[wheels]`` of a plan.

    Parameters
    ----------
    releases : int
        Number of the newest releases of each package.
    packages : Mapping[str, sequence of str]
        Names in the index, by the name that users know.
    """

    releases: int
    packages: Mapping[str, Sequence[str]]


def read_wheel_plan(path: Path) -> WheelPlan:
    """Read the table ``[wheels]`` of a plan.

    Raises
    ------
    CaseError
        If the table is invalid, as for `read_plan`.
    NothingToRun
        If the plan has no such table.
    """
    text = read_toml_text(path, str(path))
    table = parse_toml(text, str(path)).get("wheels")
    if table is None:
        raise NothingToRun(f"{path} has no table [wheels], which names packages")
    report = Report(str(path), text)
    if not isinstance(table, dict):
        report.add(("wheels",), f"must be a table, not {shown(table)}")
        report.close()
    for key in table:
        if key not in ("releases", "packages"):
            report.add(("wheels", key), "is no key of [wheels]: releases, packages")
    releases, packages = table.get("releases"), table.get("packages")
    if not isinstance(releases, int) or isinstance(releases, bool) or not 0 < releases <= _MOST_RELEASES:
        report.add(("wheels", "releases"), f"must be a number from 1 to {_MOST_RELEASES}, not {shown(releases)}")
    if not isinstance(packages, dict) or not 0 < len(packages) <= _MOST:
        report.add(("wheels", "packages"), f"must be a table of 1 to {_MOST} lists of names")
    for name, names in packages.items() if isinstance(packages, dict) else ():
        key = ("wheels", "packages", name)
        if not re.fullmatch(_NAME, name):
            report.add(key, "is no name of a package")
        if (
            not isinstance(names, list)
            or not names
            or not all(isinstance(each, str) and re.fullmatch(_NAME, each) for each in names)
        ):
            report.add(key, f"must be a list of names of packages, not {shown(names)}")
    report.close()
    return WheelPlan(releases=int(table["releases"]), packages=table["packages"])


def _part(table: Mapping[str, Any], number: int, report: Report) -> Part | None:
    before = len(report.problems)
    for key, value in table.items():
        at = ("part", number, key)
        if key in _TEXTS:
            if not isinstance(value, str) or not value.strip():
                report.add(at, f"must be a text, not {shown(value)}")
        elif key in _LISTS:
            if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
                report.add(at, f"must be a list of texts, not {shown(value)}")
        else:
            report.add(at, f"is no key of a part: {', '.join((*_TEXTS, *_LISTS))}")
    for key in _NEEDED:
        if key not in table:
            report.add(("part", number, key), "is missing")
    if len(report.problems) > before:
        return None
    part = Part(
        **{key: table[key].strip() for key in _TEXTS if key in table},
        cases=tuple(table.get("cases", ())),
        releases=tuple(table.get("with", ())),
    )
    readers: tuple[tuple[str, Any], ...] = (
        ("backends", lambda: choose_backends(part.backends, _environment(), _environments(part, [], {}))),
        ("toolkits", lambda: _toolkits(part)),
        ("targets", lambda: _check_targets(part.targets)),
    )
    for key, read in (("with", lambda: _chosen(part, {})), *readers):
        try:
            read()
        except (UsageError, TargetError) as error:
            report.add(("part", number, key), str(error))
            return None
    return part


def _toolkits(part: Part) -> list[ToolkitRef]:
    if part.toolkits:
        return parse_toolkits(part.toolkits)
    for word in part.releases:
        library = parse_with(word).library
        if not LIBRARIES[library].bundles:
            raise UsageError(f"is missing: {library} brings no CUDA along")
    if not part.releases:
        raise UsageError("is missing")
    return []


def _check_targets(text: str) -> None:
    for target in parse_targets(text):
        check_known(target)


def _chosen(part: Part, more: More) -> list[Published]:
    """Return the releases of a part among those that cumatrix knows: the same on every machine, without an index."""
    wanted = map(parse_with, part.releases)
    return [release for each in wanted for release in choose(each, _known(each.library, more))]


def _known(library: str, more: More) -> list[Published]:
    return [
        Published(library=library, version=Version(text), wheels={library: (File(f"{library}-{text}.whl"),)})
        for text in (*known_releases().get(library, ()), *more.get(library, ()))
    ]


def _environment() -> Environment:
    return Environment(name="", python="", version="", distributions={})


def _environments(part: Part, toolkits: Sequence[ToolkitRef], more: More) -> list[Environment]:
    """Return an environment per release, and per major CUDA release if the library has a distribution for each."""
    found = []
    for release in _chosen(part, more):
        library = LIBRARIES[release.library]
        groups: dict[str, list[ToolkitRef]] = {}
        bundled = bundled_tools(release.library, str(release.version))
        for ref in toolkits or filter(None, (bundled,)):
            own = library.for_cuda(int(ref.release.split(".")[0]))
            groups.setdefault(own or next(iter(library.distributions)), []).append(ref)
        for distribution, refs in (groups or {next(iter(library.distributions)): []}).items():
            version = Distribution(str(release.version))
            found.append(
                Environment(
                    name="",
                    python="",
                    version="",
                    distributions={distribution: version},
                    only=release.library,
                    toolkits=tuple(refs),
                )
            )
    return found


def cells_of_part(part: Part, cases: Collection[Case], more: More = MappingProxyType({})) -> list[Cell]:
    """Return the cells of a part, from the planner of runs.

    Parameters
    ----------
    part : Part
        The part.
    cases : collection of Case
        Cases that the part selects, or all cases.
    more : Mapping
        New releases by library that ``all`` and open ranges also select.

    Raises
    ------
    UsageError
        If the part has no cell, or its condition is invalid.
    """
    toolkits = _toolkits(part)
    others = _environments(part, toolkits, more)
    backends = choose_backends(part.backends, _environment(), others)
    try:
        cells = plan(
            [case for case in cases if part.cases or not case.heavy], backends, toolkits, parse_targets(part.targets),
            _environment(), part.where or None, others=others, host_compilers=HostCompilers([HostCompiler()]),
        )  # fmt: skip
    except NothingToRun:
        cells = []
    if not cells:
        raise UsageError(f"{PLAN}: part {part.name!r} has no cell: its cases and backends do not go together")
    return cells


AXES = ("library", "toolkit", "target")
"""Axes that parts cross, by their keys in records."""


class Place(NamedTuple):
    """A case with a toolchain and a target."""

    case: str
    backend: str
    library: str
    toolkit: str
    target: str

    @classmethod
    def of(cls, cell: Cell) -> Place:
        """Return the place of a cell."""
        chain = cell.toolchain
        return cls(cell.case.name, chain.backend, chain.library, str(chain.toolkit), str(cell.target))


@dataclass
class Count:
    """Numbers of cells of a place."""

    planned: int = 0
    tried: int = 0
    unavailable: int = 0

    @property
    def missing(self) -> int:
        """Cells without any record."""
        return self.planned - self.tried - self.unavailable


class Pair(NamedTuple):
    """Two neighbouring values on each of two axes of a backend."""

    backend: str
    axes: tuple[str, str]
    first: tuple[str, str]
    second: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """A part of the plan compared with the records.

    Parameters
    ----------
    part : Part
        The part.
    places : Mapping[Place, Count]
        Cell counts by place.
    comparisons : sequence of tuple of Place
        Steps and squares.
    separated, untried : int
        Number of squares with four tested places, and with none or one.
    confounded : Counter
        Number of all other squares, one per case, by pair of values.
    """

    part: Part
    places: Mapping[Place, Count]
    comparisons: Sequence[tuple[Place, ...]]
    separated: int
    untried: int
    confounded: Counter[Pair] = field(default_factory=Counter)

    def values(self, axis: str) -> list[str]:
        """Return the values of an axis, in order."""
        return sorted({getattr(place, axis) for place in self.places} - {""}, key=axis_key(axis))

    def total(self, name: str) -> int:
        """Return the number of cells of all places: ``planned``, ``tried``, ``unavailable`` or ``missing``."""
        return sum(getattr(count, name) for count in self.places.values())

    def to_json(self) -> dict[str, Any]:
        """Return the entry in ``publish --plan --json``."""
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
    """Return the status of each cell by its id."""
    return {record["cell"]: record["status"] for record in records}


def cover(part: Part, cells: Iterable[Cell], statuses: Mapping[str, str]) -> Coverage:
    """Compare the cells of a part with the statuses of recorded cells.

    Parameters
    ----------
    part : Part
        The part.
    cells : iterable of Cell
        Cells of the part.
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
    # An unavailable cell never separates anything.
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
    """Return the pairs of neighbouring values by backend and axis."""
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
    """Return the mean seconds of an answered cell, by case and backend."""
    found: dict[tuple[str, str], list[float]] = {}
    for record in records:
        if Status(record["status"]).answered:
            found.setdefault((record["case"], record["backend"]), []).append(float(record["seconds"] or 0.0))
    return {key: fmean(seconds) for key, seconds in found.items()}


def seconds_for(place: Place, seconds: Mapping[tuple[str, str], float]) -> float:
    """Return the seconds per cell of a place: measured, or an estimate for the backend."""
    return seconds.get((place.case, place.backend)) or BACKENDS[place.backend].seconds


_HEAD = ("part", "tools", "versions", "CUDA", "targets", "cells", "tried", "missing", "unavailable", "confounded")


def coverage_table(coverages: Iterable[Coverage]) -> str:
    """Return a Markdown table with a row per part: its axes and its numbers of cells; ``confounded`` counts squares."""
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
    """Return a line per pair of confounded neighbouring values, those with most squares first."""
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
