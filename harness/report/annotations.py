"""What the page adds to a record: known causes of what went wrong, and the cell's history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.analysis.history import History
from harness.causes import causes_of
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
    known: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def annotate(record: Record) -> Mapping[str, Any]:
        more: dict[str, Any] = {}
        if record["diagnostics"] or record["status"] != "built":
            # All that causes depend on: cells with the same of all of it share the answer.
            said = tuple(item["message"] for item in record["diagnostics"])
            where = (record["backend"], record["library"], record["toolkit"], record["target"])
            packages = repr(record["toolchain"]["requested"].get("packages"))  # which may be anything
            key = (record["status"], record["stage"], record["reason"], said, record["log"], *where, packages)
            if key not in known:
                known[key] = remedies(record)
            if known[key]:
                more["remedy"] = known[key]
        if record["cell"] in events:
            more["history"] = events[record["cell"]][-_EVENTS:]
        return more

    return annotate


def remedies(record: Record) -> list[dict[str, Any]]:
    """Known causes with what helps, as plain values; where something failed, not those of the warnings beside it."""
    return [
        {
            "title": match.cause.title,
            "cause": match.cause.cause,
            "remedy": match.cause.remedy,
            "links": list(match.cause.links),
        }
        for match in causes_of(record)
        if record["status"] == "built" or not match.of_warning
    ]


def _events(history: History) -> dict[str, list[dict[str, Any]]]:
    """By cell, oldest first, its runs; those in a row in which the same happened are one event."""
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
