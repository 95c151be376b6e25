"""What somebody should look at first: cells that are not as expected, and cells that never arrived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.report.groups import Group, place_of, toolchain_of
from harness.report.marks import MARKS, Mark
from harness.report.matrix import ToolchainColumn, fold_targets, row_key, toolchain_key
from harness.report.text import one_line


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The same thing going wrong with one variant in some toolchains.

    Parameters
    ----------
    mark : Mark
        What is wrong.
    case, variant, message : str
        Where, and what was said of it.
    groups : tuple of Group
        By toolchain, at least one.
    """

    mark: Mark
    case: str
    variant: str
    message: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, kw_only=True)
class Absent:
    """Planned cells of one variant and toolchain that never arrived."""

    topic: str
    case: str
    variant: str
    toolchain: ToolchainColumn
    targets: str
    cells: tuple[Mapping[str, Any], ...]


def problems(groups: Iterable[Group]) -> list[Problem]:
    """Groups that are not as expected, the gravest kind first."""
    found: dict[tuple[str, str, str, str], list[Group]] = {}
    for group in groups:
        if not group.mark.good:
            first = group.first
            message = first["diagnostics"][0]["message"] if first["diagnostics"] else first["reason"]
            found.setdefault((group.mark.key, first["case"], first["variant"], one_line(message, 160)), []).append(
                group
            )
    order = list(MARKS)
    return [
        Problem(mark=MARKS[mark], case=case, variant=variant, message=message, groups=tuple(members))
        # Stable: within a kind of mark they stay in the order of the matrix.
        for (mark, case, variant, message), members in sorted(found.items(), key=lambda item: order.index(item[0][0]))
    ]


def absent(missing: Iterable[Mapping[str, Any]], targets: Mapping[Any, list[str]]) -> list[Absent]:
    """Cells that never arrived, by variant and toolchain.

    Parameters
    ----------
    missing : iterable of dict
        Planned cells.
    targets : Mapping
        What `harness.report.groups.axes` gives for all planned cells.
    """
    found: dict[Any, list[Mapping[str, Any]]] = {}
    for cell in missing:
        found.setdefault(place_of(cell), []).append(cell)
    items = [
        Absent(
            topic=cells[0]["topic"],
            case=cells[0]["case"],
            variant=cells[0]["variant"],
            toolchain=toolchain_of(cells[0]),
            targets=fold_targets((cell["target"] for cell in cells), targets[place]),
            cells=tuple(cells),
        )
        for place, cells in found.items()
    ]
    return sorted(items, key=lambda item: (row_key(item.topic, item.case, item.variant), toolchain_key(item.toolchain)))
