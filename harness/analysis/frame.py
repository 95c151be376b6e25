"""Cells as a pandas frame, the input of every analysis, with untried axis values and planned cells without a result."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

import pandas as pd

from harness.backends import BACKENDS
from harness.diagnostics import one_line
from harness.matrix.axes import PLACE, ROWS, TOOLCHAIN, axis_key, place_key, target_key, version_key
from harness.matrix.marks import ENDINGS, kind_of, stopped_at_ptx
from harness.model import KNOWN_TARGETS
from harness.model.cell import cuda_of
from harness.records import Merged, Record, at_stage, spell_other_result, weight
from harness.records.make import largest
from harness.records.record_names import RESOURCES
from harness.toolkits import RELEASES

COLUMNS = [
    *("cell", *ROWS, "title", "features", "environment", *TOOLCHAIN, "release", "headers", "target"),
    *("mark", "outcome", "status", "stage", "verdict", "reason", "message", "diagnostics", "signal"),
    *("seconds", "cached", "registers", "shared", "spills", "kernels", "fingerprint", "run"),
]
"""Texts, except ``signal``, ``registers``, ``shared`` and ``spills`` (nullable integers), ``seconds`` and ``cached``."""

NUMBERS = {"signal": "Int64", "registers": "Int64", "shared": "Int64", "spills": "Int64",
            "seconds": "float64", "cached": "boolean"}  # fmt: skip
"""Types of the columns that are not texts."""

_encode = json.JSONEncoder(sort_keys=True).encode


def cells_frame(merged: Merged) -> pd.DataFrame:
    """Return a frame with a row per cell in the order of the matrix, including planned cells without a record.

    The column ``others`` contains different results of the cell from other runs and other devices
    (`harness.records.merge.tell_devices`).
    """
    table = make_frame(merged.records, merged.missing)
    others = {
        record["cell"]: _line("; ".join(map(spell_other_result, record["others"])))
        for record in merged.records
        if "others" in record
    }
    return table.assign(others=table["cell"].map(others).fillna("").astype(object) if others else "")


def make_frame(records: Iterable[Record], missing: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """Return a frame with a row per record and per missing cell, and one row per place (`PLACE`).

    If several records have one place, a record with a compiler's answer wins, then the last record.

    Columns in addition to those of records: ``outcome`` (`outcome_of`), ``release`` (`cuda_of`) and ``headers`` of the
    toolkit, ``features`` as words, ``diagnostics`` as lines of fingerprints, the greatest ``registers``, ``shared`` and
    ``spills`` of any kernel, and ``kernels`` as JSON.
    """
    records, missing = list(records), list(missing)
    rows: Sequence[Mapping[str, Any]] = records
    made = _made(records)
    columns = {name: made[name] if name in made else column_of(rows, name) for name in COLUMNS}
    table = pd.DataFrame(
        {name: [*columns[name], *(cell.get(name) for cell in missing)] for name in COLUMNS}, dtype=object
    )
    table.loc[len(records) :, ["mark", "outcome"]] = "missing"
    texts = [name for name in COLUMNS if name not in NUMBERS]
    table[texts] = table[texts].astype(object).where(table[texts].notna(), "")
    release = table["toolkit"].str.partition("+headers") if len(table) else None
    if release is not None:
        table["release"], table["headers"] = release[0].map(cuda_of), release[2]
    table = table.astype(NUMBERS)
    # A cell on a device and the same cell without one share a row: a missing device does not hide a compile result.
    heavy = pd.Series([*map(weight, records), *(-1 for _ in missing)], dtype="int64").sort_values(kind="stable").index
    table = table.loc[heavy].drop_duplicates([*PLACE], keep="last")
    return ordered(table)


def ordered(table: pd.DataFrame) -> pd.DataFrame:
    """Sort in the order of the matrix: numbers as numbers, backends as listed, versions by PEP 440, targets as CUDA orders them."""
    ranks = pd.DataFrame(index=table.index)
    for name in (*ROWS, "target"):
        ranks[name] = rank(table[name], axis_key(name))
    chain = pd.Series(list(rows_of(table, TOOLCHAIN)), table.index, object)
    ranks.insert(len(ROWS), "toolchain", rank(chain, lambda values: place_key(TOOLCHAIN, values)))
    return table.loc[ranks.sort_values(list(ranks.columns), kind="stable").index].reset_index(drop=True)


def rank(values: pd.Series, key: Any) -> pd.Series:
    """Return the position of each value among the distinct ones, sorted by `key`.

    `key` runs once per distinct value.
    """
    places = {value: place for place, value in enumerate(sorted(sorted(set(values)), key=key))}
    return values.map(places).astype("int64")


def rows_of(table: pd.DataFrame, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Yield each row's values of some columns. Iterating over a pandas column itself takes ten times as long."""
    return zip(*(table[name].tolist() for name in names), strict=True)


def answered(table: pd.DataFrame) -> pd.Series:
    """Return a mask of the cells with a compiler's answer."""
    outcomes = [outcome for outcome in table["outcome"].unique() if outcome.partition(" ")[0] in ENDINGS]
    return table["outcome"].isin(outcomes)


def outcome_of(record: Mapping[str, Any]) -> str:
    """Return the outcome as one comparable phrase.

    ``built``; ``compiled`` (PTX only, although a real architecture was requested); ``rejected at link`` and similar
    phrases for cells that stopped at a stage; the bare status for cells that no compiler tried.
    """
    status, stage = record["status"], record["stage"]
    if status == "built":
        return "compiled" if stopped_at_ptx(record) else "built"
    if status in ENDINGS:
        return at_stage(status, stage)
    return str(status)


def kernels_frame(table: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with a row per kernel of a built cell: cell, its axes, ``name`` and each resource."""
    part = table.loc[table["kernels"].str.len() > 2, [*PLACE, "cell", "topic", "run", "kernels"]]
    lists = part["kernels"].map(json.loads)
    long = part.drop(columns="kernels").assign(kernel=lists).explode("kernel", ignore_index=True)
    return pd.concat([long.drop(columns="kernel"), pd.DataFrame(list(long["kernel"]), index=long.index)], axis=1)


def column_of(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Return one value per row, or None if a row lacks the key."""
    try:
        return list(map(itemgetter(name), rows))
    except KeyError:
        return [row.get(name) for row in rows]


def _made(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the columns that records lack in this form.

    Building columns is several times faster than building rows.
    """
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


AXES = ("backend", "toolkit", "target", "library", "feature")


@dataclass(frozen=True, kw_only=True)
class Value:
    """One value of an axis.

    Parameters
    ----------
    axis : str
        One of `AXES`. A library's value includes its backend: ``numba 0.59.1``.
    value : str
        Its name.
    planned, arrived, answered, built : int
        Numbers of cells: planned; with a record; with a compiler's answer; built.
    cases : int
        Cases with at least one answered cell.
    why : str
        ``never planned``, ``never arrived``, ``unsupported wherever tried``, ``unavailable wherever tried``; empty if a
        compiler answered any cell.
    """

    axis: str
    value: str
    planned: int = 0
    arrived: int = 0
    answered: int = 0
    built: int = 0
    cases: int = 0
    why: str = "never planned"

    @property
    def exercised(self) -> bool:
        """Return whether a compiler answered at least one cell."""
        return self.answered > 0


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Every known value of every axis, and the gaps.

    Parameters
    ----------
    values : Mapping of str to tuple of Value
        The values by axis, in order.
    missing : tuple of str
        Ids of planned cells without a record.
    pairs : tuple of (str, str)
        Exercised backends and toolkits that were never exercised together.
    """

    values: Mapping[str, tuple[Value, ...]]
    missing: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]

    @property
    def holes(self) -> dict[str, tuple[Value, ...]]:
        """Values that no case exercises, by axis."""
        return {axis: tuple(item for item in values if not item.exercised) for axis, values in self.values.items()}


def coverage(table: pd.DataFrame, features: Collection[str] = ()) -> Coverage:
    """Return the share of the known values that the cells cover.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.frame.cells_frame`).
    features : collection of str
        Features of the whole library of cases. The features of the cells always count.
    """
    lean = table[["case", "backend", "release", "target", "library", "outcome", "features", "cell"]]
    missing = lean["outcome"] == "missing"
    facts = lean.assign(
        arrived=~missing,
        answered=answered(lean),
        built=lean["outcome"] == "built",
        toolkit=lean["release"],
        library=(lean["backend"] + " " + lean["library"]).where(lean["library"] != "", ""),
    )
    known = {
        "backend": list(BACKENDS),
        "toolkit": list(RELEASES),
        "target": [str(target) for target in KNOWN_TARGETS],
        "library": [],
        "feature": sorted(features),
    }
    by_feature = facts.assign(feature=facts["features"].str.split()).explode("feature") if len(facts) else facts
    values = {axis: _values(by_feature if axis == "feature" else facts, axis, known[axis]) for axis in AXES}
    together = set(facts.loc[facts["answered"], ["backend", "toolkit"]].itertuples(index=False, name=None))
    return Coverage(
        values=values,
        missing=tuple(lean.loc[missing, "cell"]),
        pairs=tuple(
            (backend.value, toolkit.value)
            for backend in values["backend"]
            for toolkit in values["toolkit"]
            if backend.exercised and toolkit.exercised and (backend.value, toolkit.value) not in together
        ),
    )


def _values(facts: pd.DataFrame, axis: str, known: list[str]) -> tuple[Value, ...]:
    found: dict[str, Value] = {}
    if axis in facts:
        numbers = facts.groupby(axis, sort=False)[["arrived", "answered", "built"]].agg(["size", "sum"])
        cases = facts[facts["answered"]].groupby(axis)["case"].nunique()
        for name, planned, arrived, _, answered, _, built in numbers.itertuples(name=None):
            if name:
                why = "" if answered else "never arrived" if not arrived else _silence(facts.loc[facts[axis] == name, "outcome"])  # fmt: skip
                found[str(name)] = Value(
                    axis=axis, value=str(name), planned=int(planned), arrived=int(arrived), answered=int(answered),
                    built=int(built), cases=int(cases.get(name, 0)), why=why,
                )  # fmt: skip
    extra = sorted(set(found) - set(known), key=_KEYS.get(axis, str))
    names = sorted({*known, *extra}, key=_KEYS[axis]) if axis in ("toolkit", "target") else [*known, *extra]
    return tuple(found.get(name) or Value(axis=axis, value=name) for name in names)


def _library_key(name: str) -> tuple[object, ...]:
    backend, _, version = name.partition(" ")
    return (list(BACKENDS).index(backend) if backend in BACKENDS else len(BACKENDS), backend, version_key(version))


_KEYS: Mapping[str, Callable[[str], Any]] = {"toolkit": version_key, "target": target_key, "library": _library_key}


def _silence(outcomes: pd.Series) -> str:
    return "unsupported wherever tried" if "unsupported" in set(outcomes) else "unavailable wherever tried"
