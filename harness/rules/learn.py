"""Learn the smallest ordered list of rules from examples; the first rule that holds counts.

The smallest list of all cannot be found in any useful time; this one is found by taking boxes one after another, in several ways, each
time from what is left, and by making the list smaller afterwards for as long as every example still comes out right.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from harness.rules.search import Found, boxes
from harness.rules.shrink import shrink
from harness.rules.table import Example, Inseparable, Table, TooManyRules, make_table
from harness.rules.text import spell_rule
from harness.rules.way import Step, cost_of

__all__ = ["Example", "Inseparable", "Rule", "TooManyRules", "learn"]

MAX_RULES = 40
"""More rules than this say no more than a list of cells."""


@dataclass(frozen=True)
class Rule:
    """A condition, and what comes out where it holds.

    Parameters
    ----------
    condition : str
        In the language of `harness.model.Condition`; empty where it always holds.
    outcome : Hashable
        As in the examples.
    """

    condition: str
    outcome: Hashable


def learn(examples: Sequence[Example], *, most: int = MAX_RULES) -> list[Rule]:
    """The smallest list of rules found that gives every example its outcome; the first rule that holds counts.

    Parameters
    ----------
    examples : sequence of Example
        Cells. Those that are settled may be left without a rule.
    most : int
        How many boxes the rules may be made of.

    Raises
    ------
    Inseparable
        When two examples with different outcomes differ in nothing that a condition can ask.
    TooManyRules
        When more than `most` are needed.
    """
    table = make_table(examples, grouped=True)
    steps = _best(table, most)
    if steps is None:
        # Values that make no difference each by itself may make one together.
        table = make_table(examples, grouped=False)
        steps = _best(table, most)
    if steps is None:
        raise TooManyRules(f"more than {most} conditions are needed")
    return [Rule(spell_rule(table, step.boxes), table.outcomes[step.outcome]) for step in steps]


def _best(table: Table, most: int) -> list[Step] | None:
    """The cheapest of the lists that several ways of choosing lead to."""
    found: list[list[Step]] = []
    for everything in (False, True):
        for thrifty in (False, True):
            steps = _cover(table, most, everything=everything, thrifty=thrifty)
            if steps is None:
                break
            found.append(shrink(table, steps))
    return min(found, key=cost_of, default=None)


def _cover(table: Table, most: int, *, everything: bool, thrifty: bool) -> list[Step] | None:
    """Take boxes until no cell needs one; None where it takes too many.

    Parameters
    ----------
    table : Table
        The cells.
    most : int
        How many boxes there may be.
    everything : bool
        Make rules for settled cells as well: an exception first may make the rule after it smaller.
    thrifty : bool
        Prefer boxes with many cells for what they cost, not those with most cells.
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
        # Boxes hardly get larger: what does not fit the rest of them by far never will.
        if best is None or (left & need).bit_count() > 2 * best[3].cells.bit_count() * (most - len(steps)):
            return None
        steps.append(Step(best[2], (best[3].box,)))
        left &= ~table.cells_of(best[3].box)
    return steps
