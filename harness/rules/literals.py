"""Comparisons of one axis, as conditions write them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier

from harness.model.predicate import Compared, Flag, InVersions, Not, Predicate, Some
from harness.rules.axes import RuleAxis, ValueKind, bits

_FURTHER = 0.35
"""The cost of each further value of a list; a comparison costs 1."""


@dataclass(frozen=True)
class Literal:
    """A part of a condition that is about one axis.

    Parameters
    ----------
    text : str
        ``toolkit >= "12.4" and toolkit < "12.8"``.
    chosen : int
        The groups of the axis that match.
    cost : float
        How much of a reader's attention it takes.
    loose : bool
        Whether it needs parentheses next to an ``and``.
    """

    text: str
    chosen: int
    cost: float
    loose: bool = False


def spell(axis: RuleAxis, must: int, never: int) -> Literal | None:
    """The cheapest comparison that holds for all of some groups and for none of others; None where there is none.

    Parameters
    ----------
    axis : RuleAxis
        What is compared.
    must, never : int
        Groups. Of the rest it does not matter.
    """
    found = [each for each in _candidates(axis, must, never) if each.chosen & must == must and not each.chosen & never]
    return min(found, key=lambda each: (each.cost, len(each.text), each.text), default=None)


def _candidates(axis: RuleAxis, must: int, never: int) -> Iterator[Literal]:
    if axis.kind is ValueKind.FLAG:
        yield _made(axis, axis.name, Flag(axis.name), 1)
        yield _made(axis, f"not {axis.name}", Not(Flag(axis.name)), 1)
        return
    inside, outside = axis.values_of(must), axis.values_of(never)
    if len(inside) == 1:
        # At an end of an axis, what comes beyond it is more likely to be the same.
        yield from _compared(axis, "==", inside[0], 1.02 if axis.kind.ordered else 1)
    elif inside:
        yield from _listed(axis, inside, _length(axis, inside), negated=False)
    if len(outside) == 1:
        yield from _compared(axis, "!=", outside[0], 1.01)
    elif outside:
        yield from _listed(axis, outside, 0.1 + _length(axis, outside), negated=True)
    if axis.kind.ordered and inside:
        yield from _intervals(axis, must, never)


def _length(axis: RuleAxis, values: list[Any]) -> float:
    """The cost of a list; on ordered axes, limits explain more than lists."""
    return (2 if axis.kind.ordered else 1 + _FURTHER) + _FURTHER * (len(values) - 2)


def _intervals(axis: RuleAxis, must: int, never: int) -> Iterator[Literal]:
    places = [place for place in bits(must) if place < len(axis.groups)]
    others = [place for place in bits(never) if place < len(axis.groups)]
    below = [place for place in others if place < places[0]]
    above = [place for place in others if place > places[-1]]
    lower = list(_lower(axis, below[-1] + 1 if below else 0))
    upper = list(_upper(axis, above[0])) if above else []
    yield from upper
    yield from lower
    for low in lower:
        for high in upper:
            yield Literal(f"{low.text} and {high.text}", low.chosen & high.chosen, low.cost + high.cost - 0.1)
    between = [place for place in others if places[0] < place < places[-1]]
    if between:
        for low in _lower(axis, between[-1] + 1):
            for high in _upper(axis, between[0]):
                yield Literal(f"{high.text} or {low.text}", low.chosen | high.chosen, low.cost + high.cost, loose=True)


def _lower(axis: RuleAxis, place: int) -> Iterator[Literal]:
    """From a group on."""
    if place and axis.kind is ValueKind.NUMBER:  # limits are what still works
        yield from _compared(axis, ">", axis.groups[place - 1][-1], 1)
    else:
        yield from _compared(axis, ">=", axis.groups[place][0], 1)
        if place:
            yield from _compared(axis, ">", axis.groups[place - 1][-1], 1.05)


def _upper(axis: RuleAxis, place: int) -> Iterator[Literal]:
    """Up to a group, which is left out."""
    if place and axis.kind is ValueKind.NUMBER:
        yield from _compared(axis, "<=", axis.groups[place - 1][-1], 1)
    elif place:
        yield from _compared(axis, "<", axis.groups[place][0], 1)
        yield from _compared(axis, "<=", axis.groups[place - 1][-1], 1.05)


def _compared(axis: RuleAxis, symbol: str, value: Any, cost: float) -> Iterator[Literal]:
    try:
        yield _made(axis, f"{axis.name} {symbol} {_value(value)}", _predicate(axis, symbol, value), cost)
    except InvalidSpecifier:
        return


def _listed(axis: RuleAxis, values: list[Any], cost: float, *, negated: bool) -> Iterator[Literal]:
    try:
        found: Predicate = Some(tuple(_predicate(axis, "==", value) for value in values))
        text = f"{axis.name} {'not in' if negated else 'in'} ({', '.join(map(_value, values))})"
        yield _made(axis, text, Not(found) if negated else found, cost)
    except InvalidSpecifier:
        return


def _predicate(axis: RuleAxis, symbol: str, value: Any) -> Predicate:
    if axis.kind is ValueKind.VERSION:
        return InVersions(axis.name, f"{symbol}{value}")
    return Compared(axis.name, symbol, value)


def _value(value: Any) -> str:
    return repr(value) if isinstance(value, int | float) else f'"{value}"'


def _made(axis: RuleAxis, text: str, predicate: Predicate, cost: float) -> Literal:
    """Evaluate a comparison for each value: pre-releases are neither below nor above their release."""
    chosen = 0
    for place, group in enumerate(axis.groups):
        if all(predicate.holds({axis.name: value}) for value in group):
            chosen |= 1 << place
        elif any(predicate.holds({axis.name: value}) for value in group):
            return Literal(text, 0, cost)  # it would tear apart what stands together
    if predicate.holds({axis.name: None}):
        chosen |= axis.absent
    return Literal(text, chosen, cost * axis.weight)
