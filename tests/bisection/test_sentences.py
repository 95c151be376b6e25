"""Sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import record_builders as make
from bisection_builders import FAULT, GONE, NO, OTHER_WORDS, REFUSED, UNKNOWN, YES, history

from harness.bisection.search import Ends
from harness.bisection.sentences import BorderSentence, groups_of, tell
from harness.model import Expectation, Outcome


def borders_of(
    outcomes: Mapping[str, Sequence[Outcome]],
    expected: Expectation = make.BUILT,
    good: int | None = None,
    bad: int | None = None,
) -> list[BorderSentence]:
    search, seen = history(outcomes, expected)
    judge = partial(Ends(tuple(search.versions), good, bad).good_of, seen)
    return tell(search.versions, groups_of(seen, judge), search.borders, lambda version: f"lib {version}", judge)


def sentences(*outcomes: Outcome, expected: Expectation = make.BUILT, good: int | None = None) -> list[str]:
    return [each.sentence for each in borders_of({"sm_80": outcomes}, expected, good)]


def test_broken_and_mended() -> None:
    assert sentences(YES, NO, YES) == [
        "lib 1.1 broke it: rejected at compile: incomplete type is not allowed; 1.0: built",
        "lib 1.2 fixed it: built; 1.1: rejected at compile",
    ]
    assert sentences(YES, NO, YES, expected=FAULT) == sentences(YES, NO, YES)


def test_a_refusal_that_is_meant_is_neither() -> None:
    fine = [each.kind for each in borders_of({"sm_80": [NO, YES, NO]}, REFUSED)]
    assert fine == ["changed", "changed"]
    assert sentences(NO, NO, expected=REFUSED) == []


def test_who_names_a_good_release_says_what_good_is() -> None:
    first, second = sentences(NO, YES, NO, good=0)
    assert first == "lib 1.1 broke it: built; 1.0: rejected at compile: incomplete type is not allowed"
    assert second == "lib 1.2 fixed it: rejected at compile: incomplete type is not allowed; 1.1: built"


def test_one_failure_takes_the_place_of_another() -> None:
    assert sentences(NO, OTHER_WORDS) == [
        "lib 1.1 says something else: rejected at assemble: something else is wrong; 1.0: rejected at compile: incomplete type is not allowed"
    ]


def test_what_was_not_applicable() -> None:
    assert sentences(UNKNOWN, YES, UNKNOWN) == [
        "lib 1.1 builds it; 1.0: not applicable (CUDA 12.4 knows no sm_100 (ptxas --help))",
        "lib 1.2 does not take it any more (CUDA 12.4 knows no sm_100 (ptxas --help)); 1.1: built",
    ]


def test_releases_between_that_could_not_be_tried_are_named() -> None:
    (one,) = sentences(YES, GONE, GONE, NO)
    assert one.startswith("lib 1.3 (or 1.1, 1.2, which gave no answer) broke it")
    (many,) = sentences(YES, *[GONE] * 5, NO)
    assert "(or 1.1 to 1.5, which gave no answer)" in many


def test_a_border_that_several_have_is_told_once() -> None:
    found = borders_of(
        {"sm_75": [NO, YES, NO], "sm_80": [NO, YES, YES], "sm_90": [NO, YES, YES], "sm_100": [YES, YES, YES]}
    )
    assert [(each.name, each.border.after, each.kind) for each in found] == [
        ("sm_75–sm_90", 1, "fixed"),
        ("sm_75", 2, "broke"),
    ]


def test_no_border_without_a_change() -> None:
    assert sentences(YES, GONE, YES) == []
