"""Current breakage, and the latest changes by release."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from harness.answers.answer import tool_label
from harness.answers.cells import Entry, Known, Row
from harness.answers.verdict import FAULT, SILENT, SURPRISE, VersionGrid, along
from harness.backends import label_of, library_of
from harness.matrix.axes import fold_targets, target_key, version_key
from harness.matrix.ranges import ranges

LISTED = 3
"""Changes of one release that are listed."""


@dataclass(frozen=True, kw_only=True)
class Broken:
    """Something that does not work in the newest versions, and should.

    Parameters
    ----------
    case, reason, link : str
        The case, why, and where that was reported; what a compiler said, for a surprise.
    tools, targets : str
        Where.
    """

    case: str
    reason: str
    link: str
    tools: str
    targets: str


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that works since a release, or does not any more.

    Parameters
    ----------
    release, case : str
        ``CUDA 13.0``, and the case.
    works : bool
        Whether it works from there on.
    tools : str
        Tools, architectures, and the release tried before.
    label : str
        Variants, if only some of the case are affected.
    """

    release: str
    case: str
    works: bool
    tools: str
    label: str = ""


def broken_now(known: Known, reasons: Mapping[str, tuple[str, str]]) -> list[Broken]:
    """Current faults of the newest tried versions, in the order of the matrix; surprises first.

    The newest version is that of a program on any architecture: what an earlier one did, where that one is the last that was tried, is not now.

    Parameters
    ----------
    known : Known
        What was tried.
    reasons : Mapping[str, (str, str)]
        Why, and where it was reported, by id of a cell that is a known fault.
    """
    found: dict[tuple[bool, str, str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for entry in known.entries:
        rows = {target: row for target in entry.answered if (row := _newest(entry, target))}
        newest = max((row.version for row in rows.values()), key=version_key, default="")
        for target, row in rows.items():
            if row.version == newest and row.letter in (FAULT, SURPRISE):
                surprise = row.letter == SURPRISE
                reason, link = reasons.get(row.cell, (row.message, ""))
                tools, targets = found.setdefault((not surprise, entry.case, reason, link), ({}, {}))
                tools[tool_label(entry)] = targets[target] = None
    return [
        Broken(case=case, reason=f"{'' if known_fault else 'Not as expected: '}{reason}", link=link, tools=", ".join(tools), targets=fold_targets(targets, sorted(targets, key=target_key)))
        for (known_fault, case, reason, link), (tools, targets) in sorted(found.items(), key=lambda item: item[0][0])
    ]  # fmt: skip


def latest_changes(known: Known) -> list[Change]:
    """The newest release of each tool and of CUDA that began or stopped to build something; some of each."""
    found: dict[tuple[str, str], dict[tuple[str, bool], _Seen]] = {}
    variants: dict[str, set[str]] = {}
    for entry in known.entries:
        variants.setdefault(entry.case, set()).add(entry.rest)
        for target in entry.answered:
            for axis, before, version, works in _borders(entry, entry.grids[target]):
                seen = found.setdefault((axis, version), {}).setdefault((entry.case, works), _Seen())
                seen.variants[entry.rest] = None
                seen.targets.setdefault((tool_label(entry), before), {})[target] = None
    newest: dict[str, list[str]] = {}
    for axis, version in sorted(found, key=lambda item: version_key(item[1]), reverse=True):
        newest.setdefault(axis, []).append(version)
    return [
        Change(release=f"{axis} {version}", case=case, works=works, tools=seen.tools, label=seen.label(variants[case]))
        for axis, versions in sorted(newest.items(), key=lambda item: item[0] != "CUDA")
        for version in versions[:2]
        for (case, works), seen in list(found[axis, version].items())[:LISTED]
    ]


@dataclass(frozen=True)
class _Seen:
    """Changes: variants, and by tool and release before the architectures."""

    variants: dict[str, None] = field(default_factory=dict)
    targets: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    @property
    def tools(self) -> str:
        """``CuPy on sm_80–sm_120, after 13.6.0``."""
        return "; ".join(
            f"{tool} on {fold_targets(targets, sorted(targets, key=target_key))}, after {before}"
            for (tool, before), targets in self.targets.items()
        )

    def label(self, of_case: Collection[str]) -> str:
        """The variants, where the case has others, and few enough to be read."""
        return "; ".join(self.variants) if len(self.variants) < len(of_case) and len(self.variants) <= LISTED else ""


def _newest(entry: Entry, target: str) -> Row | None:
    grid = entry.grids[target]
    for place in range(len(grid.letters) - 1, -1, -1):
        if grid.letters[place] not in SILENT:
            library, toolkit = divmod(place, len(grid.toolkits))
            return entry.proofs[grid.libraries[library], grid.toolkits[toolkit], target]
    return None


def _borders(entry: Entry, grid: VersionGrid) -> list[tuple[str, str, str, bool]]:
    """Axis, release before, release, and whether it works from there on: where all else is the same and the outcome is another."""
    library = entry.axis or (label_of(entry.backend) if library_of(entry.backend) else "")
    found = []
    for axis, names, letters_of in (
        (library, grid.libraries, grid.of_library),
        ("CUDA", grid.toolkits, grid.of_toolkit),
    ):
        runs = ranges(along(names, letters_of) or ()) if axis else []
        found += [(axis, str(run.before), run.values[0], run.outcome) for run in runs[1:]]
    return found
