"""Fold two version axes into blocks in which every target has one outcome."""

from __future__ import annotations

from typing import NamedTuple

from harness.matrix.order import version_key

Row = dict[str, str]
OutcomeGrid = dict[str, dict[str, Row]]


class Block(NamedTuple):
    """A clause in the making: outcome by target for some versions of one axis (`outer`) times some of the other."""

    outer: list[str]
    inner: list[str]
    row: Row


def fold(grid: OutcomeGrid) -> list[Block]:
    """Fold the outer axis where whole tables agree, then the inner one within each."""
    groups: list[tuple[list[str], dict[str, Row]]] = []
    for outer in sorted(grid, key=version_key):
        if groups and _tables_agree(groups[-1][1], grid[outer]):
            groups[-1][0].append(outer)
        else:
            groups.append(([outer], {}))
        for inner, row in grid[outer].items():
            groups[-1][1].setdefault(inner, {}).update(row)
    blocks: list[Block] = []
    for members, rows in groups:
        first = len(blocks)
        for inner in sorted(rows, key=version_key):
            if len(blocks) > first and _rows_agree(blocks[-1].row, rows[inner]):
                blocks[-1].inner.append(inner)
                blocks[-1].row.update(rows[inner])
            else:
                blocks.append(Block(list(members), [inner], dict(rows[inner])))
    return blocks


def _tables_agree(one: dict[str, Row], other: dict[str, Row]) -> bool:
    """Compare shared versions of the other axis; without shared versions, each table must have one outcome."""
    both = one.keys() & other.keys()
    if both:
        return all(_rows_agree(one[version], other[version]) for version in both)
    pieces = _union(one), _union(other)
    return pieces[0] is not None and pieces[1] is not None and _rows_agree(pieces[0], pieces[1])


def _union(table: dict[str, Row]) -> Row | None:
    """All rows as one, or None where they contradict each other."""
    union: Row = {}
    for row in table.values():
        if any(union.get(target, outcome) != outcome for target, outcome in row.items()):
            return None
        union.update(row)
    return union


def _rows_agree(one: dict[str, str], other: dict[str, str]) -> bool:
    """Two versions are one where the targets that both tried had the same outcome, and at least one target was tried by both."""
    both = one.keys() & other.keys()
    return bool(both) and all(one[target] == other[target] for target in both)
