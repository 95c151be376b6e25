"""Untried axis values, and planned cells that never arrived."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.frame import answered
from harness.backends import BACKENDS
from harness.matrix.axes import target_key, version_key
from harness.model import KNOWN_TARGETS
from harness.toolkits import RELEASES

AXES = ("backend", "toolkit", "target", "library", "feature")


@dataclass(frozen=True, kw_only=True)
class Value:
    """One value of an axis.

    Parameters
    ----------
    axis : str
        One of `AXES`; a library is spelled with its backend: ``numba 0.59.1``.
    value : str
        Its name.
    planned, arrived, answered, built : int
        Numbers of cells: planned; with a record; answered by a compiler; built.
    cases : int
        Cases with at least one answered cell.
    why : str
        ``never planned``, ``never arrived``, ``unsupported wherever tried``, ``unavailable wherever tried``; empty where something was answered.
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
    """Every known value of every axis, and what is missing.

    Parameters
    ----------
    values : Mapping of str to tuple of Value
        By axis, in order.
    missing : tuple of str
        Ids of planned cells that never arrived.
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
    """The share of the known values that the cells cover.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.frame.cells_frame`.
    features : collection of str
        Features of the whole library of cases; those of the cells are always counted.
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
        for name, part in facts.groupby(axis, sort=False):
            if name:
                found[str(name)] = _value(axis, str(name), part)
    extra = sorted(set(found) - set(known), key=_KEYS.get(axis, str))
    names = sorted({*known, *extra}, key=_KEYS[axis]) if axis in ("toolkit", "target") else [*known, *extra]
    return tuple(found.get(name) or Value(axis=axis, value=name) for name in names)


def _library_key(name: str) -> tuple[object, ...]:
    backend, _, version = name.partition(" ")
    return (list(BACKENDS).index(backend) if backend in BACKENDS else len(BACKENDS), backend, version_key(version))


_KEYS: Mapping[str, Callable[[str], Any]] = {"toolkit": version_key, "target": target_key, "library": _library_key}


def _value(axis: str, name: str, part: pd.DataFrame) -> Value:
    arrived, answered, built = (int(part[key].sum()) for key in ("arrived", "answered", "built"))
    why = ""
    if not answered:
        outcomes = set(part["outcome"])
        why = (
            "never arrived"
            if not arrived
            else "unsupported wherever tried"
            if "unsupported" in outcomes
            else "unavailable wherever tried"
        )
    return Value(
        axis=axis, value=name, planned=len(part), arrived=arrived, answered=answered, built=built,
        cases=int(part.loc[part["answered"], "case"].nunique()), why=why,
    )  # fmt: skip
