"""Parts of a run, ``--shard 2/5``, and what cells cost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.backends import BACKENDS
from harness.errors import NothingToRun, UsageError
from harness.model import Cell

Costs = Mapping[tuple[str, str, str], float]
"""Seconds by case, variant and backend."""


@dataclass(frozen=True)
class Shard:
    """A part of a run: ``2/5`` is the second of five."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``2/5``.

        Raises
        ------
        UsageError
            When it is something else.
        """
        match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text.strip())
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise UsageError(f"--shard {text!r} is not a part such as 2/5, the second of five")
        return cls(int(match[1]), int(match[2]))

    def take(self, cells: Sequence[Cell], costs: Costs | None = None) -> list[Cell]:
        """The cells of this part, in their order; the parts together are all of them, and take about as long each.

        Parameters
        ----------
        cells : sequence of Cell
            All cells, the same for every part.
        costs : Mapping, optional
            What cells took before, the same for every part; else a cell counts as its backend says.

        Raises
        ------
        NothingToRun
            When nothing is left for this part.
        """
        taken = [0.0] * self.of
        mine = set()
        for cost, _, cell in sorted(
            ((cost_of(cell, costs or {}), _spread(cell), cell.id) for cell in cells), reverse=True
        ):
            place = min(range(self.of), key=lambda number: (taken[number], number))
            taken[place] += cost
            if place == self.number - 1:
                mine.add(cell)
        if not mine:
            raise NothingToRun(
                f"nothing is left for part {self.number} of {self.of}: there are {len(cells)} cells in all"
            )
        return [cell for cell in cells if cell.id in mine]

    def in_plan(self, cells: Sequence[Cell], costs: Costs | None = None) -> dict[str, Any]:
        """The entry of a plan for this part: a hash of all cells and their costs, which decide on the parts."""
        lines = sorted(f"{cell.id}\0{cost_of(cell, costs or {})!r}" for cell in cells)
        whole = hashlib.sha256("\0".join(lines).encode()).hexdigest()[:16]
        return {"number": self.number, "of": self.of, "whole": whole}


def costs_of(records: Iterable[Mapping[str, Any]]) -> Costs:
    """Seconds of the cells of records: the longest over architectures and releases."""
    found: dict[tuple[str, str, str], float] = {}
    for record in records:
        key = (record["case"], record["variant"], record["backend"])
        found[key] = max(found.get(key, 0.0), float(record["seconds"] or 0.0))
    return found


def cost_of(cell: Cell, costs: Costs) -> float:
    """Seconds that a cell may take."""
    backend = cell.toolchain.backend
    return costs.get((cell.case.name, cell.variant.name, backend)) or BACKENDS[backend].seconds


def _spread(cell: Cell) -> str:
    # Neighbours fail alike and take alike: they are dealt out by a hash, which no other cell that comes or goes changes.
    return hashlib.sha256(cell.id.encode()).hexdigest()
