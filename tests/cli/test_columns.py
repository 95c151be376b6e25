"""Rows in columns."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from harness.cli.console import columns


def test_columns_are_as_wide_as_what_stands_in_them() -> None:
    assert list(columns([("a", "bb", "c"), ("aaa", "b", "")], 80)) == [["a    bb  c"], ["aaa  b"]]


def test_lines_of_a_text_stand_below_each_other() -> None:
    assert list(columns([("one\ntwo", "x"), ("", "y")], 80)) == [["one  x", "two"], ["     y"]]


def test_the_widest_column_is_folded_between_words() -> None:
    assert list(columns([("name", "one two three four")], 20)) == [["name  one two three", "      four"]]


@pytest.mark.parametrize("text", ["x" * 50, "漢" * 30, "a " + "y" * 40 + " b", "e\u0301" * 40])
def test_words_that_are_too_long_are_cut(text: str) -> None:
    (lines,) = columns([("name", text)], 30)
    assert len(lines) > 1
    assert max(map(cell_len, lines)) <= 30
    assert "".join("".join(lines).removeprefix("name").split()) == text.replace(" ", "")


def test_nothing() -> None:
    assert list(columns([], 80)) == []
