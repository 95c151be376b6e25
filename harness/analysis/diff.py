"""Changes between two sets of cells, and the regressions among them.

Only `is_regression` defines a regression.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from harness.analysis.frame import ordered
from harness.matrix.axes import COLUMNS, PLACE, ROWS, cell_link
from harness.matrix.marks import ENDINGS, KINDS

CHANGE_KINDS = ("regression", "fix", "changed", "lost", "found", "diagnostics", "resources", "appeared", "vanished")
"""Kinds of change. The first kind that applies counts."""

MEANINGS: Mapping[str, str] = {
    "regression": "is not as expected now; before, it was as expected or failed less severely",
    "fix": "was not as expected or a known failure before, and passes or is built now",
    "changed": "has another outcome, as expected both times or neither time",
    "lost": "has no result any more: unavailable, a harness error, or missing",
    "found": "has a result, and had none before",
    "diagnostics": "has the same outcome, with other diagnostics",
    "resources": "built both times, with other registers, shared memory or spills",
    "appeared": "is only in the new set",
    "vanished": "is only in the old set",
}

RESOURCES = {"registers": "num_regs", "shared memory": "shared_bytes", "spills": "spill_bytes", "local memory": "local_bytes",
             "stack": "stack_bytes"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class State:
    """A cell in one of the sets."""

    cell: str
    outcome: str
    verdict: str
    mark: str
    message: str
    run: str


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """One resource of one kernel. A value is None if it is unknown."""

    kernel: str
    resource: str
    old: int | None
    new: int | None


@dataclass(frozen=True, kw_only=True)
class Change:
    """The change of a cell.

    Parameters
    ----------
    kind : str
        One of `CHANGE_KINDS`.
    cell : str
        The id in the new set, or in the old set if the cell vanished.
    place : Mapping
        The cell's value on each axis, and its environment.
    old, new : State or None
        The cell in each set, or None if the set lacks the cell.
    diagnostics : tuple of str
        Fingerprints that the old set lacks.
    resources : tuple of ResourceChange
        Changed resources, if both cells are built.
    """

    kind: str
    cell: str
    place: Mapping[str, str]
    old: State | None
    new: State | None
    diagnostics: tuple[str, ...] = ()
    resources: tuple[ResourceChange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return every field as plain JSON. The items of `place` are on the same level as the other fields."""
        whole = asdict(self)
        place = whole.pop("place")
        return {"kind": whole.pop("kind"), "cell": whole.pop("cell"), **place, **whole}


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All changes, by kind and then in the order of the matrix. Unchanged cells are only counted."""

    items: tuple[Change, ...]
    same: int

    @property
    def counts(self) -> dict[str, int]:
        """Number of changes by kind, in the order of `CHANGE_KINDS`, without zeros."""
        found = Counter(item.kind for item in self.items)
        return {kind: found[kind] for kind in CHANGE_KINDS if kind in found}

    def of(self, kind: str) -> tuple[Change, ...]:
        """Return the changes of one kind."""
        return tuple(item for item in self.items if item.kind == kind)

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The regressions. ``cumatrix diff`` exits with code 1 if there are any."""
        return self.of("regression")


def is_regression(old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    """Return whether a cell regressed.

    A cell regressed if it is not as expected in the new set (``fail``), and was as expected or less severe in the old
    set. The order of severity is: built, compiled only, rejected, timed out, crashed. An old failure is a regression
    only if it turned into a crash or a hang. A refusal that the case expects meanwhile and a cell without a result are
    not regressions.

    Parameters
    ----------
    old, new : Mapping
        With ``outcome`` (`harness.analysis.frame.outcome_of`) and ``verdict``.
    """
    if not (_known(old) and _known(new)) or new["verdict"] != "fail":
        return False
    return old["verdict"] != "fail" or _gravity(new) > _gravity(old)


def changes(old: pd.DataFrame, new: pd.DataFrame, *, across: Collection[str] = ()) -> Changes:
    """Compare two sets of cells.

    Parameters
    ----------
    old, new : DataFrame
        The cells of each set (`harness.analysis.frame.cells_frame`).
    across : collection of str
        Axes to ignore in the comparison: ``library``, ``toolkit`` and ``backend``. With ``library``, a cell of CuPy 13
        is compared with the same cell of CuPy 14. If several cells are then equal, the last one in the order of the
        matrix counts.
    """
    key = [name for name in PLACE if name not in across]
    left, right = (ordered(table).drop_duplicates(key, keep="last") for table in (old, new))
    both = left.merge(right, on=key, how="outer", suffixes=("_old", "_new"), indicator=True)
    met = both["_merge"] == "both"
    compared = ["outcome", "verdict", "diagnostics", "kernels"]
    differs = pd.concat([both[f"{name}_old"] != both[f"{name}_new"] for name in compared], axis=1).any(axis=1) | ~met
    names = [name for name in left.columns if name in right.columns]  # exported cells lack the other columns
    items = [_change(_side(row, key, names, "old"), _side(row, key, names, "new"), row["_merge"])
             for row in both[differs].to_dict("records")]  # fmt: skip
    found = [item for item in items if item is not None]
    places = {cell: place for place, cell in enumerate(_in_order(left, right))}
    found.sort(key=lambda item: (CHANGE_KINDS.index(item.kind), places[item.cell]))
    return Changes(items=tuple(found), same=int(met.sum()) - sum(1 for item in found if item.old and item.new))


def _in_order(old: pd.DataFrame, new: pd.DataFrame) -> Iterable[str]:
    cells: Iterable[str] = ordered(pd.concat([old, new], ignore_index=True))["cell"].drop_duplicates(keep="last")
    return cells


def _side(row: Mapping[str, Any], key: Sequence[str], names: Sequence[str], side: str) -> dict[str, Any]:
    return {name: row[name] if name in key else row[f"{name}_{side}"] for name in names}


def _change(old: dict[str, Any], new: dict[str, Any], met: str) -> Change | None:
    shown = old if met == "left_only" else new
    fields = {"cell": shown["cell"], "place": {name: shown[name] for name in (*ROWS, *COLUMNS, "environment")}}
    if met != "both":
        kind = "vanished" if met == "left_only" else "appeared"
        return Change(
            kind=kind,
            old=_state(old) if met == "left_only" else None,
            new=_state(new) if met == "right_only" else None,
            **fields,
        )
    before = set(old["diagnostics"].splitlines())
    messages = tuple(item for item in new["diagnostics"].splitlines() if item not in before)
    resources = tuple(_resources(old["kernels"], new["kernels"]))
    kind = _kind(old, new, bool(messages) or before != set(new["diagnostics"].splitlines()), bool(resources))
    if not kind:
        return None
    return Change(kind=kind, old=_state(old), new=_state(new), diagnostics=messages, resources=resources, **fields)


def _kind(old: Mapping[str, Any], new: Mapping[str, Any], messages: bool, resources: bool) -> str:
    if is_regression(old, new):
        return "regression"
    if _known(old) and _known(new) and old["verdict"] in ("fail", "xfail") and new["verdict"] in ("pass", "xpass"):
        return "fix"
    if _silent(old) != _silent(new):
        return "lost" if _silent(new) else "found"
    if old["outcome"] != new["outcome"] or old["verdict"] != new["verdict"]:
        return "changed"
    return "diagnostics" if messages else "resources" if resources else ""


def _known(state: Mapping[str, Any]) -> bool:
    return state["outcome"].partition(" ")[0] in ENDINGS


def _silent(state: Mapping[str, Any]) -> bool:
    return state["outcome"] in ("missing", "unavailable", "harness_error")


def _gravity(state: Mapping[str, Any]) -> int:
    return list(ENDINGS).index(state["outcome"].partition(" ")[0])


def _state(row: Mapping[str, Any]) -> State:
    return State(**{name: row[name] for name in ("cell", "outcome", "verdict", "mark", "message", "run")})


def _resources(old: str, new: str) -> Iterable[ResourceChange]:
    if old == new or not old or not new:
        return
    before, after = ({kernel["name"]: kernel for kernel in json.loads(text)} for text in (old, new))
    for name in sorted(before.keys() | after.keys()):
        for resource, key in RESOURCES.items():
            # A kernel that only one set has, for instance after a changed signature, is listed with its resources.
            values = before.get(name, {}).get(key), after.get(name, {}).get(key)
            if values[0] != values[1]:
                yield ResourceChange(kernel=name, resource=resource, old=values[0], new=values[1])


@dataclass(frozen=True, kw_only=True)
class Unexpected:
    """A cell that is not as expected.

    Parameters
    ----------
    cell, environment, outcome, verdict, message : str
        As in the cell.
    mark : str
        Key of its kind (`harness.matrix.marks.KINDS`).
    page : str
        Its address within a report.
    before : str or None
        The outcome in the earlier set, or None if that set lacks the cell.
    new : bool
        Whether the cell is news. It is if the earlier set lacks the cell, if the cell was as expected there, if it had
        not failed there and fails in this set, or if it fails more severely than before.
    """

    cell: str
    environment: str
    outcome: str
    verdict: str
    message: str
    mark: str
    page: str
    before: str | None
    new: bool

    def to_json(self) -> dict[str, Any]:
        """Return every field as plain JSON."""
        return asdict(self)


def unexpected(old: pd.DataFrame, new: pd.DataFrame, *, across: Collection[str] = ()) -> tuple[Unexpected, ...]:
    """Return the cells of a set that are not as expected, in the order of the matrix."""
    key = [name for name in PLACE if name not in across]
    known = {tuple(row[name] for name in key): row for row in ordered(old).to_dict("records")}
    rows = [row for row in ordered(new).to_dict("records") if not KINDS[row["mark"]].as_expected]
    return tuple(_unexpected(row, known.get(tuple(row[name] for name in key))) for row in rows)


def _unexpected(row: Mapping[str, Any], before: Mapping[str, Any] | None) -> Unexpected:
    return Unexpected(
        **{name: row[name] for name in ("cell", "environment", "outcome", "verdict", "mark")},
        message=row["message"] or row["reason"],
        page=cell_link(row),
        before=None if before is None else before["outcome"],
        new=before is None or _news(before, row),
    )


def _news(before: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    failed = row["verdict"] == "fail" and before["verdict"] != "fail"
    return KINDS[before["mark"]].as_expected or failed or is_regression(before, row)
