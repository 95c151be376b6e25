"""Adversarial logs are parsed in linear time.

Nothing is measured: pytest-timeout ends a test that hangs, as each of these did for more than a quarter of an hour.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.diagnostics import parse_log, read_line

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from parse_log import LOGS, read

# The time was quadratic in the length of a line, which is limited; only a large log takes that long.
LARGE = {
    "warnings with long codes": 24 << 20,
    "a placed error with a long code": 24 << 20,
    "a code of dashes": 40 << 20,
    "CMake's errors that count": 1 << 20,
    "what ptxas counts": 1 << 20,
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_log(name: str) -> None:
    read(LOGS[name](LARGE[name]))


@pytest.mark.parametrize("name", LOGS)
def test_every_log(name: str) -> None:
    read(LOGS[name](64 << 10))


@pytest.mark.parametrize("read_one", [read_line, parse_log])
def test_a_line_is_read_up_to_a_width(read_one: Callable[[str], object]) -> None:
    read_one("error " + "1" * (8 << 20))


def test_a_number_that_is_none_names_no_line() -> None:
    """A line of a program has at most nine digits; a number that no record can hold is part of the text."""
    log = f"k.cu({'9' * 500}): error: x\nk.cu(12): error: y\n"
    assert [item.line for item in parse_log(log) if item.message == "y"] == [12]
    assert all(item.line is None or item.line < 1 << 31 for item in parse_log(log))
