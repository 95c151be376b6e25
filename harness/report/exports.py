"""The matrix as data: JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from harness.analysis.frame import NUMBERS, rows_of
from harness.matrix.axes import COLUMNS, ROWS
from harness.matrix.kinds import KINDS
from harness.matrix.order import ToolchainColumn, column_key, target_key, toolchain_key
from harness.records import Conflict, Merged
from harness.report.groups import anchor_of
from harness.report.provenance import runs_of
from harness.report.table import totals
from harness.report.text import clean

SCHEMA = 1
"""Version of ``matrix.json``."""

_CSV = [
    *("cell", *ROWS, *COLUMNS, "environment"),
    *("mark", "status", "stage", "verdict", "signal", "reason", "message", "seconds", "cached", "run", "others"),
]


def matrix_json(merged: Merged, table: pd.DataFrame, files: Mapping[str, str], warnings: Iterable[str]) -> bytes:
    """``matrix.json``: axes, totals, legend, provenance and every cell."""
    columns = sorted(set(rows_of(table, COLUMNS)), key=lambda key: column_key(*key))
    toolchains = sorted({ToolchainColumn(column[:-1]) for column in columns}, key=toolchain_key)
    value = {
        "schema": SCHEMA,
        "axes": {
            "topics": list(dict.fromkeys(table["topic"])),
            "cases": dict(zip(table["case"], table["title"], strict=True)),
            "toolchains": [item.to_json() for item in toolchains],
            "targets": sorted({column[-1] for column in columns}, key=target_key),
        },
        "totals": totals(table),
        "marks": {
            key: {"letter": kind.letter, "word": kind.word, "meaning": kind.meaning, "as_expected": kind.as_expected}
            for key, kind in KINDS.items()
        },
        "runs": [run.to_json() for run in runs_of(merged)],
        "missing": [cell["cell"] for cell in merged.missing],
        "conflicts": _conflicts(merged.conflicts),
        "unanswered": _conflicts(merged.unanswered),
        "warnings": list(warnings),
    }
    lines = _lines(
        table, [f"cases/{files[case]}#{anchor_of(cell)}" for cell, case in table[["cell", "case"]].to_numpy()]
    )
    # One line a cell: to look at, to compare, and because the indenting encoder takes ten times as long.
    text = json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False)
    return (text.removesuffix("\n}") + ',\n "cells": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n").encode()


def _conflicts(items: Iterable[Conflict]) -> list[dict[str, Any]]:
    return [
        {
            "cell": item.cell,
            "kept": {"run": item.kept["run"], "status": item.kept["status"]},
            "dropped": [{"run": other["run"], "status": other["status"]} for other in item.dropped],
        }
        for item in items
    ]


def _lines(table: pd.DataFrame, pages: Sequence[str]) -> Iterator[str]:
    """Each cell as one line of JSON; a column at a time, for most of its values come again and again."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    written = []
    for name, values in (*((name, _values(table[name])) for name in _CSV), ("page", pages)):
        begin = f"{encode(name)}: "
        texts = {value: begin + encode(value) for value in dict.fromkeys(values)}
        written.append([texts[value] for value in values])
    return ("{" + ", ".join(parts) + "}" for parts in zip(*written, strict=True))


def _values(column: pd.Series) -> list[Any]:
    """A column's values as JSON has them, None for nothing."""
    there = column.notna()
    values: list[Any] = (column if there.all() else column.astype(object).where(there, None)).tolist()
    return values


def matrix_csv(table: pd.DataFrame) -> bytes:
    """``matrix.csv``: one row a cell."""
    columns = []
    for name in _CSV:
        values = _values(table[name])
        if name not in NUMBERS:
            texts = {value: _csv_text(value) for value in dict.fromkeys(values)}
            values = [texts[value] for value in values]
        columns.append(values)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(_CSV)
    writer.writerows(zip(*columns, strict=True))
    return stream.getvalue().encode()


def _csv_text(text: str) -> str:
    """Spreadsheets run what begins like a formula, and messages come out of programs."""
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text
