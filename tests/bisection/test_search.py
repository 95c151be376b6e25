"""The search itself: generated histories with any number of borders and releases that cannot be tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bisection.search import Search, sweep

Truth = Sequence[Mapping[str, str | None]]

NUMBA = (
    "0.57.0 0.57.1 0.58.0 0.58.1 0.59.0 0.59.1 0.60.0 0.61.0 0.61.1 0.61.2 0.62.0 0.62.1 0.63.0 0.63.1 0.64.0".split()
)
CUDA = "11.7 11.8 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9 13.0 13.1 13.2 13.3 13.4 13.5".split()


def run(search: Search[str], truth: Truth) -> list[list[int]]:
    """Search to the end; return the places that each round tries."""
    rounds = []
    while places := search.next():
        rounds.append(places)
        for place in places:
            search.add(place, truth[place])
    return rounds


def one(*seen: str | None) -> Truth:
    return [{"sm_80": each} for each in seen]


def borders_of(search: Search[str], lane: str = "sm_80") -> list[tuple[str, str]]:
    return [(search.versions[border.before], search.versions[border.after]) for border in search.borders(lane)]


def test_a_release_that_alone_differs_is_found_with_both_its_borders() -> None:
    truth = one(*("rejected" if version == "0.59.0" else "built" for version in NUMBA))
    search = Search[str](NUMBA)
    run(search, truth)
    assert borders_of(search) == [("0.58.1", "0.59.0"), ("0.59.0", "0.59.1")]
    assert len(search.tried) < len(NUMBA)


def test_a_history_that_comes_back_to_where_it_was() -> None:
    truth = one(*("built" if version in ("12.4", "12.5", "12.6") else "rejected" for version in CUDA))
    search = Search[str](CUDA)
    first, *_ = run(search, truth)
    assert len(first) <= len(CUDA) // 2
    assert borders_of(search) == [("12.3", "12.4"), ("12.6", "12.8")]
    assert len(search.tried) < len(CUDA)


def test_each_lane_has_borders_of_its_own() -> None:
    truth = [
        {"sm_50": "built" if v < "13" else "unknown", "sm_100": "built" if v >= "12.8" else "unknown"} for v in CUDA
    ]
    search = Search[str](CUDA)
    run(search, truth)
    assert borders_of(search, "sm_50") == [("12.9", "13.0")]
    assert borders_of(search, "sm_100") == [("12.6", "12.8")]


def test_a_lane_that_only_some_releases_have() -> None:
    truth = [
        {"nvrtc": "built", **({"nvcc": "built" if v >= "13.3" else "rejected"} if v >= "13" else {})} for v in CUDA
    ]
    search = Search[str](CUDA)
    run(search, truth)
    assert borders_of(search, "nvrtc") == []
    assert borders_of(search, "nvcc") == [("13.2", "13.3")]


def test_what_could_not_be_tried_lies_between_the_sides_of_a_border() -> None:
    versions = [f"1.{minor}" for minor in range(9)]
    search = Search[str](versions)
    run(search, one("a", "a", "a", None, None, "b", "b", "b", "b"))
    (border,) = search.borders("sm_80")
    assert (border.before, border.after, [*border.between]) == (2, 5, [3, 4])


def test_where_the_oldest_cannot_be_tried_the_first_that_can_is_found() -> None:
    versions = [f"0.{minor}.0" for minor in range(64)]
    search = Search[str](versions)
    run(search, one(*[None] * 29, *["a"] * 35))
    history = search.history("sm_80")
    assert (history[28], history[29]) == (None, "a")
    assert len(search.tried) < 20


def test_nothing_that_can_be_tried_ends_the_search_with_its_sweep() -> None:
    search = Search[str](NUMBA)
    rounds = run(search, [{}] * len(NUMBA))
    assert len(rounds) == 1
    assert search.lanes == []


def test_what_is_known_to_be_hopeless_is_not_tried() -> None:
    truth = one(*[None] * 5, *("rejected" if version == "0.59.0" else "built" for version in NUMBA[5:]))
    search = Search[str](NUMBA, hopeless=NUMBA[:5])
    tried = [place for places in run(search, truth) for place in places]
    assert min(tried) == 5
    assert search.history("sm_80")[0] is None
    assert borders_of(search) == []


def test_what_is_not_installed_leaves_the_sweep_as_fine_as_before() -> None:
    hopeless = {"0.58.0", "0.61.0", "0.61.1", "0.62.0", "0.64.0"}
    truth = one(*(None if each in hopeless else "rejected" if each == "0.59.0" else "built" for each in NUMBA))
    search = Search[str](NUMBA, hopeless=hopeless)
    run(search, truth)
    assert borders_of(search) == [("0.58.1", "0.59.0"), ("0.59.0", "0.59.1")]


def test_every_release_is_tried_where_that_is_asked_for() -> None:
    search = Search[str](NUMBA, every=True)
    assert run(search, one(*["a"] * len(NUMBA))) == [list(range(len(NUMBA)))]


def test_what_is_left_to_try_is_told_beforehand() -> None:
    truth = one(*("built" if version in ("12.4", "12.5", "12.6") else "rejected" for version in CUDA))
    search = Search[str](CUDA)
    assert search.left() == len(search.next())
    for place in search.next():
        search.add(place, truth[place])
    before, told_before = len(search.tried), search.left()
    run(search, truth)
    assert len(search.tried) - before <= told_before


@pytest.mark.parametrize("versions", [[], ["1.0"], ["1.0", "2.0"], ["what", "ever"]])
def test_short_and_odd_lists(versions: list[str]) -> None:
    search = Search[str](versions)
    run(search, one(*versions))
    assert len(search.tried) == len(versions)


def test_no_place_is_tried_twice() -> None:
    search = Search[str](["1.0", "2.0"])
    search.add(0, {})
    with pytest.raises(ValueError, match=r"1\.0 was tried already"):
        search.add(0, {})


def versions_of(series: Sequence[Sequence[int]]) -> list[str]:
    return [
        f"{a}.{b}.{c}" for a, minors in enumerate(series) for b, patches in enumerate(minors) for c in range(patches)
    ]


VERSIONS = st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=8), min_size=1, max_size=4).map(versions_of)


@st.composite
def histories(draw: st.DrawFn, *, skips: bool = True) -> tuple[list[str], Truth]:
    """Releases with up to four outcomes in runs, two lanes, and releases that cannot be tried."""
    versions = draw(VERSIONS)

    def lane() -> list[str | None]:
        seen: list[str | None] = []
        while len(seen) < len(versions):
            seen += [draw(st.sampled_from("abcd"))] * draw(st.integers(1, len(versions)))
        if skips:
            for place in draw(st.sets(st.integers(0, len(versions) - 1), max_size=len(versions) // 2)):
                seen[place] = None
        return seen[: len(versions)]

    lanes = [lane(), lane()]
    return versions, [{"sm_80": a, "sm_90": b} for a, b in zip(*lanes, strict=True)]


@given(histories())
def test_what_it_tells_is_true_and_as_close_as_can_be(made: tuple[list[str], Truth]) -> None:
    versions, truth = made
    search = Search[str](versions)
    rounds = run(search, truth)
    tried = [place for places in rounds for place in places]
    assert len(tried) == len(set(tried)) <= len(versions)
    assert rounds[0] == sweep(versions)
    for lane in ("sm_80", "sm_90"):
        for border in search.borders(lane):
            before, after = truth[border.before][lane], truth[border.after][lane]
            assert before != after and None not in (before, after)
            assert all(truth[place][lane] is None for place in border.between)


@given(histories(skips=False))
def test_no_border_between_two_that_were_tried_is_overlooked(made: tuple[list[str], Truth]) -> None:
    versions, truth = made
    search = Search[str](versions)
    run(search, truth)
    history = search.history("sm_80")
    for a, b in pairwise(history):
        if history[a] != history[b]:
            assert b == a + 1
    # A run of releases with one outcome is found completely if it contains a release of the sweep.
    found = {border.after for border in search.borders("sm_80")}
    for place in range(1, len(versions)):
        if truth[place]["sm_80"] != truth[place - 1]["sm_80"]:
            runs = [place - 1, place]
            while runs[0] > 0 and truth[runs[0] - 1]["sm_80"] == truth[place - 1]["sm_80"]:
                runs[0] -= 1
            while runs[1] + 1 < len(versions) and truth[runs[1] + 1]["sm_80"] == truth[place]["sm_80"]:
                runs[1] += 1
            middle = set(sweep(versions))
            if middle & set(range(runs[0], place)) and middle & set(range(place, runs[1] + 1)):
                assert place in found


@given(histories())
def test_with_every_release_tried_every_border_is_found(made: tuple[list[str], Truth]) -> None:
    versions, truth = made
    search = Search[str](versions, every=True)
    run(search, truth)
    known = [seen["sm_80"] for seen in truth if seen["sm_80"] is not None]
    assert len(search.borders("sm_80")) == sum(a != b for a, b in pairwise(known))


@given(VERSIONS)
def test_a_sweep_holds_both_ends_and_leaves_no_wide_gap(versions: list[str]) -> None:
    places = sweep(versions)
    assert places[0] == 0 and places[-1] == len(versions) - 1
    assert all(b - a <= max(2, round(len(versions) ** 0.5)) for a, b in pairwise(places))
