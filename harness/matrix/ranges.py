"""Ranges along an axis: neighbouring versions or architectures with one outcome, untried ones, and both in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

ValueT = TypeVar("ValueT")
OutcomeT = TypeVar("OutcomeT")


@dataclass(frozen=True)
class Range(Generic[ValueT, OutcomeT]):
    """Neighbouring values of an axis with one outcome.

    Parameters
    ----------
    outcome : Any
        The common outcome.
    values : tuple
        The tried values, in order; at least one.
    before : Any, optional
        The last tried value before the range, which has another outcome; None for the first range.
    untried : tuple
        Untried known values between `before` and the first value.
    """

    outcome: OutcomeT
    values: tuple[ValueT, ...]
    before: ValueT | None = None
    untried: tuple[ValueT, ...] = ()


def ranges(
    outcomes: Iterable[tuple[ValueT, OutcomeT]],
    known: Iterable[ValueT] = (),
    key: Callable[[ValueT], Any] | None = None,
) -> list[Range[ValueT, OutcomeT]]:
    """Return the ranges of an axis.

    Parameters
    ----------
    outcomes : iterable of (value, outcome)
        The tried values, in order.
    known : iterable
        All known values, to name the untried ones before each range.
    key : callable, optional
        Sort key of `known`.
    """
    found: list[Range[ValueT, OutcomeT]] = []
    for outcome, run in groupby(outcomes, lambda item: item[1]):
        values = tuple(value for value, _ in run)
        before = found[-1].values[-1] if found else None
        untried = between(before, values[0], known, key) if before is not None and key else ()
        found.append(Range(outcome, values, before, untried))
    return found


def between(low: ValueT, high: ValueT, known: Iterable[ValueT], key: Callable[[ValueT], Any]) -> tuple[ValueT, ...]:
    """Return the known values between two others, or none if one of these is not on the axis (an empty key)."""
    first, last = key(low), key(high)
    return tuple(value for value in known if first < key(value) < last) if first and last else ()


def consecutive(chosen: Collection[ValueT], axis: Iterable[ValueT]) -> list[tuple[ValueT, ...]]:
    """Return the chosen values of an axis in groups. No other value of the axis is within a group."""
    return [run.values for run in ranges((value, value in chosen) for value in axis) if run.outcome]


def spell(values: Sequence[str], *, whole: int = 1, last: str = ", ", to: str = " to ") -> str:
    """Return values in words: all of them if they are few, else the first and the last one.

    Parameters
    ----------
    values : sequence of str
        The values in order; may be empty.
    whole : int
        The maximum number of values to name.
    last : str
        The separator before the last one, such as `` and ``.
    to : str
        The text between the ends of a range.
    """
    if len(values) > whole:
        return f"{values[0]}{to}{values[-1]}"
    return last.join(filter(None, (", ".join(values[:-1]), *values[-1:])))


def spell_tried(
    values: Collection[str], axis: Iterable[str], key: Callable[[str], Any], *, most: int = 4, to: str = " to "
) -> str:
    """Return tried values in words, in ranges that contain no untried value: ``11.8 to 12.4, 12.9``.

    Many ranges become ``9 of 11.0.0 to 14.2.0``.
    """
    ordered = sorted({*axis, *values}, key=key)
    groups = consecutive(set(values), ordered)
    if len(groups) <= most:
        return ", ".join(spell(group, whole=2, to=to) for group in groups)
    return f"{len(values)} of {groups[0][0]} to {groups[-1][-1]}"


def spell_part(values: Sequence[str], axis: Sequence[str], prefix: str = "") -> str:
    """Return consecutive values as a part of their axis: ``up to CUDA 12.4``, ``from CUDA 13.0``, ``CUDA 12.0 to 12.3``."""
    if values[0] == axis[0]:
        return f"up to {prefix}{values[-1]}"
    if values[-1] == axis[-1]:
        return f"from {prefix}{values[0]}"
    return prefix + spell(values)
