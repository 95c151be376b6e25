"""The matrix as data: JSON, CSV and Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from harness.records import Merged, Record
from harness.report.groups import anchor_of
from harness.report.marks import MARKS, mark_of
from harness.report.matrix import COLUMNS, ToolchainColumn, column_key, toolchain_key, totals
from harness.report.provenance import runs_of
from harness.report.text import clean

SCHEMA = 1
"""Version of ``matrix.json``."""

_CSV = [
    *("cell", "topic", "case", "variant", "backend", "library", "toolkit", "target", "environment"),
    *("mark", "status", "stage", "verdict", "signal", "reason", "message", "seconds", "cached", "run"),
]

_NESTED = (
    "features",
    "links",
    "stages",
    "toolchain",
    "expected",
    "diagnostics",
    "artifact",
    "device",
    "command",
    "notes",
)

_PARQUET = pa.schema(
    [
        ("schema", pa.int32()),
        *((name, pa.string()) for name in ("cell", "case", "title", "topic", "variant", "backend", "library")),
        *((name, pa.string()) for name in ("target", "toolkit", "environment", "status", "stage", "verdict", "mark")),
        *((name, pa.string()) for name in ("reason", "message", "diagnostic_code", "diagnostic_fingerprint")),
        ("signal", pa.int64()),
        ("seconds", pa.float64()),
        ("cached", pa.bool_()),
        *((name, pa.string()) for name in ("artifact_format", "artifact_target", "artifact_sha256")),
        *((name, pa.int64()) for name in ("artifact_bytes", "max_num_regs", "max_shared_bytes", "max_spill_bytes")),
        *((f"{name}_json", pa.string()) for name in _NESTED),
        *((name, pa.string()) for name in ("log", "fingerprint", "run", "cumatrix")),
    ]
)


def matrix_json(merged: Merged, table: pd.DataFrame, files: Mapping[str, str], warnings: Iterable[str]) -> bytes:
    """``matrix.json``: axes, totals, legend, provenance and every cell."""
    columns = sorted(set(table[COLUMNS].itertuples(index=False, name=None)), key=lambda key: column_key(*key))
    toolchains = sorted({ToolchainColumn(*column[:3]) for column in columns}, key=toolchain_key)
    cells = table.astype(object).where(table.notna(), None).to_dict("records")
    value = {
        "schema": SCHEMA,
        "axes": {
            "topics": list(dict.fromkeys(table["topic"])),
            "cases": {case: title for case, title in zip(table["case"], table["title"], strict=True)},
            "toolchains": [vars(item) for item in toolchains],
            "targets": list(
                dict.fromkeys(column[3] for column in sorted(columns, key=lambda key: column_key("", "", "", key[3])))
            ),
        },
        "totals": totals(table),
        "marks": {
            key: {"letter": m.letter, "word": m.word, "meaning": m.meaning, "as_expected": m.good}
            for key, m in MARKS.items()
        },
        "runs": [run.to_json() for run in runs_of(merged)],
        "cells": [
            {
                **{key: cell[key] for key in _CSV},
                "page": f"cases/{files[cell['case']]}#{anchor_of(cell['cell'])}",
            }
            for cell in cells
        ],
        "missing": [cell["cell"] for cell in merged.missing],
        "conflicts": [
            {
                "cell": item.cell,
                "kept": {"run": item.kept["run"], "status": item.kept["status"]},
                "dropped": [{"run": other["run"], "status": other["status"]} for other in item.dropped],
            }
            for item in merged.conflicts
        ],
        "warnings": list(warnings),
    }
    return (json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()


def matrix_csv(table: pd.DataFrame) -> bytes:
    """``matrix.csv``: one row a cell."""
    text = table[_CSV].copy()
    for name in set(_CSV) - {"signal", "seconds", "cached"}:
        text[name] = text[name].map(_csv_text)
    return text.to_csv(index=False, lineterminator="\n").encode()


def results_parquet(records: Iterable[Record]) -> bytes:
    """``results.parquet``: one row a record, flat, with what is nested as JSON."""
    rows = [_parquet_row(record) for record in records]
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in _PARQUET]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, schema=_PARQUET), buffer, compression="zstd")
    return buffer.getvalue()


def _csv_text(text: str) -> str:
    """Spreadsheets run what begins like a formula, and messages come out of programs."""
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def _parquet_row(record: Record) -> dict[str, Any]:
    artifact = record["artifact"] or {}
    diagnostic = record["diagnostics"][0] if record["diagnostics"] else {}
    kernels = artifact.get("kernels", [])
    row = {
        **{field.name: record.get(field.name) for field in _PARQUET},
        **{f"{name}_json": json.dumps(record[name], ensure_ascii=False, sort_keys=True) for name in _NESTED},
        "mark": mark_of(record).key,
        "message": diagnostic.get("message"),
        "diagnostic_code": diagnostic.get("code"),
        "diagnostic_fingerprint": diagnostic.get("fingerprint"),
    }
    for name in ("format", "target", "sha256", "bytes"):
        row[f"artifact_{name}"] = artifact.get(name)
    for name in ("num_regs", "shared_bytes", "spill_bytes"):
        known = [kernel[name] for kernel in kernels if kernel.get(name) is not None]
        row[f"max_{name}"] = max(known, default=None)
    return row
