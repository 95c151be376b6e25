"""Rules that are learned from cells."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version

from harness.model.condition import Condition
from harness.rules import Example, Inseparable, Rule, TooManyRules, learn

TOOLKITS = ("11.8", "12.4", "12.6", "12.9", "13.0")
CAPABILITIES = ("5.0", "6.0", "7.0", "7.5", "8.0", "9.0", "12.0")
PARAMETERS: dict[str, list[Any]] = {
    "size": [48, 49, 64, 96],
    "form": ["half", "tf32", "bf16"],
    "cached": [True, False],
}
BUILT = "built"


def cells(**axes: Sequence[Any]) -> list[dict[str, Any]]:
    """Return every combination of some axes, with versions as texts."""
    made = [
        {name: [Version(value) for value in values] if name in ("cc", "toolkit", "numba", "cupy") else list(values)}
        for name, values in axes.items()
    ]
    names = [name for each in made for name in each]
    rows = itertools.product(*(values for each in made for values in each.values()))
    return [dict(zip(names, row, strict=True)) for row in rows]


def examples(facts: Sequence[dict[str, Any]], outcome: Callable[[dict[str, Any]], str]) -> list[Example]:
    found = [(each, outcome(each)) for each in facts]
    return [Example(each, what, what == BUILT) for each, what in found]


def by(*rules: tuple[str, str]) -> Callable[[dict[str, Any]], str]:
    """Return outcomes by handwritten rules."""
    read = [(Condition.parse(text, PARAMETERS), outcome) for text, outcome in rules]
    return lambda facts: next((outcome for condition, outcome in read if condition(facts)), BUILT)


def outcomes(rules: Sequence[Rule], facts: Sequence[dict[str, Any]]) -> list[str]:
    """Rules, read as the expectations of a case are."""
    told = by(*((rule.condition, str(rule.outcome)) for rule in rules))
    return [told(each) for each in facts]


ALL = cells(cc=CAPABILITIES, toolkit=TOOLKITS, backend=("nvrtc", "nvcc", "numba"), size=PARAMETERS["size"])


@pytest.mark.parametrize(
    "condition",
    [
        'cc < "8.0"',
        'cc == "7.5"',
        'backend == "nvcc"',
        'backend != "nvcc"',
        'toolkit >= "12.4" and toolkit < "12.9"',
        "size > 48",
        'backend == "nvcc" and cc < "7.0"',
        'size > 64 and cc in ("5.0", "7.0", "9.0")',
        'size > 48 and (toolkit < "12.4" or toolkit >= "12.9")',
        'backend in ("nvrtc", "nvcc") and size == 49 and cc >= "9.0"',
        "",
    ],
)
def test_a_condition_is_found_again(condition: str) -> None:
    outcome = by((condition, "rejected"))
    (rule,) = learn(examples(ALL, outcome))
    assert outcomes([rule], ALL) == list(map(outcome, ALL))
    assert len(rule.condition) <= len(condition) + 3


def test_what_is_written_is_what_a_person_would_write() -> None:
    def only(condition: str, facts: list[dict[str, Any]]) -> str:
        (rule,) = learn(examples(facts, by((condition, "rejected"))))
        return rule.condition

    assert only('cc < "8.0"', ALL) == 'cc < "8.0"'
    assert only("size > 48", ALL) == "size > 48"
    assert only('toolkit >= "12.4" and toolkit < "12.9"', ALL) in (
        'toolkit >= "12.4" and toolkit < "12.9"',
        'toolkit in ("12.4", "12.6")',
    )
    three = cells(numba=("0.58.1", "0.59.0", "0.59.1"), cached=(True, False), cc=CAPABILITIES)
    assert only('numba == "0.59.0" and cached', three) == 'numba == "0.59.0" and cached'


def test_exceptions_come_first() -> None:
    rules = [
        ('cc < "7.0"', "no namespace"),
        ('size > 48 and cc < "8.0"', "incomplete"),
        ('backend == "nvcc"', "crashed"),
    ]
    outcome = by(*rules)
    found = learn(examples(ALL, outcome))
    assert outcomes(found, ALL) == list(map(outcome, ALL))
    assert len(found) <= len(rules)


def test_what_is_not_there_is_neither_below_nor_above() -> None:
    """Cells of NVRTC in an environment without CuPy."""
    facts = [
        *cells(backend=("cupy-nvrtc",), cupy=("12.3", "13.0", "13.1"), cc=CAPABILITIES),
        *cells(backend=("nvrtc",), cc=CAPABILITIES),
    ]
    outcome = by(('cupy < "13.1"', "rejected"))
    found = learn(examples(facts, outcome))
    assert outcomes(found, facts) == list(map(outcome, facts))
    assert [rule.condition for rule in found] == ['cupy < "13.1"']


def test_a_release_candidate_is_not_below_its_release() -> None:
    facts = cells(cupy=("13.0", "13.1rc1", "13.1"), cc=CAPABILITIES)
    for wrong in (("13.0",), ("13.0", "13.1rc1"), ("13.1rc1",)):
        told = ["rejected" if str(each["cupy"]) in wrong else BUILT for each in facts]
        found = learn([Example(each, outcome, outcome == BUILT) for each, outcome in zip(facts, told, strict=True)])
        assert outcomes(found, facts) == told


def test_the_order_of_cells_changes_nothing() -> None:
    made = examples(ALL, by(('cc < "7.0"', "a"), ('size > 48 and backend != "nvcc"', "b")))
    mixed = list(made)
    random.Random(3).shuffle(mixed)
    assert learn(mixed) == learn(made)


def test_nothing_to_learn() -> None:
    assert learn([]) == []
    assert learn(examples(ALL, by())) == []
    settled = [Example(facts, "rejected", settled=True) for facts in ALL]
    assert learn(settled) == []


def test_cells_that_nothing_tells_apart() -> None:
    with pytest.raises(Inseparable) as raised:
        learn(
            [
                Example({"cc": Version("8.0")}, "a"),
                Example({"cc": Version("9.0")}, "a"),
                Example({"cc": Version("8.0")}, "b"),
            ]
        )
    assert (raised.value.one, raised.value.other) == (0, 2)


def test_outcomes_by_chance_are_given_up() -> None:
    chance = random.Random(7)
    with pytest.raises(TooManyRules):
        learn(examples(ALL, lambda _: chance.choice(("a", BUILT))))


def test_ten_thousand_cells() -> None:
    facts = cells(cc=CAPABILITIES, toolkit=TOOLKITS, backend=("nvrtc", "nvcc"), size=range(1, 143))[: 10_000 - 60]
    outcome = by(('size > 48 and toolkit < "12.4"', "rejected"), ('backend == "nvcc" and cc < "7.0"', "crashed"))
    found = learn(examples(facts, outcome))
    assert outcomes(found, facts) == list(map(outcome, facts))
    assert len(found) == 2


values = st.fixed_dictionaries(
    {
        "cc": st.sampled_from(CAPABILITIES).map(Version),
        "toolkit": st.sampled_from(TOOLKITS).map(Version),
        "cupy": st.sampled_from((None, "12.3", "13.0", "13.1rc1", "13.1")).map(
            lambda text: Version(text) if text else None
        ),
        "backend": st.sampled_from(("nvrtc", "nvcc", "numba")),
        "suffix": st.sampled_from(("", "a", "f")),
        "virtual": st.booleans(),
        "size": st.sampled_from(PARAMETERS["size"]),
        "form": st.sampled_from(PARAMETERS["form"]),
    }
)


@given(st.lists(st.tuples(values, st.sampled_from(("a", "b", BUILT)), st.booleans()), max_size=25))
@settings(max_examples=25, deadline=None)
def test_every_cell_comes_out_as_it_was(drawn: list[tuple[dict[str, Any], str, bool]]) -> None:
    kept = {tuple(map(str, facts.values())): (facts, outcome, settled) for facts, outcome, settled in drawn}
    made = [Example(facts, outcome, settled and outcome == BUILT) for facts, outcome, settled in kept.values()]
    found = learn(made, most=100)
    conditions = [(Condition.parse(rule.condition, PARAMETERS), rule.outcome) for rule in found]
    for each in made:
        told = next((outcome for condition, outcome in conditions if condition(each.facts)), None)
        assert told == each.outcome or (told is None and each.settled)


rule_texts = st.sampled_from(
    (
        'cc < "8.0"',
        'toolkit >= "12.6"',
        'backend == "nvcc"',
        "size > 49",
        'backend != "numba" and cc >= "9.0"',
        'size == 49 and toolkit < "12.9"',
    )
)


@given(st.lists(st.tuples(rule_texts, st.sampled_from(("a", "b", BUILT))), max_size=4))
@settings(max_examples=10, deadline=None)
def test_not_more_rules_than_a_person_needs(rules: list[tuple[str, str]]) -> None:
    outcome = by(*rules)
    found = learn(examples(ALL, outcome))
    assert outcomes(found, ALL) == list(map(outcome, ALL))
    assert len(found) <= len(rules) + 1
