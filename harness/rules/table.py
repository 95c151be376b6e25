"""Cells as sets of bits: by outcome, and by value of each axis."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from harness.rules.axes import RuleAxis, axes_of
from harness.rules.literals import Literal, spell


class Inseparable(ValueError):
    """Two cells with different outcomes that conditions cannot separate.

    Parameters
    ----------
    one, other : int
        Their places among the examples.
    """

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"examples {one} and {other} differ in nothing that a condition can ask")
        self.one = one
        self.other = other


class TooManyRules(ValueError):
    """Outcomes that follow nothing that a condition can ask."""


@dataclass(frozen=True)
class Example:
    """A cell, and what became of it.

    Parameters
    ----------
    facts : Mapping[str, Any]
        As conditions see them (`harness.model.Cell.facts`).
    outcome : Hashable
        Cells with an equal one may have a rule in common.
    settled : bool
        Whether the outcome is expected without a rule.
    """

    facts: Mapping[str, Any]
    outcome: Hashable
    settled: bool = False


Box = Mapping[int, Literal]
"""By number of the axis what must hold there; everything without any."""


@dataclass(frozen=True, eq=False)
class Table:
    """Evidence for rules.

    Parameters
    ----------
    axes : list of RuleAxis
        What may be compared.
    outcomes : tuple
        The different outcomes.
    cells : tuple of int
        For each outcome the cells that had it.
    unsettled : int
        The cells that need a rule.
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
        """The cells in a box."""
        found = self.everything
        for axis, literal in box.items():
            found &= self.axes[axis].cells_of(literal.chosen)
        return found

    def spell(self, axis: int, must: int, never: int) -> Literal | None:
        """`harness.rules.literals.spell`, each once."""
        key = (axis, must, never)
        if key not in self._spelled:
            self._spelled[key] = spell(self.axes[axis], must, never)
        return self._spelled[key]

    def groups(self, axis: int, cells: int) -> int:
        """The groups of an axis that some of the cells have."""
        found = 0
        for place, each in enumerate(self.axes[axis].cells):
            if each & cells:
                found |= 1 << place
        return found

    def simplest(self, box: Box, want: int, bad: int) -> dict[int, Literal]:
        """A box with as little in it as holds for `want` and for none of `bad`.

        Parameters
        ----------
        box : Box
            One that does so.
        want, bad : int
            Cells.
        """
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
    """Bit sets of examples; indistinguishable examples are one.

    Raises
    ------
    Inseparable
        When such two have different outcomes.
    """
    places: dict[tuple[Any, ...], int] = {}
    for place, example in enumerate(examples):
        key = tuple(sorted((name, str(value)) for name, value in example.facts.items()))
        first = places.setdefault(key, place)
        if examples[first].outcome != example.outcome:
            raise Inseparable(first, place)
    # What comes out does not depend on the order of the examples.
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
