"""Cells of a case with the same outcome, shown once."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2s
from typing import Any

from harness.matrix.axes import (
    PROGRAM,
    TOOLCHAIN,
    ToolchainColumn,
    fold_targets,
    natural_key,
    place_of,
    program_of,
    ranks,
    target_key,
)
from harness.matrix.marks import KINDS, Mark, kind_of
from harness.model import Stage
from harness.published import ENVIRONMENT
from harness.records import Merged
from harness.report.text import one_line

Place = tuple[tuple[str, ...], tuple[str, ...]]
"""Row and toolchain, a value of each of their axes."""
_Placed = tuple[Place, Mapping[str, Any]]


@dataclass(frozen=True)
class Where:
    """Cells of one variant and toolchain.

    Parameters
    ----------
    variant, targets : str
        The variant, and the targets folded into ranges.
    toolchain : ToolchainColumn
        The toolchain.
    cell : str
        Id of the first of them.
    own : bool
        Whether they are the report author's own (`harness.report.published`).
    """

    variant: str
    toolchain: ToolchainColumn
    targets: str
    cell: str
    own: bool = True


@dataclass(frozen=True)
class CellGroup:
    """Cells of one case with the same outcome, or that never arrived.

    Parameters
    ----------
    kind : Mark
        That of all of them.
    cells : tuple of dict
        Records, or planned cells; in the order of the matrix, at least one.
    where : tuple of Where
        The same, folded.
    """

    kind: Mark
    cells: tuple[Mapping[str, Any], ...]
    where: tuple[Where, ...]

    @property
    def first(self) -> Mapping[str, Any]:
        """The record that speaks for all."""
        return self.cells[0]

    @cached_property
    def anchor(self) -> str:
        """Id of the group in the page of its case; the same as long as its first cell is."""
        return "g" + anchor_of(self.first["cell"])

    @property
    def message(self) -> str:
        """The message, on one line."""
        if self.kind.key == "missing":
            return ""
        said = self.first["diagnostics"][0]["message"] if self.first["diagnostics"] else self.first["reason"]
        return one_line(said, 200)

    @property
    def stages(self) -> list[tuple[str, str]]:
        """Every stage with what became of it: ``done``, ``stopped`` or ``not run``."""
        ended = self.first["stage"] if self.first["status"] != "built" else None
        return [
            (stage, "stopped" if stage == ended else "done" if stage in self.first["stages"] else "not run")
            for stage in Stage
        ]

    @property
    def signal(self) -> str:
        """``11 (SIGSEGV)``, or the empty text."""
        number = self.first["signal"]
        if number is None:
            return ""
        names = {item.value: item.name for item in signal.Signals}
        return f"{number} ({names[number]})" if number in names else str(number)

    @cached_property
    def resources(self) -> list[tuple[str, dict[str, str]]]:
        """By kernel, the range of each resource over all cells: ``("sum", {"num_regs": "16–40"})``."""
        found: dict[str, dict[str, set[int]]] = {}
        for cell in self.cells:
            for kernel in (cell.get("artifact") or {}).get("kernels", ()):
                of = found.setdefault(kernel["name"], {})
                for name, value in kernel.items():
                    if isinstance(value, int):
                        of.setdefault(name, set()).add(value)
        return [
            (kernel, {name: _range(values) for name, values in resources.items()})
            for kernel, resources in sorted(found.items())
        ]


def anchor_of(cell: str) -> str:
    """Id that stays the same from report to report, so that links to it keep working."""
    return "c" + blake2s(cell.encode(), digest_size=5).hexdigest()


def group_cells(merged: Merged) -> dict[str, list[CellGroup]]:
    """By case, its cells put together where they differ in nothing but place, target and what it entails.

    Within a case the gravest kind of cell comes first, then the order of the matrix.
    """
    axes: dict[Place, set[str]] = {}
    found: dict[str, dict[tuple[Any, ...], list[_Placed]]] = {}
    said = cache(_without_target)
    cells = [*merged.records, *merged.missing]
    cells.sort(key=ranks(cells))
    for cell in cells:
        place = (place_of(cell, PROGRAM), place_of(cell, TOOLCHAIN))
        axes.setdefault(place, set()).add(cell["target"])
        key: tuple[Any, ...] = ("missing",)
        if "status" in cell:
            key = (kind_of(cell).key, *_facts(cell, said))
        found.setdefault(cell["case"], {}).setdefault(key, []).append((place, cell))
    ordered = {place: sorted(targets, key=target_key) for place, targets in axes.items()}
    return {
        case: sorted(
            (_group(KINDS[key[0]], cells, ordered) for key, cells in groups.items()),
            key=lambda group: _GRAVITY.index(group.kind.key),
        )
        for case, groups in sorted(found.items(), key=lambda item: natural_key(item[0]))
    }


# What is not as expected, then what is to be known, then what is all right.
_GRAVITY = [
    *(key for key, kind in KINDS.items() if not kind.as_expected),
    *(key for key, kind in reversed([*KINDS.items()]) if kind.as_expected),
]


def _group(kind: Mark, cells: list[_Placed], axes: Mapping[Place, list[str]]) -> CellGroup:
    places: dict[tuple[Place, bool], list[Mapping[str, Any]]] = {}
    for place, cell in cells:
        places.setdefault((place, cell.get("environment") != ENVIRONMENT), []).append(cell)
    where = tuple(
        Where(
            program_of(members[0])[1],
            ToolchainColumn(place[1]),
            fold_targets((cell["target"] for cell in members), axes[place]),
            members[0]["cell"],
            own,
        )
        for (place, own), members in places.items()
    )
    return CellGroup(kind, tuple(cell for _, cell in cells), where)


def _facts(record: Mapping[str, Any], said: Any) -> tuple[Any, ...]:
    """All that makes one outcome another, with the cell's own target written as XX."""
    expected = record["expected"]
    number = record["target"].partition("_")[2]
    return (
        *(record["status"], record["stage"], record["signal"], *record["stages"]),
        said(record["reason"], number),
        *(said(item["message"], number) for item in record["diagnostics"]),
        *(expected[key] for key in ("status", "stage", "diagnostic", "xfail", "reason")),
    )


def _without_target(text: str, number: str) -> str:
    return re.sub(rf"(sm|compute)_{number}(?![0-9a-z])", r"\1_XX", text) if number in text else text


def _range(values: set[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
