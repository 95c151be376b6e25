"""Ranges of values, untried values between them, and their texts."""

from __future__ import annotations

import pytest

from harness.matrix.axes import version_key
from harness.matrix.ranges import Range, between, consecutive, ranges, spell, spell_part

KNOWN = ("11.8", "12.0", "12.4", "12.9", "12.10", "13.0")


def test_a_range_ends_where_the_outcome_changes() -> None:
    tried = [("11.8", "fails"), ("12.4", "works"), ("12.10", "works"), ("13.0", "fails")]
    assert ranges(tried, KNOWN, version_key) == [
        Range("fails", ("11.8",)),
        Range("works", ("12.4", "12.10"), before="11.8", untried=("12.0",)),
        Range("fails", ("13.0",), before="12.10"),
    ]
    assert ranges([], KNOWN, version_key) == []


def test_values_between_two_are_in_order_of_their_key() -> None:
    assert between("12.4", "13.0", KNOWN, version_key) == ("12.9", "12.10")
    assert between("local", "13.0", KNOWN, lambda text: [int(part) for part in text.split(".") if part.isdigit()]) == ()


def test_values_that_follow_each_other() -> None:
    assert consecutive({"11.8", "12.0", "12.9"}, KNOWN) == [("11.8", "12.0"), ("12.9",)]


@pytest.mark.parametrize(
    ("values", "more", "text"),
    [
        ([], {}, ""),
        (["1"], {}, "1"),
        (["1", "2"], {}, "1 to 2"),
        (["1", "2"], {"whole": 2}, "1, 2"),
        (["1", "2", "3"], {"whole": 3, "last": " and "}, "1, 2 and 3"),
        (["1", "2", "3"], {"whole": 2, "to": "–"}, "1–3"),
    ],
)
def test_words(values: list[str], more: dict[str, str], text: str) -> None:
    assert spell(values, **more) == text  # type: ignore[arg-type]  # one of them is a number


@pytest.mark.parametrize(
    ("values", "text"),
    [(["1"], "up to CUDA 1"), (["1", "2"], "up to CUDA 2"), (["4"], "from CUDA 4"), (["2", "3"], "CUDA 2 to 3")],
)
def test_words_for_a_part_of_an_axis(values: list[str], text: str) -> None:
    assert spell_part(values, ["1", "2", "3", "4"], "CUDA ") == text
