"""Cells of a case whose facts are the same, told once."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any

from harness.model import Stage, Target
from harness.records import Record
from harness.report.marks import Mark, mark_of
from harness.report.matrix import ToolchainColumn, fold_targets, row_key, toolchain_key

# What differs from target to target although the same thing happened; told per cell.
_OF_THE_CELL = ("cell", "target", "artifact", "seconds", "cached", "fingerprint", "device")


@dataclass(frozen=True, kw_only=True)
class Group:
    """Cells of one variant and toolchain to which the same happened.

    Parameters
    ----------
    records : tuple of dict
        By target, at least one.
    targets : str
        Their targets, folded.
    """

    records: tuple[Record, ...]
    targets: str

    @property
    def first(self) -> Record:
        """The record that speaks for all."""
        return self.records[0]

    @property
    def mark(self) -> Mark:
        """Mark of all of them."""
        return mark_of(self.first)

    @property
    def toolchain(self) -> ToolchainColumn:
        """Toolchain of all of them."""
        return toolchain_of(self.first)

    @property
    def anchor(self) -> str:
        """Id of the group in the page of its case."""
        return "g" + anchor_of(self.first["cell"])

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


def anchor_of(cell: str) -> str:
    """Id that stays the same from report to report, so that links to it keep working."""
    return "c" + blake2s(cell.encode(), digest_size=5).hexdigest()


def toolchain_of(cell: Mapping[str, Any]) -> ToolchainColumn:
    """Toolchain of a record or of a planned cell."""
    return ToolchainColumn(cell["backend"], cell["library"], cell["toolkit"])


def place_of(cell: Mapping[str, Any]) -> tuple[str, str, ToolchainColumn]:
    """Case, variant and toolchain of a record or of a planned cell."""
    return (cell["case"], cell["variant"], toolchain_of(cell))


def axes(cells: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, ToolchainColumn], list[str]]:
    """By case, variant and toolchain, the targets that were asked for, in order."""
    found: dict[tuple[str, str, ToolchainColumn], set[str]] = {}
    for cell in cells:
        found.setdefault(place_of(cell), set()).add(cell["target"])
    return {place: sorted(targets, key=_target_key) for place, targets in found.items()}


def group_cells(records: Iterable[Record], targets: Mapping[Any, list[str]]) -> list[Group]:
    """Put cells together that differ in nothing but their target and what it entails.

    Parameters
    ----------
    records : iterable of dict
        Records of one case or of several.
    targets : Mapping
        What `axes` gives for all planned cells, those that never arrived included.
    """
    found: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        found.setdefault((*place_of(record), mark_of(record).key, _facts(record)), []).append(record)
    groups = [
        Group(
            records=tuple(sorted(members, key=lambda record: _target_key(record["target"]))),
            targets=fold_targets((record["target"] for record in members), targets[key[:3]]),
        )
        for key, members in found.items()
    ]
    return sorted(groups, key=_group_key)


def _group_key(group: Group) -> tuple[Any, ...]:
    first = group.first
    return (
        row_key(first["topic"], first["case"], first["variant"]),
        toolchain_key(group.toolchain),
        _target_key(first["target"]),
    )


def _target_key(target: str) -> tuple[bool, int, str]:
    return Target.parse(target).sort_key


def _facts(record: Record) -> str:
    """All that is told once for a group, with the cell's own target written as XX."""
    told = {key: value for key, value in record.items() if key not in _OF_THE_CELL}
    told["device"] = {key: value for key, value in record["device"].items() if key != "compute_capability"}
    told["artifact"] = record["artifact"] and record["artifact"]["format"]
    number = record["target"].partition("_")[2]
    text = json.dumps(told, sort_keys=True, ensure_ascii=False)
    return re.sub(rf"(sm|compute)_{number}(?![0-9a-z])", r"\1_XX", text)
