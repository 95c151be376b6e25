"""Cells that are not as expected, whether or not anything changed: that nothing changed does not mean that all is well."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from harness.analysis.changes import is_regression
from harness.analysis.frame import ordered
from harness.matrix.axes import PLACE
from harness.matrix.kinds import KINDS
from harness.matrix.links import cell_link


@dataclass(frozen=True, kw_only=True)
class Unexpected:
    """A cell that is not as expected.

    Parameters
    ----------
    cell, environment, outcome, verdict, message : str
        Of the cell.
    mark : str
        Key of its kind (`harness.matrix.kinds.KINDS`).
    page : str
        Its address within a report.
    before : str or None
        What the earlier set says of it; None where that has no such cell.
    new : bool
        Whether this is news: the earlier set has no such cell, had it as expected, or knew nothing of it and now it fails; or it fails
        more gravely than before.
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
        """Plain JSON value of every field."""
        return asdict(self)


def unexpected(old: pd.DataFrame, new: pd.DataFrame, *, across: Collection[str] = ()) -> tuple[Unexpected, ...]:
    """Cells of a set that are not as expected, in the order of the matrix.

    Parameters
    ----------
    old, new : DataFrame
        `harness.analysis.frame.cells_frame`.
    across : collection of str
        As for `harness.analysis.changes.changes`.
    """
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
