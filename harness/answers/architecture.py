"""Architectures themselves: which releases build anything for one, as a feature like any other. Questions that name no feature ask for it."""

from __future__ import annotations

import re

from harness.answers.asked import Asked
from harness.answers.cells import Known
from harness.answers.features import Feature
from harness.answers.verdict import NOT, NOTHING, SILENT, WORKS

SAME = "targets/removed"
"""The case that asks for nothing else: beside what is known of the architecture it would say so twice."""

_NOT_KNOWN = re.compile("invalid value for --gpu-architecture|Unsupported gpu architecture")

FEATURE = Feature(case="", title="The architecture itself: whether anything is compiled for it", topic="")


def known_of_itself(known: Known) -> Known:
    """The same cells, of which each tells only whether its compiler knows the architecture.

    It does where it had its say on a program; it does not where it said so itself (NVRTC, nvcc), or where cumatrix was told so (``CUDA 13.0 knows no sm_70``).
    """
    rows = [
        row._replace(case="", rest="", letter=NOT if row.letter == NOTHING or _NOT_KNOWN.search(row.message) else WORKS)
        for row in known.rows
        if not row.axis and (row.letter not in SILENT or f" knows no {row.target} " in f"{row.message} ")
    ]
    # Of several cells for one place the last one counts: what was built shows more than what was refused.
    rows.sort(key=lambda row: row.message == "built")
    return Known(rows=rows, features={"": FEATURE}, runs=known.runs)


def asks_for_itself(asked: Asked) -> bool:
    """Whether a question names an architecture, perhaps a CUDA release or a tool, and nothing else."""
    return bool(asked.targets) and not asked.words
