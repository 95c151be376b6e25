"""Trends of a history: when a cell broke, which cells are flaky, how environments develop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis.frame import answered
from harness.analysis.history import History
from harness.matrix.kinds import KINDS

_GOOD = frozenset(key for key, kind in KINDS.items() if kind.as_expected)


@dataclass(frozen=True, kw_only=True)
class Event:
    """One cell in one run; `changed` says whether it differs from the run before that had the cell."""

    run: str
    started: str
    commit: str
    mark: str
    outcome: str
    verdict: str
    message: str
    cached: bool | None
    seconds: float | None
    registers: int | None
    changed: bool


@dataclass(frozen=True, kw_only=True)
class Break:
    """A cell that is not as expected in the last run that tells of it.

    Parameters
    ----------
    cell : str
        Its id.
    last_good : str or None
        The last run in which the cell was as expected, or None.
    first_bad : str
        The first run after that in which it was not.
    since : str
        When that one started.
    runs : int
        Runs since then that tell of it.
    mark : str
        Key of its kind now.
    """

    cell: str
    last_good: str | None
    first_bad: str
    since: str
    runs: int
    mark: str


@dataclass(frozen=True, kw_only=True)
class Unsteady:
    """A cell whose outcome does not stay.

    Parameters
    ----------
    cell : str
        Its id.
    flaky : bool
        Whether the same content key (program, options, toolkit, library) came out differently: then nothing but chance or the machine differs.
    outcomes : tuple of str
        Outcomes, in the order in which they first occurred.
    switches : int
        How often it changed from one run to the next.
    """

    cell: str
    flaky: bool
    outcomes: tuple[str, ...]
    switches: int


def cell_history(history: History, cell: str) -> tuple[Event, ...]:
    """Every run that has the cell, oldest first."""
    table = history.table[history.table["cell"] == cell]
    facts = table["outcome"] + "\n" + table["verdict"] + "\n" + table["diagnostics"]
    rows = table.assign(changed=(facts != facts.shift()) & (table["cell"] == table["cell"].shift()))
    names = list(Event.__dataclass_fields__)
    plain = rows[names].astype(object).where(rows[names].notna(), None)
    return tuple(Event(**row) for row in plain.to_dict("records"))


def breaks(history: History) -> tuple[Break, ...]:
    """Cells that are not as expected now, those that broke last first."""
    table = _telling(history)
    bad = ~table["mark"].isin(_GOOD)
    last = bad.groupby(table["cell"]).transform("last")
    part = table[last].assign(bad=bad[last])
    if part.empty:
        return ()
    # The run of failures that goes on until now: everything after the last good one.
    after = (~part["bad"])[::-1].groupby(part["cell"][::-1]).cumsum()[::-1] == 0
    good = part[~part["bad"]].groupby("cell")["run"].last()
    since = part[after].groupby("cell").agg(
        first_bad=("run", "first"), since=("started", "first"), runs=("run", "size"), mark=("mark", "last")
    )  # fmt: skip
    places = {run: place for place, run in enumerate(history.runs)}
    found = [
        Break(
            cell=str(row.Index),
            last_good=good.get(row.Index),
            first_bad=row.first_bad,
            since=row.since,
            runs=int(row.runs),
            mark=row.mark,
        )
        for row in since.itertuples()
    ]
    return tuple(sorted(found, key=lambda item: (-places[item.first_bad], item.cell)))


def unsteady(history: History, *, switches: int = 2) -> tuple[Unsteady, ...]:
    """Flaky cells first, then those that changed at least `switches` times."""
    table = _telling(history)
    same = table[table["fingerprint"] != ""]
    kinds = same.groupby(["cell", "fingerprint"], sort=False)["outcome"].nunique()
    flaky = set(kinds[kinds > 1].index.get_level_values("cell"))
    changed = (table["outcome"] != table.groupby("cell")["outcome"].shift()) & table["cell"].duplicated()
    count = changed.groupby(table["cell"]).sum()
    names = sorted(flaky | set(count[count >= switches].index))
    part = table[table["cell"].isin(names)]
    outcomes = part.groupby("cell")["outcome"].unique() if names else {}
    found = [
        Unsteady(cell=cell, flaky=cell in flaky, outcomes=tuple(outcomes[cell]), switches=int(count[cell]))
        for cell in names
    ]
    return tuple(sorted(found, key=lambda item: (not item.flaky, -item.switches, item.cell)))


def trend(history: History) -> pd.DataFrame:
    """One row an environment and run: ``cells``, ``good``, ``bad``, ``built``, ``missing``, and the median and the sum of ``seconds``."""
    table = history.table
    facts = table.assign(
        good=table["mark"].isin(_GOOD),
        bad=~table["mark"].isin(_GOOD),
        built=table["outcome"] == "built",
        missing=table["outcome"] == "missing",
    )
    groups = facts.groupby(["environment", "run"], sort=False)
    sums: dict[str, Any] = {name: (name, "sum") for name in ("good", "bad", "built", "missing")}
    found = groups.agg(
        started=("started", "first"), commit=("commit", "first"), cells=("cell", "size"), **sums,
        seconds=("seconds", "sum"), median=("seconds", "median"),
    ).reset_index()  # fmt: skip
    places = {run: place for place, run in enumerate(history.runs)}
    return found.sort_values(
        ["environment", "run"],
        key=lambda column: column.map(places) if column.name == "run" else column,
        ignore_index=True,
    )


def _telling(history: History) -> pd.DataFrame:
    """Cells with a result in a run: a cell that is unavailable tonight did not break tonight."""
    table = history.table
    return table[answered(table)]
