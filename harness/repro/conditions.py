"""Under which conditions a cell's outcome happens, as far as the records tell, and which neighbours differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.matrix.order import natural_key, target_key, version_key
from harness.model import Target
from harness.records import Record, failed_at
from harness.records.facts import parameters_of

_NOTHING = ("unsupported", "unavailable", "harness_error")
_NEAR = 2


@dataclass(frozen=True)
class Condition:
    """The effect of one axis on an outcome, with all others fixed.

    Parameters
    ----------
    axis : str
        Its name.
    text : str
        Where it happens: ``CUDA 12.4 to 12.6``, ``sm_75 and below``; on all that was tried where nothing differs.
    same, tried : tuple of str
        The values with the same outcome, and all of them, in order.
    """

    axis: str
    text: str
    same: tuple[str, ...]
    tried: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Return whether it happens on some values and not on others."""
        return len(self.same) < len(self.tried)


@dataclass(frozen=True)
class Findings:
    """The neighborhood of a cell in the records.

    Parameters
    ----------
    conditions : tuple of Condition
        Axes with several tried values.
    neighbours : tuple of Record
        The nearest cells that differ, on both sides of each axis.
    inside, inside_same : int
        How many cells were tried where all conditions hold, and how many of them ended in the same way.
    elsewhere : int
        How many ended in the same way where a condition does not hold.
    """

    conditions: tuple[Condition, ...]
    neighbours: tuple[Record, ...]
    inside: int
    inside_same: int
    elsewhere: int


def outcome_of(record: Record) -> tuple[str, str | None, str]:
    """The key of equal outcomes: status, stage, and the fingerprint of the first message."""
    first = record["diagnostics"][0] if record["diagnostics"] and record["status"] != "built" else None
    # What was built may have been linked or not: the same all the same.
    stage = None if record["status"] == "built" else record["stage"]
    return record["status"], stage, (first or {}).get("fingerprint", "") if first else ""


def find(record: Record, records: Iterable[Record]) -> Findings:
    """Look at the cells of the same program.

    Parameters
    ----------
    record : Record
        The cell.
    records : iterable of Record
        All records; those without a compiler's answer count for nothing.
    """
    key = (record["case"], record.get("program"))
    known = [each for each in records if (each["case"], each.get("program")) == key and each["status"] not in _NOTHING]
    axes = [_axes(each) for each in known]
    own, wanted = _axes(record), outcome_of(record)
    conditions, near = [], list[Record]()
    for axis in (name for name in own if name not in ("backend", "on")):
        line = {
            place[axis]: each
            for place, each in zip(axes, known, strict=True)
            if axis in place and {**place, axis: ""} == {**own, axis: ""}
        }
        tried = sorted(line, key=_order(axis))
        if len(tried) < 2:
            continue
        same = [value for value in tried if outcome_of(line[value]) == wanted]
        conditions.append(Condition(axis, spell(axis, same, tried), tuple(same), tuple(tried)))
        near += _nearest(own[axis], tried, same, line)
    near += _other_backends(own, axes, known, wanted)
    counting = [condition for condition in conditions if condition.counts]
    inside = [
        outcome_of(each) == wanted
        for place, each in zip(axes, known, strict=True)
        if place["backend"] == own["backend"] and place.keys() == own.keys() and _holds(counting, place)
    ]
    total = sum(
        outcome_of(each) == wanted
        for each, place in zip(known, axes, strict=True)
        if place["backend"] == own["backend"]
    )
    return Findings(tuple(conditions), tuple(near), len(inside), sum(inside), total - sum(inside))


def spell(axis: str, chosen: Sequence[str], tried: Sequence[str]) -> str:
    """Values as ranges of those that were tried: ``CUDA 12.4 to 12.6``, ``sm_75 and below``, ``bytes 49156 and above``.

    A range never goes from real to virtual architectures, nor over a parameter's values that are no numbers.
    """
    prefix = {"toolkit": "CUDA ", "target": "", "library": ""}.get(axis, f"{axis} = ")
    parts, kinds = [], dict[str, list[str]]()
    for value in tried:
        kinds.setdefault(_kind(axis)(value), []).append(value)
    for kind, axis_values in kinds.items():
        for included, run in groupby(axis_values, set(chosen).__contains__):
            names = list(run)
            if not included:
                continue
            if not kind or len(axis_values) == 1 or names == axis_values:
                parts.append(f"{names[0]} to {names[-1]}" if kind and len(names) > 2 else ", ".join(names))
            elif names[-1] == axis_values[-1]:
                parts.append(f"{names[0]} and {'later' if axis in ('toolkit', 'library') else 'above'}")
            elif names[0] == axis_values[0]:
                parts.append(f"{names[-1]} and {'earlier' if axis in ('toolkit', 'library') else 'below'}")
            else:
                parts.append(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
    return prefix + ", ".join(parts)


def told(record: Record) -> str:
    """Describe an outcome in a few words: ``rejected at compile: incomplete type is not allowed``."""
    what = failed_at(record).replace("_", " ")
    if record["status"] == "built" or not record["diagnostics"]:
        return what
    return f"{what}: {record['diagnostics'][0]['message']}"


def _axes(record: Mapping[str, Any]) -> dict[str, str]:
    """A cell's place: its parameters, then toolkit, library, target and backend. A program without a case has its options for a parameter."""
    parameters = {name: str(value) for name, value in parameters_of(record).items()}
    if record.get("program"):
        parameters = {"options": record["variant"]}
    places = {name: str(record[name]) for name in ("library", "toolkit", "target", "backend")}
    device = record.get("device") or {}
    return {**parameters, **places, "on": str(device.get("name", "")) if device.get("virtual") is False else ""}


def _order(axis: str) -> Callable[[str], Any]:
    keys: dict[str, Callable[[str], Any]] = {"toolkit": _toolkit_key, "library": version_key, "target": target_key}
    return keys.get(axis, natural_key)


def _toolkit_key(text: str) -> Any:
    release, _, headers = text.partition("+headers")
    return (bool(headers), version_key(release), version_key(headers))


def _kind(axis: str) -> Callable[[str], str]:
    """Values that a range may take in together; empty for those that have no order."""
    if axis == "target":
        return lambda value: "" if Target.parse(value).suffix else value.split("_")[0]
    if axis == "toolkit":
        return lambda value: "" if "+" in value or "@" in value else "release"
    if axis == "library":
        return lambda value: "" if "+" in value else "version"
    return lambda value: "number" if value.lstrip("-").isdigit() else ""


def _nearest(own: str, tried: Sequence[str], same: Sequence[str], line: Mapping[str, Record]) -> list[Record]:
    place = tried.index(own) if own in tried else 0
    below = [value for value in reversed(tried[:place]) if value not in same][:1]
    above = [value for value in tried[place + 1 :] if value not in same][:1]
    return [line[value] for value in (*below, *above)]


def _other_backends(
    own: Mapping[str, str],
    axes: Sequence[Mapping[str, str]],
    known: Sequence[Record],
    wanted: tuple[str, str | None, str],
) -> list[Record]:
    """Cells of other backends that are like this one in all else, one of each, and end in another way."""
    plain = {**own, "backend": "", "library": ""}
    found: dict[str, Record] = {}
    for place, record in zip(axes, known, strict=True):
        if place["backend"] != own["backend"] and {**place, "backend": "", "library": ""} == plain:
            found[place["backend"]] = record
    return [record for record in found.values() if outcome_of(record)[0] != wanted[0]]


def _holds(conditions: Sequence[Condition], place: Mapping[str, str]) -> bool:
    return all(place[condition.axis] in condition.same for condition in conditions)
