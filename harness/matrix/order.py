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
from harness.matrix.axes import AXIS, COLUMNS, ROWS, TOOLCHAIN, labels, place_of
from harness.model import Target

_BACKENDS = tuple(BACKENDS)


@dataclass(frozen=True, order=True)
class ToolchainColumn:
    """Backend, library version and toolkit, and whatever else `harness.matrix.axes` counts among them: one group of columns.

    Parameters
    ----------
    values : tuple of str
        What it has of each of `harness.matrix.axes.TOOLCHAIN`.
    """

    values: tuple[str, ...]

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> ToolchainColumn:
        """The order of a record, a planned cell or a row of a table."""
        return cls(place_of(cell, TOOLCHAIN))

    @property
    def tool(self) -> str:
        """``cupy-nvrtc 13.6.0``."""
        return " ".join(self._labels(prefixed=False))

    @property
    def releases(self) -> str:
        """``CUDA 12.4, headers 12.6``."""
        return ", ".join(self._labels(prefixed=True))

    @property
    def label(self) -> str:
        """``cupy-nvrtc 13.6.0, CUDA 12.4``."""
        return f"{self.tool}, {self.releases}"

    def to_json(self) -> dict[str, str]:
        """Each value by its key."""
        return dict(zip(TOOLCHAIN, self.values, strict=True))

    def _labels(self, *, prefixed: bool) -> list[str]:
        return _labels(self.values, prefixed)


@cache
def _labels(values: tuple[str, ...], prefixed: bool) -> list[str]:
    """Labels of those axes of a toolchain that have a prefix, or of those that have none."""
    chosen = {key: value for key, value in zip(TOOLCHAIN, values, strict=True) if bool(AXIS[key].prefix) is prefixed}
    return labels(chosen.values(), chosen)


def ranks(cells: Iterable[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], tuple[int, int]]:
    """Sorting key for these cells, by the order of the matrix.

    Places are looked up and not compared: among many cells there are few different ones, and versions compare slowly.
    """
    pairs = {(place_of(cell, ROWS), place_of(cell, COLUMNS)) for cell in cells}
    rows = {key: place for place, key in enumerate(sorted({row for row, _ in pairs}, key=lambda row: row_key(*row)))}
    columns = sorted({column for _, column in pairs}, key=lambda column: column_key(*column))
    order = {key: place for place, key in enumerate(columns)}
    return lambda cell: (rows[place_of(cell, ROWS)], order[place_of(cell, COLUMNS)])


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


def axis_key(key: str) -> Callable[[str], Any]:
    """Sorting key of the values of an axis."""
    return _KEYS[AXIS[key].kind]


def place_key(keys: Iterable[str], values: Iterable[str]) -> tuple[Any, ...]:
    """Order of places: of each axis by its kind, the first counting most.

    Parameters
    ----------
    keys : iterable of str
        Keys of axes.
    values : iterable of str
        A value of each.
    """
    return tuple(axis_key(key)(value) for key, value in zip(keys, values, strict=True))


def row_key(*row: str) -> tuple[Any, ...]:
    """Order of rows, by a value of each of `harness.matrix.axes.ROWS`: by name, with numbers taken for numbers."""
    return place_key(ROWS, row)


def column_key(*column: str) -> tuple[Any, ...]:
    """Order of columns, by a value of each of `harness.matrix.axes.COLUMNS`: known backends first, then versions by PEP 440, then targets as CUDA orders them."""
    return place_key(COLUMNS, column)


def toolchain_key(toolchain: ToolchainColumn) -> tuple[Any, ...]:
    """Order of groups of columns."""
    return place_key(TOOLCHAIN, toolchain.values)


def backend_key(name: str) -> tuple[int, str]:
    """Order of backends: as they are listed, then those that are not known."""
    return (_BACKENDS.index(name) if name in BACKENDS else len(_BACKENDS), name)


def release_key(toolkit: str) -> tuple[Any, ...]:
    """Order of toolkits: by release, then by that of the headers."""
    release, _, headers = toolkit.partition("+headers")
    return (version_key(release), version_key(headers or release))


def fold_targets(chosen: Iterable[str], axis: Sequence[str]) -> str:
    """Targets as ranges of the axis: ``sm_80–sm_90, sm_100`` where nothing of the axis lies between.

    Parameters
    ----------
    chosen : iterable of str
        The targets to spell.
    axis : sequence of str
        All targets requested from the toolchain, in order.
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


_KEYS: Mapping[str, Callable[[str], Any]] = {
    "name": natural_key,
    "word": natural_key,
    "backend": backend_key,
    "version": version_key,
    "release": release_key,
    "target": target_key,
}
"""Sorting key of a value by the kind of its axis."""
