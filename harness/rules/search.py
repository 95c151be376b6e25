"""Finding boxes: conjunctions of comparisons that hold for many cells of one outcome and for none of another."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from harness.rules.literals import Literal
from harness.rules.table import Table

_WIDTH = 10
_DEPTH = 8
_FINISHED = 12


@dataclass(frozen=True)
class Found:
    """A box.

    Parameters
    ----------
    box : dict
        Comparisons by axis.
    cells : int
        The matching cells, of those examined.
    cost : float
        Of reading it.
    """

    box: dict[int, Literal]
    cells: int
    cost: float


@dataclass(frozen=True)
class _State:
    """Groups that are left of each axis, and the cells in them."""

    chosen: tuple[int, ...]
    good: int
    bad: int


def boxes(table: Table, want: int, bad: int) -> list[Found]:
    """Boxes that hold for some of `want` and for none of `bad`, each as simple as can be; a beam search from the box that has all.

    Parameters
    ----------
    table : Table
        The cells.
    want, bad : int
        Cells.
    """
    start = _State(tuple(axis.everything for axis in table.axes), want, bad)
    finished: dict[tuple[int, ...], _State] = {}
    beam = [start]
    for _ in range(_DEPTH):
        grown: dict[tuple[int, ...], tuple[float, _State]] = {}
        for state in beam:
            if not state.bad:
                finished[state.chosen] = state
                continue
            for gain, made in _narrower(table, state):
                grown.setdefault(made.chosen, (gain, made))
        best = sorted(grown.values(), key=lambda pair: (-pair[0], pair[1].chosen))
        for _, state in best:
            if not state.bad:
                finished.setdefault(state.chosen, state)
        beam = [state for _, state in best if state.bad][:_WIDTH]
        if not beam:
            break
    most = sorted(finished.values(), key=lambda state: (-state.good.bit_count(), state.chosen))[:_FINISHED]
    return [found for state in most if (found := _found(table, state, want, bad))]


def _narrower(table: Table, state: _State) -> Iterator[tuple[float, _State]]:
    """States with one axis narrowed, with what that gains (as FOIL counts it: what stays good, by how much purer it is)."""
    total_good, total_bad = state.good.bit_count(), state.bad.bit_count()
    before = math.log2(total_good / (total_good + total_bad))
    ranked = []
    for number, axis in enumerate(table.axes):
        good = [(state.good & cells).bit_count() for cells in axis.cells]
        bad = [(state.bad & cells).bit_count() for cells in axis.cells]
        for chosen, kept, wrong in _choices(good, bad, ordered=axis.kind.ordered):
            if kept and wrong < total_bad:
                gain = kept * (math.log2(kept / (kept + wrong)) - before) / axis.weight
                ranked.append((gain, number, state.chosen[number] & chosen))
    ranked.sort(key=lambda each: (-each[0], each[1], each[2]))
    for gain, number, left in ranked[: 2 * _WIDTH]:
        cells = table.axes[number].cells_of(left)
        narrowed = (*state.chosen[:number], left, *state.chosen[number + 1 :])
        yield gain, _State(narrowed, state.good & cells, state.bad & cells)


def _choices(good: list[int], bad: list[int], *, ordered: bool) -> Iterator[tuple[int, int, int]]:
    """Candidate sets of groups, with the number of good and bad cells they keep; the last place is for cells without a value."""
    count = len(good) - 1
    some = [place for place, number in enumerate(good) if number]
    pure = [place for place in some if not bad[place]]
    for places in (some, pure):
        yield (
            sum(1 << place for place in places),
            sum(good[place] for place in places),
            sum(bad[place] for place in places),
        )
    everything = (1 << count) - 1
    all_good, all_bad = sum(good[:count]), sum(bad[:count])
    below_good = below_bad = 0
    for place in range(count):
        if ordered and place:
            yield (1 << place) - 1, below_good, below_bad
            yield everything ^ ((1 << place) - 1), all_good - below_good, all_bad - below_bad
        if good[place]:
            yield 1 << place, good[place], bad[place]
        if bad[place] and not ordered:
            yield everything ^ (1 << place), all_good - good[place], all_bad - bad[place]
        below_good += good[place]
        below_bad += bad[place]


def _found(table: Table, state: _State, want: int, bad: int) -> Found | None:
    """The comparisons of a state; None if no comparison expresses it."""
    box: dict[int, Literal] = {}
    good = state.good
    narrowed = [number for number, axis in enumerate(table.axes) if state.chosen[number] != axis.everything]
    for number in narrowed:
        must = table.groups(number, good)
        literal = table.spell(number, must, table.groups(number, table.everything) & ~state.chosen[number])
        if literal is None:
            return None
        box[number] = literal
    if table.cells_of(box) & bad:
        return None
    box = table.simplest(box, good, bad)
    cells = table.cells_of(box)
    return Found(box, cells & want, sum(literal.cost for literal in box.values()))
