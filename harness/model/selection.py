"""Selection of cells by ``--where``: conditions with additional names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from harness.errors import NothingToRun, UsageError
from harness.model.condition import NAMES, Condition, ConditionError
from harness.model.enums import Stage, Status, Verdict

CELLS: Mapping[str, type] = {
    **NAMES,
    **dict.fromkeys(("cell", "case", "project", "topic", "variant", "environment"), str),
}
"""Names for cells that have not run."""

RESULTS: Mapping[str, type] = {**CELLS, **dict.fromkeys(("status", "stage", "verdict", "message"), str)}
"""Names for cells and what happened to them."""

_VALUES: Mapping[str, tuple[str, ...]] = {"status": tuple(Status), "stage": tuple(Stage), "verdict": tuple(Verdict)}


def read_where(
    text: str,
    names: Mapping[str, type],
    parameters: Mapping[str, Collection[Any]],
    values: Mapping[str, Collection[str]] | None = None,
) -> Condition:
    """Read what stands after ``--where``.

    Parameters
    ----------
    text : str
        The condition.
    names : Mapping[str, type]
        `CELLS` or `RESULTS`.
    parameters : Mapping
        Parameters of the cases that are there, with the values that each may have.
    values : Mapping, optional
        For more of `names`, the only values that there are.

    Raises
    ------
    UsageError
        One sentence, with the character that it is about.
    """
    try:
        return Condition.parse(text, parameters, names=names, values={**_VALUES, **(values or {})})
    except ConditionError as error:
        where = f", character {error.position}" if error.position else ""
        raise UsageError(f"--where{where}: {error}") from None


def none_left(cells: str, where: str) -> NothingToRun:
    """The error for a condition that holds for none of some `cells`: ``"24"``, ``"old.jsonl and new.jsonl"``."""
    return NothingToRun(f"no cell is left of {cells} --where {' '.join(where.split())}")
