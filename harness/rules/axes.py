"""Axes of a set of cells: the facts that differ, and the values at which outcomes change."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from packaging.specifiers import InvalidSpecifier
from packaging.version import Version

from harness.libraries import names_in_conditions
from harness.model.condition import Compared, Flag, InVersions, Not, Predicate, Some

CellValues = Mapping[str, Any]


class ValueKind(Enum):
    """Types of a fact's values, which decide how values compare."""

    VERSION = "version"
    NUMBER = "number"
    FLAG = "flag"
    TEXT = "text"

    @property
    def ordered(self) -> bool:
        """Return whether ``<`` is meaningful."""
        return self in (ValueKind.VERSION, ValueKind.NUMBER)


@dataclass(frozen=True, eq=False)
class RuleAxis:
    """A fact with different values among the cells.

    Sets of cells and of groups are integers with one bit per member.

    Parameters
    ----------
    name : str
        Name of the fact in conditions.
    kind : ValueKind
        Type of the values.
    groups : tuple of tuple
        Values in order, grouped: values of one group never make a difference.
    cells : tuple of int
        For each group, the cells with one of its values; the last item is the cells without a value.
    weight : float
        Factor on the cost of a comparison. Facts that explain least cost most.
    """

    name: str
    kind: ValueKind
    groups: tuple[tuple[Any, ...], ...]
    cells: tuple[int, ...]
    weight: float

    @property
    def absent(self) -> int:
        """Bit of the cells without a value."""
        return 1 << len(self.groups)

    @property
    def everything(self) -> int:
        """All groups, and the cells without a value."""
        return self.absent * 2 - 1

    def cells_of(self, chosen: int) -> int:
        """Return the cells of a set of groups."""
        found = 0
        for index in bits(chosen):
            found |= self.cells[index]
        return found

    def values_of(self, chosen: int) -> list[Any]:
        """Return the values of a set of groups."""
        return [value for index, group in enumerate(self.groups) if chosen >> index & 1 for value in group]


def bits(number: int) -> Iterator[int]:
    """Yield the positions of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


# Order of facts in conditions; a case's parameters come between _FIRST and _LAST.
_LAST = ("virtual", "suffix", "cc", "toolkit", "headers", "numpy", "python")
_LIBRARIES = tuple(name for name in names_in_conditions() if name not in _LAST)
_FIRST = ("backend", *_LIBRARIES, "library", "wheels", "device")
# A target consists of its kind, capability and suffix, and rules on those explain more.
_LEFT_OUT = frozenset({"target"})
_WEIGHTS = {
    **dict.fromkeys(_LIBRARIES, 1.1),
    "headers": 1.2,
    "device": 1.2,
    "library": 1.6,
    "numpy": 1.8,
    "python": 2.0,
}


def axes_of(facts: Sequence[CellValues], outcomes: Sequence[Hashable], *, grouped: bool) -> list[RuleAxis]:
    """Return the axes of cells.

    Parameters
    ----------
    facts, outcomes : sequence
        Facts and outcome of each cell.
    grouped : bool
        Group neighbouring values of an ordered axis if their outcomes agree on everything tested with both.
    """
    seen: set[tuple[Any, ...]] = set()
    columns: dict[str, tuple[Any, ...]] = {}
    for name in sorted(
        {name for each in facts for name in each} - _LEFT_OUT, key=lambda name: (_weight(name), _place(name), name)
    ):
        column = tuple(_public(each.get(name)) for each in facts)
        # Facts that always differ together form one axis, under the name that explains most.
        pattern = _pattern(column)
        if len(set(pattern)) > 1 and pattern not in seen:
            seen.add(pattern)
            columns[name] = column
    names = sorted(columns, key=lambda name: (_place(name), name))
    return [_axis(name, columns, outcomes, grouped=grouped) for name in names]


def _axis(
    name: str, columns: Mapping[str, tuple[Any, ...]], outcomes: Sequence[Hashable], *, grouped: bool
) -> RuleAxis:
    column = columns[name]
    kind = _kind(column)
    values = sorted(
        {value for value in column if value is not None}, key=lambda value: value if kind.ordered else str(value)
    )
    groups = [(value,) for value in values]
    if grouped and kind.ordered:
        groups = _grouped(values, name, columns, outcomes)
    place = {value: index for index, group in enumerate(groups) for value in group}
    cells = [0] * (len(groups) + 1)
    for index, value in enumerate(column):
        cells[len(groups) if value is None else place[value]] |= 1 << index
    return RuleAxis(name, kind, tuple(groups), tuple(cells), _weight(name))


def _grouped(
    values: list[Any], name: str, columns: Mapping[str, tuple[Any, ...]], outcomes: Sequence[Hashable]
) -> list[tuple[Any, ...]]:
    """Group neighbouring values whose outcomes agree on all shared settings of the other facts, at least one of them."""
    others = [column for other, column in columns.items() if other != name]
    tried: dict[Any, dict[tuple[Any, ...], Hashable]] = {value: {} for value in values}
    for index, value in enumerate(columns[name]):
        if value is not None:
            tried[value][tuple(column[index] for column in others)] = outcomes[index]
    groups: list[list[Any]] = []
    known: dict[tuple[Any, ...], Hashable] = {}
    for value in values:
        both = known.keys() & tried[value].keys()
        if both and all(known[each] == tried[value][each] for each in both):
            groups[-1].append(value)
            known.update(tried[value])
        else:
            groups.append([value])
            known = dict(tried[value])
    return [tuple(group) for group in groups]


def _pattern(column: Sequence[Any]) -> tuple[int, ...]:
    """Number the distinct values in order of appearance, so equal numbers mark cells with the same value."""
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in column)


def _public(value: Any) -> Any:
    """Strip the local part of a version (``13.6.0+local``), which comparisons ignore."""
    return Version(value.public) if isinstance(value, Version) and value.local else value


def _kind(column: Sequence[Any]) -> ValueKind:
    known = [value for value in column if value is not None]
    if all(isinstance(value, bool) for value in known):
        return ValueKind.FLAG
    if all(isinstance(value, Version) for value in known):
        return ValueKind.VERSION
    return ValueKind.NUMBER if all(isinstance(value, int | float) for value in known) else ValueKind.TEXT


def _weight(name: str) -> float:
    return _WEIGHTS.get(name, 1.0)


def _place(name: str) -> int:
    if name in _FIRST:
        return _FIRST.index(name)
    return 200 + _LAST.index(name) if name in _LAST else 100


_FURTHER = 0.35
"""Cost of each further value in a list; a comparison costs 1."""


@dataclass(frozen=True)
class Literal:
    """A part of a condition on one axis.

    Parameters
    ----------
    text : str
        ``toolkit >= "12.4" and toolkit < "12.8"``.
    chosen : int
        Groups of the axis that match.
    cost : float
        Cost of reading it.
    loose : bool
        Whether the text needs parentheses next to an ``and``.
    """

    text: str
    chosen: int
    cost: float
    loose: bool = False


def spell(axis: RuleAxis, must: int, never: int) -> Literal | None:
    """Return the cheapest comparison that holds for all groups of `must` and for none of `never`; None without one."""
    found = [each for each in _candidates(axis, must, never) if each.chosen & must == must and not each.chosen & never]
    return min(found, key=lambda each: (each.cost, len(each.text), each.text), default=None)


def _candidates(axis: RuleAxis, must: int, never: int) -> Iterator[Literal]:
    if axis.kind is ValueKind.FLAG:
        yield _made(axis, axis.name, Flag(axis.name), 1)
        yield _made(axis, f"not {axis.name}", Not(Flag(axis.name)), 1)
        return
    inside, outside = axis.values_of(must), axis.values_of(never)
    if len(inside) == 1:
        # Values beyond the end of an axis probably behave like the last one, so == costs slightly more than a limit.
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
    """Return the cost of a list; on ordered axes, limits explain more than lists."""
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
    """Yield comparisons that hold from a group on."""
    if place and axis.kind is ValueKind.NUMBER:  # a limit is the last working value
        yield from _compared(axis, ">", axis.groups[place - 1][-1], 1)
    else:
        yield from _compared(axis, ">=", axis.groups[place][0], 1)
        if place:
            yield from _compared(axis, ">", axis.groups[place - 1][-1], 1.05)


def _upper(axis: RuleAxis, place: int) -> Iterator[Literal]:
    """Yield comparisons that hold for the groups before a group."""
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
    """Evaluate a comparison for each value: a pre-release is neither below nor above its release."""
    chosen = 0
    for place, group in enumerate(axis.groups):
        if all(predicate.holds({axis.name: value}) for value in group):
            chosen |= 1 << place
        elif any(predicate.holds({axis.name: value}) for value in group):
            return Literal(text, 0, cost)  # the comparison would split a group
    if predicate.holds({axis.name: None}):
        chosen |= axis.absent
    return Literal(text, chosen, cost * axis.weight)


class Inseparable(ValueError):
    """Two cells with different outcomes that conditions cannot separate.

    Parameters
    ----------
    one, other : int
        Positions of the cells among the examples.
    """

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"examples {one} and {other} differ in nothing that a condition can ask")
        self.one = one
        self.other = other


class TooManyRules(ValueError):
    """Outcomes that follow no fact in conditions."""


@dataclass(frozen=True)
class Example:
    """A cell and its outcome.

    Parameters
    ----------
    facts : Mapping[str, Any]
        Facts as in conditions (`harness.model.Cell.facts`).
    outcome : Hashable
        Cells with equal outcomes may share a rule.
    settled : bool
        Whether the outcome is expected without a rule.
    """

    facts: Mapping[str, Any]
    outcome: Hashable
    settled: bool = False


Box = Mapping[int, Literal]
"""Required comparison by number of the axis; an empty box holds for every cell."""


@dataclass(frozen=True, eq=False)
class Table:
    """Examples as bit sets, the input of the search for rules.

    Parameters
    ----------
    axes : list of RuleAxis
        Axes that rules may compare.
    outcomes : tuple
        Distinct outcomes.
    cells : tuple of int
        For each outcome, the cells with it.
    unsettled : int
        Cells that need a rule.
    """

    axes: list[RuleAxis]
    outcomes: tuple[Hashable, ...]
    cells: tuple[int, ...]
    unsettled: int
    _spelled: dict[tuple[int, int, int], Literal | None] = field(default_factory=dict)

    @cached_property
    def everything(self) -> int:
        """All cells."""
        found = 0
        for each in self.cells:
            found |= each
        return found

    def cells_of(self, box: Box) -> int:
        """Return the cells in a box."""
        found = self.everything
        for axis, literal in box.items():
            found &= self.axes[axis].cells_of(literal.chosen)
        return found

    def spell(self, axis: int, must: int, never: int) -> Literal | None:
        """Call `harness.rules.axes.spell`, with a cache."""
        key = (axis, must, never)
        if key not in self._spelled:
            self._spelled[key] = spell(self.axes[axis], must, never)
        return self._spelled[key]

    def groups(self, axis: int, cells: int) -> int:
        """Return the groups of an axis that contain some of the cells."""
        found = 0
        for place, each in enumerate(self.axes[axis].cells):
            if each & cells:
                found |= 1 << place
        return found

    def simplest(self, box: Box, want: int, bad: int) -> dict[int, Literal]:
        """Drop and simplify comparisons while the box still holds for `want` and for none of `bad`."""
        made = dict(box)
        for number in sorted(made, key=lambda number: (-made[number].cost, number)):
            others = self.cells_of({axis: literal for axis, literal in made.items() if axis != number})
            if not others & bad:
                del made[number]
                continue
            literal = self.spell(number, self.groups(number, others & want), self.groups(number, others & bad))
            if literal is not None and (literal.cost, literal.text) < (made[number].cost, made[number].text):
                made[number] = literal
        return made


def make_table(examples: Sequence[Example], *, grouped: bool) -> Table:
    """Build the bit sets of examples; indistinguishable examples count as one.

    Raises
    ------
    Inseparable
        If indistinguishable examples have different outcomes.
    """
    places: dict[tuple[Any, ...], int] = {}
    for place, example in enumerate(examples):
        key = tuple(sorted((name, str(value)) for name, value in example.facts.items()))
        first = places.setdefault(key, place)
        if examples[first].outcome != example.outcome:
            raise Inseparable(first, place)
    # The sort makes the result independent of the order of the examples.
    chosen = [examples[places[key]] for key in sorted(places)]
    outcomes = tuple(sorted({example.outcome for example in chosen}, key=repr))
    cells = [0] * len(outcomes)
    number = {outcome: index for index, outcome in enumerate(outcomes)}
    unsettled = 0
    for place, example in enumerate(chosen):
        cells[number[example.outcome]] |= 1 << place
        unsettled |= (not example.settled) << place
    axes = axes_of([each.facts for each in chosen], [each.outcome for each in chosen], grouped=grouped)
    return Table(axes=axes, outcomes=outcomes, cells=tuple(cells), unsettled=unsettled)


def spell_rule(table: Table, boxes: Sequence[Box]) -> str:
    """Return a condition that holds in any of the boxes, with common parts once: ``rdc and (cc < "7.0" or toolkit < "12.4")``."""
    if len(boxes) == 1:
        return _all(_parts(table, boxes[0]))
    common = [
        axis for axis in sorted(boxes[0]) if all(axis in box and box[axis].text == boxes[0][axis].text for box in boxes)
    ]
    shared = _parts(table, {axis: boxes[0][axis] for axis in common})
    rest = [_parts(table, {axis: each for axis, each in box.items() if axis not in common}) for box in boxes]
    rest.sort(key=lambda parts: (len(parts), parts))
    alternatives = " or ".join(f"({_all(parts)})" if len(parts) > 1 else _all(parts) for parts in rest)
    return _all([*shared, (alternatives, True)])


def _parts(table: Table, box: Box) -> list[tuple[str, bool]]:
    return [(box[axis].text, box[axis].loose) for axis in range(len(table.axes)) if axis in box]


def _all(parts: Sequence[tuple[str, bool]]) -> str:
    """Join the parts of a conjunction; a part with ``or`` gets parentheses next to other parts."""
    if len(parts) == 1:
        return parts[0][0]
    return " and ".join(f"({text})" if loose else text for text, loose in parts)
