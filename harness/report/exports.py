"""Exports: the matrix as JSON and CSV, JSON Schemas, and tables of the documentation."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from harness.analysis.frame import NUMBERS, rows_of
from harness.matrix.axes import (
    COLUMNS,
    PLACE,
    PROGRAM,
    ROWS,
    TOOLCHAIN,
    ToolchainColumn,
    column_key,
    fold_targets,
    program_of,
    target_key,
    toolchain_key,
)
from harness.matrix.marks import KINDS, counted_group, grouped, surprises_among
from harness.model import Stage, Status, Verdict
from harness.protocol.text import clean
from harness.records import Conflict, Merged
from harness.records.make import with_tables
from harness.records.schema import record_schema
from harness.report.api import COUNT, DIALECT, TARGET, TEXT, feature_schema, features_schema, list_of, map_of, object_of
from harness.report.gpus import wheels_schema
from harness.report.overview import parts as split
from harness.report.overview import runs_of, totals, unavailable_of


def schemas() -> dict[str, bytes]:
    """Return schemas by file name: ``record.schema.json``, ``matrix.schema.json`` and those of the API."""
    found = {
        "record": record_schema,
        "matrix": matrix_schema,
        "feature": feature_schema,
        "features": features_schema,
        "wheels": wheels_schema,
    }
    return {f"{name}.schema.json": _bytes(schema()) for name, schema in found.items()}


def write_docs(docs: Path) -> None:
    """Write the schemas to the folder ``schemas`` below `docs`, and the tables into ``records.md``."""
    for name, data in schemas().items():
        (docs / "schemas" / name).write_bytes(data)
    page = docs / "records.md"
    page.write_text(with_tables(page.read_text("utf-8")), "utf-8")


def matrix_schema() -> dict[str, Any]:
    """Return the JSON Schema of ``matrix.json``. Readers should ignore keys that the schema does not name."""
    mark = {"enum": list(KINDS)}
    cell = {
        **dict.fromkeys(("cell", *ROWS, *TOOLCHAIN, "environment"), TEXT),
        "target": TARGET,
        "mark": mark,
        # A planned cell without a record has none of these.
        "status": {"enum": [*Status, ""]},
        "stage": {"enum": [*Stage, ""]},
        "verdict": {"enum": [*Verdict, ""]},
        "signal": {"type": ["integer", "null"]},
        "reason": TEXT,
        "message": TEXT,
        "seconds": {"type": ["number", "null"], "minimum": 0},
        "cached": {"type": ["boolean", "null"]},
        "run": TEXT,
        "others": TEXT,
        "page": TEXT,
    }
    run = {
        **dict.fromkeys(("name", "environment", "started", "argv"), TEXT),
        "machine": map_of(TEXT),
        "planned": {"type": ["integer", "null"]},
        "arrived": COUNT,
        "observed": map_of(list_of(TEXT)),
    }
    answer = {"run": TEXT, "status": {"enum": [*Status]}}
    axes = {
        "topics": list_of(TEXT),
        "cases": map_of(TEXT),
        "toolchains": list_of(object_of(dict.fromkeys(TOOLCHAIN, TEXT))),
        "targets": list_of(TARGET),
    }
    return {
        "$schema": DIALECT,
        "$id": f"urn:cumatrix:matrix:{SCHEMA}",
        "title": "matrix.json of a report of cumatrix",
        **object_of(
            {
                "schema": {"const": SCHEMA},
                "axes": object_of(axes),
                "totals": {"type": "object", "propertyNames": mark, "additionalProperties": COUNT},
                "marks": map_of(
                    object_of({"letter": TEXT, "word": TEXT, "meaning": TEXT, "as_expected": {"type": "boolean"}})
                ),
                "runs": list_of(object_of(run)),
                "cells": list_of(object_of(cell)),
                "missing": list_of(TEXT),
                "conflicts": list_of(
                    object_of({"cell": TEXT, "kept": object_of(answer), "dropped": list_of(object_of(answer))})
                ),
                "unanswered": list_of(
                    object_of({"cell": TEXT, "kept": object_of(answer), "dropped": list_of(object_of(answer))})
                ),
                "warnings": list_of(TEXT),
            }
        ),
    }


def _bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


SCHEMA = 1
"""Version of ``matrix.json``."""

_CSV = [
    *("cell", *ROWS, *COLUMNS, "environment"),
    *("mark", "status", "stage", "verdict", "signal", "reason", "message", "seconds", "cached", "run", "others"),
]


def matrix_json(merged: Merged, table: pd.DataFrame, files: Mapping[str, str], warnings: Iterable[str]) -> bytes:
    """Return ``matrix.json``: axes, totals, legend, provenance and every cell."""
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
    lines = _lines(table, [f"cases/{files[case]}" for case in table["case"]])
    # One line per cell is easy to read and compare, and the indenting encoder takes ten times as long.
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
    """Return each cell as one line of JSON. Lines are built by column, because most values repeat."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    written = []
    for name, values in (*((name, _values(table[name])) for name in _CSV), ("page", pages)):
        begin = f"{encode(name)}: "
        texts = {value: begin + encode(value) for value in dict.fromkeys(values)}
        written.append([texts[value] for value in values])
    return ("{" + ", ".join(parts) + "}" for parts in zip(*written, strict=True))


def _values(column: pd.Series) -> list[Any]:
    """Return a column's values for JSON, with None for missing values."""
    there = column.notna()
    values: list[Any] = (column if there.all() else column.astype(object).where(there, None)).tolist()
    return values


def matrix_csv(table: pd.DataFrame) -> bytes:
    """Return ``matrix.csv``: one row per cell."""
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
    """Quote text that spreadsheets would run as a formula: messages are output of programs."""
    text = clean(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


# GitHub accepts 1 MiB per step and shows nothing of a longer summary.
MAX_BYTES = 900_000
LISTED = 50


def matrix_markdown(table: pd.DataFrame, *, max_bytes: int = MAX_BYTES) -> str:
    """Return totals, unexpected cells, and one table per topic.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    max_bytes : int
        Tables that would exceed this length are omitted and named.
    """
    counts = totals(table)
    bad, lacking = surprises_among(counts), grouped(counts).get("unavailable", 0)
    all_well = f"as expected but for {lacking:,} not available" if lacking else "all as expected"
    parts = [
        "# CUDA compatibility matrix\n",
        f"{len(table):,} cells, {f'**{bad:,} not as expected**' if bad else all_well}: "
        + ", ".join(f"{KINDS[key].letter} {count:,} {KINDS[key].word}" for key, count in counts.items())
        + ".\n",
        f"{_meaning(counts)}.\n",
        *_unavailable(table),
        *_unexpected(table),
        *_differing(table),
    ]
    size = sum(len(part.encode()) + 1 for part in parts)
    left_out = []
    for (topic,), part in split(table, "topic"):
        text = _topic(topic, part)
        if size + len(text.encode()) > max_bytes:
            left_out.append(escape(topic))
            continue
        size += len(text.encode()) + 1
        parts.append(text)
    if left_out:
        parts.append(f"Too long to be shown here: {', '.join(left_out)}. See matrix.html or matrix.csv.\n")
    return "\n".join(parts)


def _meaning(counts: Mapping[str, int]) -> str:
    """Return numbers of working and failing cells, independent of the expectation."""
    return ", ".join(counted_group(group, count) for group, count in grouped(counts).items())


def _unavailable(table: pd.DataFrame) -> list[str]:
    """Return a line for each unavailable part, for any number of cells."""
    lines = [
        f"- {escape(reason)} ({count:,} cell{'s' if count != 1 else ''})" for reason, count in unavailable_of(table)
    ]
    return ["Not available:\n\n" + "\n".join(lines) + "\n"] if lines else []


@cache
def escape(text: str) -> str:
    """Return text that Markdown shows literally on one line."""
    text = " ".join(clean(text).split())
    return re.sub(r"[\\`*_{}\[\]<>()#|!~&@:$=+-]", lambda match: f"&#{ord(match[0])};", text)


def _unexpected(table: pd.DataFrame) -> list[str]:
    bad = table[~table["mark"].map(lambda key: KINDS[key].as_expected)]
    if bad.empty:
        return []
    # Numba's kernels have names of 200 characters, one per signature. Equal lines fold only without them.
    bad = bad.assign(message=bad["message"].str.replace(r"\w{40,}", "…", regex=True))
    place = (*PROGRAM, *TOOLCHAIN)
    order = list(KINDS)
    # The sort is stable: the most severe kind first, and within a kind the order of the matrix.
    groups = sorted(split(bad, "mark", *PROGRAM, "message"), key=lambda item: order.index(item[0][0]))
    lines = []
    listed = table[table["case"].isin({key[1] for key, _ in groups[:LISTED]})]
    axes = {key: list(part["target"]) for key, part in split(listed, *place)}
    for (mark, *program, message), part in groups[:LISTED]:
        case, variant = program_of(dict(zip(PROGRAM, program, strict=True)))
        where = "; ".join(
            f"{escape(ToolchainColumn(key[len(PROGRAM) :]).label)}: {fold_targets(cells['target'], axes[key])}"
            for key, cells in split(part, *place)
        )
        # In <code>, GitHub does not turn a compiler's output into mentions or references.
        message_html = f" <code>{escape(message[:160])}</code>" if message else ""
        name = escape(f"{case}[{variant}]" if variant else case)
        lines.append(f"- {KINDS[mark].letter} {KINDS[mark].word}: **{name}**{message_html} ({where})")
    if len(groups) > LISTED:
        lines.append(f"- and {len(groups) - LISTED:,} more: see matrix.csv")
    return ["## Not as expected\n", "\n".join(lines) + "\n"]


def _differing(table: pd.DataFrame) -> list[str]:
    """Return the cells with another outcome in other runs."""
    found = table[table["others"] != ""] if "others" in table else table[:0]
    if found.empty:
        return []
    lines = [
        f"- **{escape(cell)}**: {KINDS[mark].word}; <code>{escape(others[:300])}</code>"
        for cell, mark, others in found[["cell", "mark", "others"]].head(LISTED).itertuples(index=False, name=None)
    ]
    if len(found) > LISTED:
        lines.append(f"- and {len(found) - LISTED:,} more: see matrix.csv")
    return ["## Other runs say otherwise\n", "\n".join(lines) + "\n"]


def _topic(topic: str, table: pd.DataFrame) -> str:
    """Return one table: a row per variant, a column per toolchain, and in each field the targets by kind."""
    found: dict[tuple[str, ...], dict[ToolchainColumn, list[tuple[str, str]]]] = {}
    across = len(PROGRAM)
    for cell in rows_of(table, [*PLACE, "mark"]):
        found.setdefault(cell[:across], {}).setdefault(ToolchainColumn(cell[across:-2]), []).append(cell[-2:])
    toolchains = sorted({item for row in found.values() for item in row}, key=toolchain_key)
    lines = [
        f"## {escape(topic)}\n",
        "| Case | " + " | ".join(f"{escape(item.tool)}<br>{escape(item.releases)}" for item in toolchains) + " |",
        "| --- |" + " --- |" * len(toolchains),
    ]
    for program, row in found.items():
        case, variant = program_of(dict(zip(PROGRAM, program, strict=True)))
        name = escape(case) + (f"<br>{escape(variant)}" if variant else "")
        lines.append(f"| {name} | {' | '.join(_cell(tuple(row.get(item, ()))) for item in toolchains)} |")
    return "\n".join(lines) + "\n"


@cache
def _cell(cells: tuple[tuple[str, str], ...]) -> str:
    axis = [target for target, _ in cells]
    return "<br>".join(
        f"{kind.letter} {fold_targets((target for target, key in cells if key == kind.key), axis)}"
        for kind in KINDS.values()
        if any(key == kind.key for _, key in cells)
    )


if __name__ == "__main__":
    write_docs(Path(__file__).parents[2] / "docs")
