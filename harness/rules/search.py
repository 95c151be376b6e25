"""Search for boxes: conjunctions of comparisons that cover many cells of one outcome and none of another.

Finding the smallest list of rules takes too long. The search takes one box after another, in several ways, each time
from the remaining cells. It then shrinks the list while every example keeps its outcome.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from harness.rules.axes import Box, Example, Inseparable, Literal, Table, TooManyRules, make_table, spell_rule

_WIDTH = 10
_DEPTH = 8
_FINISHED = 12


@dataclass(frozen=True)
class Found:
    """A box with the cells that it covers.

    Parameters
    ----------
    box : dict
        Comparisons by axis.
    cells : int
        Matching cells among those examined.
    cost : float
        Cost of reading the box.
    """

    box: dict[int, Literal]
    cells: int
    cost: float


@dataclass(frozen=True)
class _State:
    """Remaining groups of each axis, and the cells in them."""

    chosen: tuple[int, ...]
    good: int
    bad: int


def boxes(table: Table, want: int, bad: int) -> list[Found]:
    """Return simple boxes that hold for some of `want` and for none of `bad`.

    The function runs a beam search that starts from the box with all cells.
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
    """Yield states with one axis narrowed, with FOIL's gain: the remaining good cells times the increase in purity."""
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
    """Yield candidate sets of groups, each with its numbers of good and bad cells; the last position is cells without a value."""
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
    """Return the comparisons of a state; None if no comparison expresses it."""
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


@dataclass(frozen=True)
class Step:
    """A rule, which holds if at least one of its boxes does.

    Parameters
    ----------
    outcome : int
        Number of the outcome.
    boxes : tuple of Box
        At least one box.
    """

    outcome: int
    boxes: tuple[Box, ...]

    def cells(self, table: Table) -> int:
        """Return the matching cells."""
        found = 0
        for box in self.boxes:
            found |= table.cells_of(box)
        return found


def exact(table: Table, steps: Sequence[Step]) -> bool:
    """Return whether every cell gets its outcome."""
    left = table.everything
    for step in steps:
        here = step.cells(table) & left
        if here & ~table.cells[step.outcome]:
            return False
        left &= ~here
    return not left & table.unsettled


def cost_of(steps: Sequence[Step]) -> tuple[float, int]:
    """Return the complexity: the cost of reading, and the number of rules."""
    total = sum(2 + sum(0.5 + sum(each.cost for each in box.values()) for box in step.boxes) for step in steps)
    return round(total, 6), len(steps)


def shrink(table: Table, steps: Sequence[Step]) -> list[Step]:
    """Return an equivalent list with fewer and simpler rules."""
    made = list(steps)
    while True:
        before = cost_of(made)
        made = _without_needless(table, made)
        made = _simpler(table, made)
        made = _united(table, made)
        made = _without_one(table, made)
        if cost_of(made) >= before:
            return _joined(table, made)


def _without_needless(table: Table, steps: list[Step]) -> list[Step]:
    for step in sorted(steps, key=lambda step: -cost_of([step])[0]):
        fewer = [each for each in steps if each is not step]
        if exact(table, fewer):
            steps = fewer
    return steps


def _without_one(table: Table, steps: list[Step]) -> list[Step]:
    """Drop a rule if the remaining rules, narrowed, replace it at a lower cost."""
    for step in steps:
        fewer = _narrowed(table, [each for each in steps if each is not step])
        if fewer is not None and exact(table, fewer) and cost_of(fewer) < cost_of(steps):
            return fewer
    return steps


def _narrowed(table: Table, steps: list[Step]) -> list[Step] | None:
    """Narrow each rule to the cells whose outcome it gives."""
    made: list[Step] = []
    left = table.everything
    for step in steps:
        here = step.cells(table) & left
        bad = left & ~table.cells[step.outcome]
        if here & bad:
            want = here & ~bad
            fits = [found for found in boxes(table, want, bad) if not want & ~found.cells] if want else []
            if not fits:
                return None
            step = Step(step.outcome, (min(fits, key=lambda found: found.cost).box,))  # noqa: PLW2901
        made.append(step)
        left &= ~step.cells(table)
    return made


def _simpler(table: Table, steps: list[Step]) -> list[Step]:
    """Simplify each box as its position in the list permits, from the last rule to the first."""
    made = list(steps)
    for place in reversed(range(len(made))):
        step = made[place]
        before = 0
        for each in made[:place]:
            before |= each.cells(table)
        left = table.everything & ~before
        box = table.simplest(step.boxes[0], left & table.cells_of(step.boxes[0]), left & ~table.cells[step.outcome])
        made[place] = Step(step.outcome, (box,))
    return made


def _united(table: Table, steps: list[Step]) -> list[Step]:
    """Merge boxes that differ in one axis."""
    made = list(steps)
    first = 0
    while first < len(made):
        for second in range(first + 1, len(made)):
            united = _union(table, made[first], made[second])
            if united is None:
                continue
            rest = [each for place, each in enumerate(made) if place not in (first, second)]
            candidates = [[*rest[:place], united, *rest[place:]] for place in (first, second - 1)]
            choices = [each for each in candidates if exact(table, each) and cost_of(each) < cost_of(made)]
            if choices:
                made = min(choices, key=cost_of)
                first = -1
                break
        first += 1
    return made


def _union(table: Table, one: Step, other: Step) -> Step | None:
    if one.outcome != other.outcome:
        return None
    mine, theirs = one.boxes[0], other.boxes[0]
    differ = [axis for axis in {*mine, *theirs} if _chosen(mine, axis) != _chosen(theirs, axis)]
    if len(differ) != 1 or differ[0] not in mine or differ[0] not in theirs:
        return None
    axis = differ[0]
    must = mine[axis].chosen | theirs[axis].chosen
    literal = table.spell(axis, must, table.axes[axis].everything & ~must)
    if literal is None:
        return None
    return Step(one.outcome, ({**mine, axis: literal},))


def _about_the_same(one: Step, other: Step) -> bool:
    mine, theirs = ({axis for box in step.boxes for axis in box} for step in (one, other))
    return mine <= theirs or theirs <= mine


def _chosen(box: Box, axis: int) -> int | None:
    found: Literal | None = box.get(axis)
    return None if found is None else found.chosen


def _joined(table: Table, steps: list[Step]) -> list[Step]:
    """Merge rules with the same outcome on the same names."""
    made = list(steps)
    first = 0
    while first < len(made):
        second = first + 1
        while second < len(made):
            one, other = made[first], made[second]
            if one.outcome == other.outcome and _about_the_same(one, other):
                both = Step(one.outcome, (*one.boxes, *other.boxes))
                rest = [each for place, each in enumerate(made) if place not in (first, second)]
                early, late = ([*rest[:place], both, *rest[place:]] for place in (first, second - 1))
                fits = next((each for each in (early, late) if exact(table, each)), None)
                if fits is not None:
                    made, second = fits, first + 1
                    continue
            second += 1
        first += 1
    return made


__all__ = ["Example", "Inseparable", "Rule", "TooManyRules", "learn"]

MAX_RULES = 40
"""A longer list of rules explains no more than a list of cells."""


@dataclass(frozen=True)
class Rule:
    """A condition, and the outcome of the cells that match it.

    Parameters
    ----------
    condition : str
        Condition in the syntax of `harness.model.condition.Condition`; empty if the rule always holds.
    outcome : Hashable
        Outcome, as in the examples.
    """

    condition: str
    outcome: Hashable


def learn(examples: Sequence[Example], *, most: int = MAX_RULES) -> list[Rule]:
    """Return the smallest list of rules found that gives every example its outcome; the first matching rule counts.

    Parameters
    ----------
    examples : sequence of Example
        Cells. Settled examples may have no rule.
    most : int
        Maximum number of boxes in all rules.

    Raises
    ------
    Inseparable
        If two examples with different outcomes have the same facts.
    TooManyRules
        If more than `most` boxes are needed.
    """
    table = make_table(examples, grouped=True)
    steps = _best(table, most)
    if steps is None:
        # Values that make no difference alone may make one together.
        table = make_table(examples, grouped=False)
        steps = _best(table, most)
    if steps is None:
        raise TooManyRules(f"more than {most} conditions are needed")
    return [Rule(spell_rule(table, step.boxes), table.outcomes[step.outcome]) for step in steps]


def _best(table: Table, most: int) -> list[Step] | None:
    """Return the cheapest list of several ways of choosing boxes."""
    found: list[list[Step]] = []
    for everything in (False, True):
        for thrifty in (False, True):
            steps = _cover(table, most, everything=everything, thrifty=thrifty)
            if steps is None:
                break
            found.append(shrink(table, steps))
    return min(found, key=cost_of, default=None)


def _cover(table: Table, most: int, *, everything: bool, thrifty: bool) -> list[Step] | None:
    """Take boxes until no cell needs one; return None if more than `most` are needed.

    Parameters
    ----------
    table : Table
        Cells.
    most : int
        Maximum number of boxes.
    everything : bool
        Make rules for settled cells as well: an exception in front may simplify the following rule.
    thrifty : bool
        Prefer boxes with many cells per cost to boxes with most cells.
    """
    left = table.everything
    need = left if everything else table.unsettled
    steps: list[Step] = []
    while left & table.unsettled:
        best: tuple[float, float, int, Found] | None = None
        for outcome, cells in enumerate(table.cells):
            want = cells & left & need
            for each in boxes(table, want, left & ~cells) if want else ():
                count = each.cells.bit_count()
                value = count / (1 + each.cost) if thrifty else float(count)
                if best is None or (value, -each.cost) > (best[0], best[1]):
                    best = (value, -each.cost, outcome, each)
        # Later boxes are rarely larger, so far more remaining cells than the remaining boxes can cover is hopeless.
        if best is None or (left & need).bit_count() > 2 * best[3].cells.bit_count() * (most - len(steps)):
            return None
        steps.append(Step(best[2], (best[3].box,)))
        left &= ~table.cells_of(best[3].box)
    return steps
