"""Additions of the page to a record: known causes of failures, and the cell's history."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from harness.analysis.history import History
from harness.causes import catalogue, causes_of
from harness.records import Record

_EVENTS = 20

More = Callable[[Record], Mapping[str, Any]]


def annotator(history: History | None) -> More:
    """A function that gives ``remedy`` and ``history`` of a record, where there are any.

    Parameters
    ----------
    history : History or None
        Earlier runs.
    """
    events = _events(history) if history is not None else {}

    def annotate(record: Record) -> Mapping[str, Any]:
        more: dict[str, Any] = {}
        if found := remedies(record):
            more["remedy"] = found
        if record["cell"] in events:
            more["history"] = events[record["cell"]][-_EVENTS:]
        return more

    return annotate


def remedies(record: Record) -> Sequence[Mapping[str, Any]]:
    """Known causes with remedies, as plain values; for a failure, without those of mere warnings."""
    built = record["status"] == "built"
    return _remedies(tuple(match.cause.name for match in causes_of(record) if built or not match.of_warning))


@cache
def _remedies(names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Text of causes: the same object for equal ones, which is then written once."""
    causes = [catalogue()[name] for name in names]
    return [
        {"title": cause.title, "cause": cause.cause, "remedy": cause.remedy, "links": list(cause.links)}
        for cause in causes
    ]


def _events(history: History) -> dict[str, list[dict[str, Any]]]:
    """Runs by cell, oldest first; consecutive runs with the same outcome are one event."""
    found: dict[str, list[dict[str, Any]]] = {}
    names = ["cell", "run", "started", "mark", "outcome", "message"]
    for cell, run, started, mark, outcome, message in history.table[names].itertuples(index=False, name=None):
        events = found.setdefault(cell, [])
        if events and (events[-1]["outcome"], events[-1]["message"], events[-1]["mark"]) == (outcome, message, mark):
            events[-1]["runs"] += 1
            events[-1]["last"] = started
        else:
            event = {"outcome": outcome, "mark": mark, "message": message, "run": run, "started": started}
            events.append({**event, "last": started, "runs": 1})
    return found
