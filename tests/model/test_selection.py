"""docs/selection.md knows every name, and its examples can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.model.condition import NAMES, Spelled
from harness.model.condition_names import CELLS, RESULTS, read_where

TEXT = (Path(__file__).parents[2] / "docs" / "selection.md").read_text()
WRONG = 'cc >= "8.0" and bakend == "numba"'
"""What the page shows an error for."""
PARAMETERS = {"fragment": [Spelled("tf32")], "bytes": [Spelled("49156")]}


def test_every_name_is_explained() -> None:
    assert set(RESULTS) - set(NAMES) <= set(re.findall(r"`(\w+)`", TEXT))


@pytest.mark.parametrize("where", sorted(set(re.findall(r"--where '([^']+)'", TEXT)) - {WRONG}))
def test_the_examples_are_conditions(where: str) -> None:
    assert read_where(where, RESULTS, PARAMETERS).text == where


@pytest.mark.parametrize(
    "line", sorted(set(re.findall(r"cumatrix (?:run|try) [^\n]*--where '([^']+)'", TEXT)) - {WRONG})
)
def test_those_for_cells_ask_for_no_outcome(line: str) -> None:
    assert read_where(line, CELLS, PARAMETERS)


def test_the_error_is_as_the_page_shows_it() -> None:
    with pytest.raises(UsageError) as caught:
        read_where(WRONG, CELLS, {})
    assert f"cumatrix: {caught.value}" in TEXT
    assert WRONG in TEXT
