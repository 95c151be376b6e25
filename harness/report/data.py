"""The matrix as the page's own script reads it: every name once, every cell a number or two.

Files are scripts that hand over one text of JSON: a page that was opened from disk may load scripts and nothing else, and a text that
goes through JSON.parse cannot be mistaken for code. docs/page.md tells of the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.analysis.frame import rows_of
from harness.matrix.axes import AXES, COLUMNS, PLACE, PROGRAM
from harness.matrix.kinds import KINDS, Mark
from harness.matrix.order import axis_key, column_key, natural_key
from harness.matrix.parameters import parameters, parameters_of
from harness.model import Stage, Status, Verdict
from harness.report.text import clean
from harness.report.trackers import trackers

NUMBERS = ("seconds", "registers", "shared", "spills")

_OUTCOME = ("mark", "status", "stage", "verdict", "environment", "run")
_WORDS: Mapping[str, Sequence[str]] = {
    "mark": tuple(KINDS),
    "status": ("", *Status),
    "stage": ("", *Stage),
    "verdict": ("", *Verdict),
}


def script(name: str, text: str) -> bytes:
    """A script that hands over JSON under `name`."""
    # What ends a string of JavaScript, and what ends lines in it.
    for bad, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(bad, escaped)
    return f"cumatrix.receive({json.dumps(name)},'{text}');\n".encode("utf-8", "replace")


def compact(value: Any) -> str:
    """JSON without a space too many."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def matrix_data(table: pd.DataFrame, about: Mapping[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """Axes, and of every cell what a first look and most filters need.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.cells_frame`.
    about : Mapping
        By case, its first record, for what the table does not have.
    files : Mapping[str, str]
        Page of each case.
    """
    columns = sorted(set(rows_of(table, COLUMNS)), key=lambda key: column_key(*key))
    names: dict[str, list[str]] = {
        **{axis.key: sorted(table[axis.key].unique(), key=axis_key(axis.key)) for axis in AXES},
        "case": list(table["case"].unique()),  # topic by topic, as the rows are
        **{key: list(_WORDS.get(key, ())) or sorted(table[key].unique(), key=natural_key) for key in _OUTCOME},
    }
    place = {key: {name: number for number, name in enumerate(values)} for key, values in names.items()}

    across, ends = len(PROGRAM), len(PLACE)
    at = {column: number for number, column in enumerate(columns)}
    outcomes: dict[tuple[str, ...], int] = {}
    rows: list[tuple[str, ...]] = []
    patterns: list[list[int]] = []
    cells = []
    for values in rows_of(table, [*PLACE, *_OUTCOME]):
        row, column, outcome = values[:across], values[across:ends], values[ends:]
        if not rows or rows[-1] != row:
            rows.append(row)
            patterns.append([])
        patterns[-1].append(at[column])
        cells.append(outcomes.setdefault(outcome, len(outcomes)))
    kinds: dict[tuple[int, ...], int] = {}
    shapes = [kinds.setdefault(tuple(pattern), len(kinds)) for pattern in patterns]

    first = table.drop_duplicates("case").set_index("case")
    return {
        "schema": 1,
        "axes": [axis.to_json() for axis in AXES],
        "marks": [_shown(kind) for kind in KINDS.values()],
        "names": {key: [clean(name) for name in values] for key, values in names.items()},
        **_parameters(names["variant"]),
        "trackers": trackers(),
        "cases": [
            {
                "page": files[case],
                "topic": place["topic"][first.at[case, "topic"]],
                "title": clean(first.at[case, "title"]),
                "features": [clean(item) for item in about.get(case, {}).get("features", ())],
                "links": [clean(item) for item in about.get(case, {}).get("links", ())],
            }
            for case in names["case"]
        ],
        "rows": {
            **{key: [place[key][row[number]] for row in rows] for number, key in enumerate(PROGRAM)},
            "pattern": shapes,
        },
        "columns": {
            key: [place[key][column[number]] for column in columns] for number, key in enumerate(COLUMNS)
        },
        "patterns": [list(kind) for kind in kinds],
        "outcomes": {
            key: [place[key][outcome[number]] for outcome in outcomes] for number, key in enumerate(_OUTCOME)
        },
        "cells": cells,
    }  # fmt: skip


def _parameters(variants: Sequence[str]) -> dict[str, Any]:
    """Parameters of variants with their values, and by each one's name the number of the value that each variant has, from 1; 0 for none."""
    found = parameters(variants)
    return {
        "parameters": [{**item.to_json(), "values": list(item.values)} for item in found],
        "variants": {
            item.key: [
                item.values.index(own[item.key]) + 1 if item.key in own else 0 for own in map(parameters_of, variants)
            ]
            for item in found
        },
    }


def _shown(kind: Mark) -> dict[str, Any]:
    """A kind of cell as the page needs it."""
    return {**{name: getattr(kind, name) for name in ("key", "letter", "word", "meaning")}, "good": kind.as_expected}


def more_data(table: pd.DataFrame) -> dict[str, Any]:
    """Search data for messages and numbers, by cell: loaded after the first view."""
    texts: dict[str, int] = {"": 0}
    said = zip(table["message"], table["reason"], strict=True)
    message = [texts.setdefault((words or why)[:300], len(texts)) for words, why in said]
    numbers = {name: table[name].round(2).astype(object).where(table[name].notna(), None).tolist() for name in NUMBERS}
    return {"texts": [clean(text) for text in texts], "message": message, "numbers": numbers}
