"""The matrix: variants of cases down, toolchains and targets across."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import pandas as pd
from packaging.version import InvalidVersion, Version

from harness.model import Target
from harness.records import Merged
from harness.report.marks import MARKS, NOT_PLANNED, mark_of
from harness.report.text import natural_key, one_line

ROWS = ["topic", "case", "variant"]
COLUMNS = ["backend", "library", "toolkit", "target"]
BACKENDS = ("nvrtc", "cupy-nvrtc", "cupy-jitify", "numba", "numba-cuda")

_FLAT = [
    *(
        "cell",
        *ROWS,
        *COLUMNS,
        "title",
        "environment",
        "mark",
        "status",
        "stage",
        "verdict",
        "reason",
        "message",
    ),
    *("signal", "seconds", "cached", "run"),
]


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


def frame(merged: Merged) -> pd.DataFrame:
    """One row a cell, those that never arrived included, in the order of the matrix."""
    rows: list[dict[str, Any]] = [
        {
            **{key: record[key] for key in _FLAT if key in record},
            "mark": mark_of(record).key,
            "message": one_line(record["diagnostics"][0]["message"]) if record["diagnostics"] else "",
        }
        for record in merged.records
    ]
    rows += [{**cell, "mark": "missing"} for cell in merged.missing]
    # Sorted here and not by pandas: the keys are of four kinds, and tuples of them compare as they are.
    rows.sort(key=lambda row: (row_key(*(row[key] for key in ROWS)), column_key(*(row[key] for key in COLUMNS))))
    table = pd.DataFrame(rows, columns=_FLAT).astype({"signal": "Int64", "seconds": "float64", "cached": "boolean"})
    texts = [key for key in _FLAT if key not in ("signal", "seconds", "cached")]
    table[texts] = table[texts].astype(object).where(table[texts].notna(), "")
    return table.drop_duplicates([*ROWS, *COLUMNS], keep="last", ignore_index=True)


def pivot(table: pd.DataFrame) -> pd.DataFrame:
    """Keys of marks: rows (topic, case, variant), columns (backend, library, toolkit, target).

    A cell that was planned and never arrived is ``missing``; one that nobody planned is empty.
    """
    rows = sorted(set(table[ROWS].itertuples(index=False, name=None)), key=lambda key: row_key(*key))
    columns = sorted(set(table[COLUMNS].itertuples(index=False, name=None)), key=lambda key: column_key(*key))
    wide = table.pivot(index=ROWS, columns=COLUMNS, values="mark")
    return wide.reindex(
        index=pd.MultiIndex.from_tuples(rows, names=ROWS),
        columns=pd.MultiIndex.from_tuples(columns, names=COLUMNS),
    ).fillna(NOT_PLANNED)


def parts(table: pd.DataFrame, *by: str) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Split the table by the values of some columns, in the order in which they occur."""
    for key, part in table.groupby(list(by), sort=False):
        yield tuple(map(str, key)), part


def totals(table: pd.DataFrame) -> dict[str, int]:
    """Number of cells by mark, in the order of the legend, without those that do not occur."""
    counts = table["mark"].value_counts()
    return {key: int(counts[key]) for key in MARKS if key in counts}


def row_key(topic: str, case: str, variant: str) -> tuple[Any, ...]:
    """Order of rows: by name, with numbers taken for numbers."""
    return (natural_key(topic), natural_key(case), natural_key(variant))


def column_key(backend: str, library: str, toolkit: str, target: str) -> tuple[Any, ...]:
    """Order of columns: known backends first, then versions by PEP 440, then targets as CUDA orders them."""
    return (*toolchain_key(ToolchainColumn(backend, library, toolkit)), Target.parse(target).sort_key)


def toolchain_key(toolchain: ToolchainColumn) -> tuple[Any, ...]:
    """Order of groups of columns."""
    known = BACKENDS.index(toolchain.backend) if toolchain.backend in BACKENDS else len(BACKENDS)
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
    wanted = set(chosen)
    parts: list[str] = []
    # A range never goes from real to virtual architectures.
    for kind in ("sm_", "compute_"):
        for included, run in groupby((item for item in axis if item.startswith(kind)), wanted.__contains__):
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
