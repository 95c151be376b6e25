"""Lists of rules in the making."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.rules.table import Box, Table


@dataclass(frozen=True)
class Step:
    """A rule: it holds where one of its boxes does.

    Parameters
    ----------
    outcome : int
        Number of the outcome.
    boxes : tuple of Box
        At least one.
    """

    outcome: int
    boxes: tuple[Box, ...]

    def cells(self, table: Table) -> int:
        """The matching cells."""
        found = 0
        for box in self.boxes:
            found |= table.cells_of(box)
        return found


def exact(table: Table, steps: Sequence[Step]) -> bool:
    """Return whether every cell has its outcome."""
    left = table.everything
    for step in steps:
        here = step.cells(table) & left
        if here & ~table.cells[step.outcome]:
            return False
        left &= ~here
    return not left & table.unsettled


def cost_of(steps: Sequence[Step]) -> tuple[float, int]:
    """Complexity: the amount to read, and the number of rules."""
    total = sum(2 + sum(0.5 + sum(each.cost for each in box.values()) for box in step.boxes) for step in steps)
    return round(total, 6), len(steps)
