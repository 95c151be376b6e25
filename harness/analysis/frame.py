"""Cells as a pandas frame: what every analysis starts from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import pandas as pd

from harness.diagnostics import one_line
from harness.matrix.axes import PLACE, ROWS, TOOLCHAIN, axis_key, place_key
from harness.matrix.marks import ENDINGS, kind_of, stopped_at_ptx
from harness.records import Merged, Record, at_stage, spell_other, weight
from harness.records.make import largest
from harness.records.record_names import RESOURCES

COLUMNS = [
    *("cell", *ROWS, "title", "features", "environment", *TOOLCHAIN, "release", "headers", "target"),
    *("mark", "outcome", "status", "stage", "verdict", "reason", "message", "diagnostics", "signal"),
    *("seconds", "cached", "registers", "shared", "spills", "kernels", "fingerprint", "run"),
]
"""Texts, but for ``signal``, ``registers``, ``shared``, ``spills`` (whole numbers or nothing), ``seconds`` and ``cached``."""

NUMBERS = {"signal": "Int64", "registers": "Int64", "shared": "Int64", "spills": "Int64",
            "seconds": "float64", "cached": "boolean"}  # fmt: skip
"""Kinds of the columns that are no texts."""

_encode = json.JSONEncoder(sort_keys=True).encode


def cells_frame(merged: Merged) -> pd.DataFrame:
    """One row a cell, planned ones that never arrived included, in the order of the matrix.

    A column ``others`` says what other runs, and other devices (`harness.records.merge.tell_devices`), told of the cell, where that is something else.
    """
    table = make_frame(merged.records, merged.missing)
    others = {
        record["cell"]: _line("; ".join(map(spell_other, record["others"])))
        for record in merged.records
        if "others" in record
    }
    return table.assign(others=table["cell"].map(others).fillna("").astype(object) if others else "")


def make_frame(records: Iterable[Record], missing: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """One row a record and a missing cell; a place (`PLACE`) is there once: of several records that of a compiler's answer counts, then the last.

    Columns in addition to those of records: ``outcome`` (`outcome_of`), ``release`` and ``headers`` of the toolkit, ``features`` as words,
    ``diagnostics`` as lines of fingerprints, the greatest ``registers``, ``shared`` and ``spills`` of any kernel, and ``kernels`` as JSON.
    """
    records, missing = list(records), list(missing)
    rows: Sequence[Mapping[str, Any]] = records
    made = _made(records)
    columns = {name: made[name] if name in made else _column(rows, name) for name in COLUMNS}
    table = pd.DataFrame(
        {name: [*columns[name], *(cell.get(name) for cell in missing)] for name in COLUMNS}, dtype=object
    )
    table.loc[len(records) :, ["mark", "outcome"]] = "missing"
    texts = [name for name in COLUMNS if name not in NUMBERS]
    table[texts] = table[texts].astype(object).where(table[texts].notna(), "")
    release = table["toolkit"].str.partition("+headers") if len(table) else None
    if release is not None:
        table["release"], table["headers"] = release[0], release[2]
    table = table.astype(NUMBERS)
    # A cell on a device and the same without one share a row: that the device was not there does not hide what was compiled.
    heavy = pd.Series([*map(weight, records), *(-1 for _ in missing)], dtype="int64").sort_values(kind="stable").index
    table = table.loc[heavy].drop_duplicates([*PLACE], keep="last")
    return ordered(table)


def ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Sort as the matrix does: numbers as numbers, backends as listed, versions by PEP 440, targets as CUDA orders them."""
    ranks = pd.DataFrame(index=table.index)
    for name in (*ROWS, "target"):
        ranks[name] = rank(table[name], axis_key(name))
    chain = pd.Series(list(rows_of(table, TOOLCHAIN)), table.index, object)
    ranks.insert(len(ROWS), "toolchain", rank(chain, lambda values: place_key(TOOLCHAIN, values)))
    return table.loc[ranks.sort_values(list(ranks.columns), kind="stable").index].reset_index(drop=True)


def rank(values: pd.Series, key: Any) -> pd.Series:
    """Place of each value among the different ones, sorted by `key`: a key is made for each different value only."""
    places = {value: place for place, value in enumerate(sorted(sorted(set(values)), key=key))}
    return values.map(places).astype("int64")


def rows_of(table: pd.DataFrame, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Each row's values of some columns; going through a column of pandas itself takes ten times as long."""
    return zip(*(table[name].tolist() for name in names), strict=True)


def answered(table: pd.DataFrame) -> pd.Series:
    """Cells that a compiler answered, as a mask."""
    outcomes = [outcome for outcome in table["outcome"].unique() if outcome.partition(" ")[0] in ENDINGS]
    return table["outcome"].isin(outcomes)


def outcome_of(record: Mapping[str, Any]) -> str:
    """The outcome as one comparable phrase.

    ``built``; ``compiled`` (PTX only, although a real architecture was requested); ``rejected at link`` and the like for
    everything that stopped at a stage; the bare status for what no compiler was asked.
    """
    status, stage = record["status"], record["stage"]
    if status == "built":
        return "compiled" if stopped_at_ptx(record) else "built"
    if status in ENDINGS:
        return at_stage(status, stage)
    return str(status)


def kernels_frame(table: pd.DataFrame) -> pd.DataFrame:
    """One row a kernel of a built cell: cell, its axes, ``name`` and each resource."""
    part = table.loc[table["kernels"].str.len() > 2, [*PLACE, "cell", "topic", "run", "kernels"]]
    lists = part["kernels"].map(json.loads)
    long = part.drop(columns="kernels").assign(kernel=lists).explode("kernel", ignore_index=True)
    return pd.concat([long.drop(columns="kernel"), pd.DataFrame(list(long["kernel"]), index=long.index)], axis=1)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]


def _made(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Columns that records do not have as they are; a column at a time, because it is several times faster than a row at a time."""
    lists: list[Sequence[Mapping[str, Any]]] = [
        record["artifact"]["kernels"] if record["artifact"] else () for record in records
    ]
    diagnostics = [record["diagnostics"] for record in records]
    made: dict[str, list[Any]] = {
        "mark": [kind_of(record).key for record in records],
        "features": [" ".join(record["features"]) for record in records],
        "message": [_line(items[0]["message"]) if items else "" for items in diagnostics],
        "diagnostics": [
            "\n".join(dict.fromkeys([item.get("fingerprint") or "" for item in items])) for items in diagnostics
        ],
        "kernels": [_encode(kernels) if kernels else "" for kernels in lists],
    }
    made["outcome"] = [
        mark if mark == "built" else outcome_of(record) for mark, record in zip(made["mark"], records, strict=True)
    ]
    for name, key in RESOURCES.items():
        made[name] = [largest(kernels, key) for kernels in lists]
    return made


@lru_cache(maxsize=4096)
def _line(message: str) -> str:
    return one_line(message)
