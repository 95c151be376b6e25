"""Architectures themselves: which releases build anything for one, as a feature like any other. Questions that name no feature ask for it."""

from __future__ import annotations

import re

from harness.answers.asked import Query
from harness.answers.cells import Known
from harness.answers.features import Feature
from harness.answers.verdict import NOT, NOTHING, SILENT, WORKS

SAME = "targets/removed"
"""The case about the architecture itself; its row would repeat the architecture's own."""

_NOT_KNOWN = re.compile("invalid value for --gpu-architecture|Unsupported gpu architecture")

FEATURE = Feature(case="", title="The architecture itself: whether anything is compiled for it", topic="")


def known_of_itself(known: Known) -> Known:
    """The same cells, reduced to whether their compiler supports the architecture.

    It does if it compiled or refused a program; it does not if NVRTC or nvcc said so itself, or the record says so (``CUDA 13.0 knows no sm_70``).
    """
    rows = [
        row._replace(case="", rest="", letter=NOT if row.letter == NOTHING or _NOT_KNOWN.search(row.message) else WORKS)
        for row in known.rows
        if not row.axis and (row.letter not in SILENT or f" knows no {row.target} " in f"{row.message} ")
    ]
    # Of several cells for one place the last one counts: what was built shows more than what was refused.
    rows.sort(key=lambda row: row.message == "built")
    return Known(rows=rows, features={"": FEATURE}, runs=known.runs)


def asks_for_itself(asked: Query) -> bool:
    """Return whether a question names an architecture, perhaps a CUDA release or a tool, and nothing else."""
    return bool(asked.targets) and not asked.words
