"""Making a list of rules smaller while every cell still comes out right."""

from __future__ import annotations

from collections.abc import Sequence

from harness.rules.literals import Literal
from harness.rules.search import boxes
from harness.rules.table import Box, Table
from harness.rules.way import Step, cost_of, exact


def shrink(table: Table, steps: Sequence[Step]) -> list[Step]:
    """A list that says the same of all cells, with fewer and simpler rules."""
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
    """Drop a rule if those after it can replace it, once they are separated by more."""
    for step in steps:
        fewer = _mended(table, [each for each in steps if each is not step])
        if fewer is not None and exact(table, fewer) and cost_of(fewer) < cost_of(steps):
            return fewer
    return steps


def _mended(table: Table, steps: list[Step]) -> list[Step] | None:
    """Each rule narrowed to what it is right for."""
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
    """Each box with as little in it as its place in the list asks for, from the last one up."""
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
    """Two boxes that differ in one axis, as one."""
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
    """Rules with the same outcome that ask about the same names, as one."""
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
