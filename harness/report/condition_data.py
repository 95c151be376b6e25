"""The names that conditions may use on the page, and their values: the same facts as ``--where`` has (`harness.records.record_names`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from harness.matrix.axes import AXIS, COLUMNS, TOOLCHAIN
from harness.model.condition import NAMES, VALUES, Version, Words
from harness.model.condition_names import RESULT_VALUES, RESULTS
from harness.records.record_names import facts_of, known_values

_KINDS: Mapping[type, str] = {str: "text", Words: "words", bool: "flag", float: "number", Version: "version"}
_OF_COLUMNS = ("backend", "library", "wheels", "toolkit", "headers", "target", "suffix", "virtual", "cc")
_OF_CELLS = tuple(name for name in NAMES if name not in _OF_COLUMNS)
_FILTERS = ("status", "verdict", "stage", "environment", *(axis.key for axis in AXIS.values() if axis.filter))


def names_data(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """The names, but for those that the page does not hold; each with its kind, and its values where these are all."""
    values = {**VALUES, **RESULT_VALUES, **known_values(table[["backend", "target"]].to_dict("records"))}
    # The same as the toolkit where no cell takes the headers of another release.
    filters = {*_FILTERS, *(["headers"] if table["headers"].any() else [])}
    return {
        name: {
            "kind": _KINDS[kind],
            "about": AXIS[name].about if name in AXIS else "",
            "filter": name in filters,
            **({"values": list(values[name])} if name in values else {}),
        }
        for name, kind in {**dict.fromkeys((*AXIS, *_FILTERS), str), **RESULTS}.items()  # filters in order
        if name != "cell"
    }


def column_facts(columns: Sequence[tuple[str, ...]]) -> dict[str, list[Any]]:
    """By name the value that each column has."""
    found = [facts_of(dict(zip(COLUMNS, column, strict=True))) for column in columns]
    return {name: [_plain(facts[name]) for facts in found] for name in _OF_COLUMNS}


def cell_facts(table: pd.DataFrame, known: Mapping[str, Mapping[str, Any]]) -> tuple[list[int], dict[str, list[Any]]]:
    """The facts of environments: for each cell a number, and by name the value that each number has.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.cells_frame`.
    known : Mapping
        Records and planned cells by their id; of a cell that is not there its row counts.
    """
    read: dict[tuple[Any, ...], int] = {}
    facts: dict[tuple[Any, ...], int] = {}
    numbers = []
    for row in table[["cell", *TOOLCHAIN, "target"]].to_dict("records"):
        cell = known.get(row["cell"], row)
        requested = (cell.get("toolchain") or {}).get("requested") or {}
        what = (requested.get("packages"), requested.get("host_compiler"), cell.get("device"), " on " in row["cell"])
        key = (*(row[name] for name in TOOLCHAIN), repr(what))
        if key not in read:
            found = facts_of({**cell, **row})
            read[key] = facts.setdefault(tuple(_plain(found.get(name)) for name in _OF_CELLS), len(facts))
        numbers.append(read[key])
    columns = zip(_OF_CELLS, zip(*facts, strict=True), strict=False)
    return numbers, {name: list(values) for name, values in columns if any(value is not None for value in values)}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Version) else value
