"""What is broken in the newest versions, and what changed with which release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from harness.answers.answer import tool_label
from harness.answers.cells import Entry, Known, Row
from harness.answers.names import LABELS
from harness.answers.verdict import FAULT, SILENT, SURPRISE, WORKS, Grid
from harness.backends import library_of
from harness.matrix.order import fold_targets, target_key, version_key

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
        With which tools, and which release was tried before.
    """

    release: str
    case: str
    works: bool
    tools: str


def broken_now(known: Known, reasons: Mapping[str, tuple[str, str]]) -> list[Broken]:
    """What the newest versions that were tried still have, in the order of the matrix; surprises first.

    Parameters
    ----------
    known : Known
        What was tried.
    reasons : Mapping[str, (str, str)]
        Why, and where it was reported, by id of a cell that is a known fault.
    """
    found: dict[tuple[bool, str, str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for entry in known.entries:
        for target in entry.answered:
            row = _newest(entry, target)
            if row is not None and row.letter in (FAULT, SURPRISE):
                surprise = row.letter == SURPRISE
                reason, link = reasons.get(row.cell, (row.message, ""))
                tools, targets = found.setdefault((not surprise, entry.case, reason, link), ({}, {}))
                tools[tool_label(entry)] = targets[target] = None
    return [
        Broken(case=case, reason=f"{'' if known_fault else 'Not as expected: '}{reason}", link=link, tools=", ".join(tools), targets=fold_targets(targets, sorted(targets, key=target_key)))
        for (known_fault, case, reason, link), (tools, targets) in sorted(found.items(), key=lambda item: item[0][0])
    ]  # fmt: skip


def latest_changes(known: Known) -> list[Change]:
    """The newest release of each tool and of CUDA with which something began to work, or ceased to; some of each."""
    found: dict[tuple[str, str], dict[tuple[str, bool], dict[str, None]]] = {}
    for entry in known.entries:
        for target in entry.answered:
            for axis, before, version, works in _borders(entry, entry.grids[target]):
                tools = found.setdefault((axis, version), {}).setdefault((entry.case, works), {})
                tools[f"{tool_label(entry)}, after {before}"] = None
    newest: dict[str, list[str]] = {}
    for axis, version in sorted(found, key=lambda item: version_key(item[1]), reverse=True):
        newest.setdefault(axis, []).append(version)
    return [
        Change(release=f"{axis} {version}", case=case, works=works, tools="; ".join(tools))
        for axis, versions in sorted(newest.items(), key=lambda item: item[0] != "CUDA")
        for version in versions[:2]
        for (case, works), tools in list(found[axis, version].items())[:LISTED]
    ]


def _newest(entry: Entry, target: str) -> Row | None:
    grid = entry.grids[target]
    for place in range(len(grid.letters) - 1, -1, -1):
        if grid.letters[place] not in SILENT:
            library, toolkit = divmod(place, len(grid.toolkits))
            return entry.proofs[grid.libraries[library], grid.toolkits[toolkit], target]
    return None


def _borders(entry: Entry, grid: Grid) -> list[tuple[str, str, str, bool]]:
    """Axis, release before, release, and whether it works from there on: where all else is the same and the outcome is another."""
    library = entry.axis or (LABELS.get(entry.backend, entry.backend) if library_of(entry.backend) else "")
    found = []
    for axis, names, letters_of in (
        (library, grid.libraries, grid.of_library),
        ("CUDA", grid.toolkits, grid.of_toolkit),
    ):
        told = [(name, set(letters_of(place)) - SILENT) for place, name in enumerate(names)]
        told = [(name, letters) for name, letters in told if letters]
        if axis and all(letters == {WORKS} or WORKS not in letters for _, letters in told):
            for (before, old), (name, new) in pairwise(told):
                if (WORKS in old) != (WORKS in new):
                    found.append((axis, before, name, WORKS in new))
    return found
