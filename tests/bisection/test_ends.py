"""``--good`` and ``--bad``."""

from __future__ import annotations

import pytest
from bisection_builders import GONE, NO, REFUSED, UNKNOWN, YES, history

from harness.bisection.search import Ends, release_of
from harness.errors import PartUnavailable, UsageError
from harness.model import Outcome

VERSIONS = ["0.57.1", "0.58.0", "0.58.1", "0.59.0", "0.59.1"]


@pytest.mark.parametrize(
    ("good", "bad", "first", "last"),
    [
        (None, None, "0.57.1", "0.59.1"),
        ("0.58.1", "0.59.0", "0.58.1", "0.59.0"),
        ("0.59.1", "0.58", "0.58.1", "0.59.1"),
        ("0.58.0", None, "0.58.0", "0.59.1"),
        (None, "0.59.0", "0.57.1", "0.59.0"),
    ],
)
def test_the_search_lies_between_what_is_named(good: str | None, bad: str | None, first: str, last: str) -> None:
    ends = Ends.of(VERSIONS, good, bad, "numba")
    assert (ends.versions[0], ends.versions[-1]) == (first, last)
    for text, place in ((good, ends.good), (bad, ends.bad)):
        assert (place is None) == (text is None)
        assert place is None or ends.versions[place].startswith(text or "")


@pytest.mark.parametrize(
    ("text", "release"), [("0.58", "0.58.1"), ("0.59.0", "0.59.0"), ("0", "0.59.1"), ("0.58.0.0", "0.58.0")]
)
def test_a_series_is_its_newest(text: str, release: str) -> None:
    assert release_of(text, VERSIONS, "numba") == release


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match=r"numba has no release '0\.99'"):
        Ends.of(VERSIONS, "0.99", None, "numba")
    with pytest.raises(UsageError, match="there is nothing between"):
        Ends.of(VERSIONS, "0.58.1", "0.58", "numba")
    with pytest.raises(UsageError, match="name the other end with --bad"):
        Ends.of(VERSIONS, "0.59.1", None, "numba")


def contradiction(*outcomes: Outcome, meant: bool = False, good: int | None = 0, bad: int | None = 1) -> str:
    search, seen = history({"sm_80": outcomes}, **({"expected": REFUSED} if meant else {}))
    return Ends(tuple(search.versions), good, bad).contradiction(seen, {})


def test_what_contradicts() -> None:
    assert contradiction(YES, NO) == ""
    assert "show the same: built" in contradiction(YES, YES)
    assert "show the same: rejected" in contradiction(NO, NO)
    assert "the other way round" in contradiction(NO, YES)
    assert contradiction(UNKNOWN, YES) == ""


def test_who_names_one_end_only_is_not_contradicted() -> None:
    assert contradiction(YES, YES, bad=None) == ""


def test_what_is_good_is_for_the_user_to_say_where_the_case_expects_a_refusal() -> None:
    assert contradiction(NO, NO, meant=True) != ""
    search, seen = history({"sm_80": [NO, YES]}, REFUSED)
    ends = Ends(tuple(search.versions), 0, 1)
    assert ends.contradiction(seen, {}) == ""
    (lane,) = {lane for _, lane in seen}
    assert [ends.good_of(seen, lane, seen[place, lane]) for place in (0, 1)] == [True, False]


def test_an_end_that_could_not_be_tried_is_no_end() -> None:
    search, seen = history({"sm_80": [GONE, YES]})
    with pytest.raises(PartUnavailable, match=r"1\.0, which --good names, could not be tried: there is no wheel"):
        Ends(tuple(search.versions), 0, 1).contradiction(seen, {0: "there is no wheel"})
