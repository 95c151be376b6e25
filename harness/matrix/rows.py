"""The matrix of records before rendering: programs and toolchains down, targets across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.matrix.axes import AXIS, PROGRAM, TOOLCHAIN, place_of, program_of
from harness.matrix.order import place_key, target_key


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the matrix.

    Parameters
    ----------
    program : str
        Case and variant: ``wmma/fragments[shape=m16n16k8]``.
    toolchain : str
        Backend with its version, toolkit and whatever else tells it from others.
    cells : Mapping[str, Mapping]
        Records by target.
    """

    program: str
    toolchain: str
    cells: Mapping[str, Mapping[str, Any]]


def rows_of(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The lines in the order of the matrix; texts are as the records have them."""
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for record in sorted(records, key=_order):
        case, variant = program_of(record)
        key = (f"{case}[{variant}]" if variant else case, _toolchain(record))
        found.setdefault(key, {})[record["target"]] = record
    return [Row(program=program, toolchain=toolchain, cells=cells) for (program, toolchain), cells in found.items()]


def targets_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The targets of the records, as CUDA orders them."""
    return sorted({record["target"] for record in records}, key=target_key)


def short_target(target: str) -> str:
    """``80``, ``90a``; ``c80`` for the virtual architecture."""
    return target.replace("compute_", "c").replace("sm_", "")


def _order(record: Mapping[str, Any]) -> tuple[Any, ...]:
    keys = (*PROGRAM, *TOOLCHAIN)
    return place_key(keys, place_of(record, keys))


def _toolchain(record: Mapping[str, Any]) -> str:
    values = zip(TOOLCHAIN, place_of(record, TOOLCHAIN), strict=True)
    return " ".join(f"{AXIS[key].prefix.lower()}{value}" for key, value in values if value)
