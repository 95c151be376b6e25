"""The axes of a set of cells: which facts differ between them, and where along each of them outcomes change."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from packaging.version import Version

CellValues = Mapping[str, Any]


class ValueKind(Enum):
    """The kinds of a fact's values, which decide how to compare them."""

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
    """A fact that is not the same for all cells.

    Sets of cells and of groups are integers with one bit for each member.

    Parameters
    ----------
    name : str
        The fact, as conditions call it.
    kind : ValueKind
        Of its values.
    groups : tuple of tuple
        Its values, in order; those that never make a difference stand together.
    cells : tuple of int
        For each group, the cells that have such a value; one more for the cells that have none.
    weight : float
        How much a comparison of it counts: what says least of the cause counts most.
    """

    name: str
    kind: ValueKind
    groups: tuple[tuple[Any, ...], ...]
    cells: tuple[int, ...]
    weight: float

    @property
    def absent(self) -> int:
        """The bit of cells without a value."""
        return 1 << len(self.groups)

    @property
    def everything(self) -> int:
        """All groups, and the cells without a value."""
        return self.absent * 2 - 1

    def cells_of(self, chosen: int) -> int:
        """The cells of a set of groups."""
        found = 0
        for index in bits(chosen):
            found |= self.cells[index]
        return found

    def values_of(self, chosen: int) -> list[Any]:
        """The values of a set of groups."""
        return [value for index, group in enumerate(self.groups) if chosen >> index & 1 for value in group]


def bits(number: int) -> Iterator[int]:
    """Places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


# The order of facts in conditions; parameters of the case come between the two.
_FIRST = ("backend", "cupy", "numba", "numba_cuda", "torch", "library", "wheels", "device")
_LAST = ("virtual", "suffix", "cc", "toolkit", "headers", "numpy", "python")
# A target is its kind, its capability and its suffix: rules about these say more.
_LEFT_OUT = frozenset({"target"})
_WEIGHTS = {"torch": 1.1, "cupy": 1.1, "numba": 1.1, "numba_cuda": 1.1, "headers": 1.2, "device": 1.2, "library": 1.6, "numpy": 1.8,
            "python": 2.0}  # fmt: skip


def axes_of(facts: Sequence[CellValues], outcomes: Sequence[Hashable], *, grouped: bool) -> list[RuleAxis]:
    """Axes of cells.

    Parameters
    ----------
    facts, outcomes : sequence
        Of each cell.
    grouped : bool
        Put neighbouring values of an ordered axis together where the outcome is the same for all that was tried with both.
    """
    seen: set[tuple[Any, ...]] = set()
    columns: dict[str, tuple[Any, ...]] = {}
    for name in sorted(
        {name for each in facts for name in each} - _LEFT_OUT, key=lambda name: (_weight(name), _place(name), name)
    ):
        column = tuple(_public(each.get(name)) for each in facts)
        # What always differs together is one axis, under the name that says most.
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
    """Neighbours that were tried with the same and gave the same, at least once and without an exception."""
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
    """Cells with the same value."""
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(value, len(numbers)) for value in column)


def _public(value: Any) -> Any:
    """A version without what builders add to it (``13.6.0+local``), which comparisons pass over."""
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
