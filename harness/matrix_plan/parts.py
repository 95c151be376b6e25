"""``plan.toml``: parts of the published matrix, each a complete crossing of axes, and their cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from packaging.version import Version

from harness.answers.table import known_releases
from harness.cases.toml import Report, parse_toml, read_toml_text, shown
from harness.engine.environment import Environment
from harness.engine.plan import choose_backends, plan
from harness.engine.program_axes import HostCompilers
from harness.environments.index import File
from harness.environments.releases import Published, choose, parse_with
from harness.errors import NothingToRun, UsageError
from harness.libraries import LIBRARIES
from harness.model import Case, Cell, HostCompiler, ToolkitRef
from harness.model.target import TargetError, check_known, parse_targets
from harness.protocol.probes import Distribution
from harness.toolkits import parse_toolkits

PLAN = "plan.toml"
"""Name of the file, in the folder of the matrix."""

_TEXTS = ("name", "why", "backends", "toolkits", "targets", "where")
_LISTS = ("cases", "with")
_NEEDED = ("name", "why", "backends", "toolkits", "targets")
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
        Its name, and the reason for it.
    backends, toolkits, targets, where : str
        The options of these names; `where` may be empty.
    cases : tuple of str
        Cases and topics; without any, all except heavy ones.
    releases : tuple of str
        The key ``with``: releases of libraries, ``numba=0.61.2,0.63.1``. ``all`` means every known release.
    """

    name: str
    why: str
    backends: str
    toolkits: str
    targets: str
    where: str = ""
    cases: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()


def read_plan(path: Path) -> list[Part]:
    """Read a plan.

    Raises
    ------
    CaseError
        When it cannot be used: one sentence a problem, with file, line and key.
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
    """Packages whose wheels are read: the table ``[wheels]`` of a plan.

    Parameters
    ----------
    releases : int
        How many of the newest releases of each.
    packages : Mapping[str, sequence of str]
        Names in the index by what users call them.
    """

    releases: int
    packages: Mapping[str, Sequence[str]]


def read_wheel_plan(path: Path) -> WheelPlan:
    """Read the table ``[wheels]`` of a plan.

    Raises
    ------
    CaseError
        When it cannot be used, as for `read_plan`.
    NothingToRun
        When the plan has none.
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
        ("toolkits", lambda: parse_toolkits(part.toolkits)),
        ("targets", lambda: _check_targets(part.targets)),
    )
    for key, read in (("with", lambda: _chosen(part, {})), *readers):
        try:
            read()
        except (UsageError, TargetError) as error:
            report.add(("part", number, key), str(error))
            return None
    return part


def _check_targets(text: str) -> None:
    for target in parse_targets(text):
        check_known(target)


def _chosen(part: Part, more: More) -> list[Published]:
    """The releases of a part, out of those that cumatrix knows: the same on every machine, without an index."""
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
    """An environment for each release, and for each major CUDA release where the library has a distribution for each."""
    found = []
    for release in _chosen(part, more):
        library = LIBRARIES[release.library]
        groups: dict[str, list[ToolkitRef]] = {}
        for ref in toolkits:
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
    """The cells of a part, by the code that plans runs.

    Parameters
    ----------
    part : Part
        The part.
    cases : collection of Case
        The cases that it selects; without any, all of them.
    more : Mapping
        By library, releases that ``all`` and open ranges include as well, newer than all that cumatrix knows.

    Raises
    ------
    UsageError
        When the part has no cell, or its condition cannot be read.
    """
    toolkits = parse_toolkits(part.toolkits)
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
