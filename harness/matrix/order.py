"""The order of the matrix: rows by name, columns by backend, version and target; and targets as ranges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from packaging.version import InvalidVersion, Version

from harness.backends import BACKENDS
from harness.matrix.axes import COLUMNS, ROWS
from harness.model import Target

_BACKENDS = tuple(BACKENDS)


@dataclass(frozen=True, order=True)
class ToolchainColumn:
    """Backend, library version and toolkit: one group of columns."""

    backend: str
    library: str
    toolkit: str

    @property
    def tool(self) -> str:
        """``cupy-nvrtc 13.6.0``."""
        return f"{self.backend} {self.library}".strip()

    @property
    def cuda(self) -> str:
        """``CUDA 12.4, headers 12.6``."""
        return f"CUDA {self.toolkit.replace('+headers', ', headers ')}"

    @property
    def label(self) -> str:
        """``cupy-nvrtc 13.6.0, CUDA 12.4``."""
        return f"{self.tool}, {self.cuda}"


def ranks(cells: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], tuple[int, int]]:
    """Sorting key for these cells, by the order of the matrix.

    Places are looked up and not compared: among many cells there are few different ones, and versions compare slowly.
    """
    pairs = {(tuple(cell[key] for key in ROWS), tuple(cell[key] for key in COLUMNS)) for cell in cells}
    rows = {key: place for place, key in enumerate(sorted({row for row, _ in pairs}, key=lambda row: row_key(*row)))}
    columns = sorted({column for _, column in pairs}, key=lambda column: column_key(*column))
    order = {key: place for place, key in enumerate(columns)}
    return lambda cell: (
        rows[tuple(cell[key] for key in ROWS)],
        order[tuple(cell[key] for key in COLUMNS)],
    )


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Order of names: the numbers in a text are taken for numbers."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", text)
    )


@cache
def target_key(target: str) -> tuple[bool, int, str]:
    """Order of targets: real before virtual, then by compute capability, then by suffix."""
    return Target.parse(target).sort_key


def row_key(topic: str, case: str, variant: str) -> tuple[Any, ...]:
    """Order of rows: by name, with numbers taken for numbers."""
    return (natural_key(topic), natural_key(case), natural_key(variant))


def column_key(backend: str, library: str, toolkit: str, target: str) -> tuple[Any, ...]:
    """Order of columns: known backends first, then versions by PEP 440, then targets as CUDA orders them."""
    return (*toolchain_key(ToolchainColumn(backend, library, toolkit)), target_key(target))


def toolchain_key(toolchain: ToolchainColumn) -> tuple[Any, ...]:
    """Order of groups of columns."""
    known = _BACKENDS.index(toolchain.backend) if toolchain.backend in BACKENDS else len(BACKENDS)
    release, _, headers = toolchain.toolkit.partition("+headers")
    return (
        (known, toolchain.backend),
        version_key(toolchain.library),
        (version_key(release), version_key(headers or release)),
    )


def fold_targets(chosen: Iterable[str], axis: Sequence[str]) -> str:
    """Targets as ranges of the axis: ``sm_80–sm_90, sm_100`` where nothing of the axis lies between.

    Parameters
    ----------
    chosen : iterable of str
        The targets to spell.
    axis : sequence of str
        All targets that the toolchain was asked for, in order.
    """
    return _fold(frozenset(chosen), tuple(axis))


@cache
def _fold(chosen: frozenset[str], axis: tuple[str, ...]) -> str:
    parts: list[str] = []
    # A range never goes from real to virtual architectures.
    for kind in ("sm_", "compute_"):
        for included, run in groupby((item for item in axis if item.startswith(kind)), chosen.__contains__):
            names = list(run)
            if included:
                parts += [f"{names[0]}–{names[-1]}"] if len(names) > 2 else names
    return ", ".join(parts)


@cache
def version_key(text: str) -> tuple[Any, ...]:
    """Order of versions: by PEP 440, after what is no version; ``12.4@local`` follows ``12.4``."""
    number, _, place = text.partition("@")
    try:
        return (1, Version(number), place)
    except InvalidVersion:
        return (0, Version("0"), text)
