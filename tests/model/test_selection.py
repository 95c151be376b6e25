"""docs/selection.md has every name, and its examples are valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.version import InvalidVersion

from harness.errors import UsageError
from harness.model import Target
from harness.model.cell import CELLS, RESULTS, HostCompiler, cell_facts, none_left, read_where, toolchain_facts
from harness.model.condition import NAMES, Spelled, Version

TEXT = (Path(__file__).parents[2] / "docs" / "selection.md").read_text()
WRONG = 'cc >= "8.0" and bakend == "numba"'
"""Conditions for which the page shows an error."""
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
    with pytest.raises(UsageError, match=r"^--where: a condition may have 2000 characters"):
        read_where("x" * 2001, CELLS, {})


def test_values_of_an_outcome_are_known() -> None:
    with pytest.raises(UsageError, match=r"character 11: status is never 'bilt'.*built"):
        read_where("status == 'bilt'", RESULTS, {})
    with pytest.raises(UsageError, match="environment is never 'two'"):
        read_where("environment == 'two'", CELLS, {}, {"environment": ["one"]})


def test_facts_of_a_cell() -> None:
    told: dict[str, Any] = {"backend": "cupy-nvrtc", "release": "12.4", "headers": "12.6", "device": True}
    packages = {"numba-cuda": "0.20.0", "cupy": "13.6.0", "left-pad": "of no version"}
    host = HostCompiler(version="gcc 12.2.0, glibc 2.36")
    toolchain = toolchain_facts(**told, library="13.6.0+wheels", packages=packages, host=host)
    assert cell_facts(toolchain, Target.parse("compute_90a"), {"cutlass": "3.5"}, {"N": 4}) == {
        "backend": "cupy-nvrtc", "device": True, "wheels": True, "toolkit": Version("12.4"), "headers": Version("12.6"),
        "library": Version("13.6.0+wheels"), "cupy": Version("13.6.0"), "numba_cuda": Version("0.20.0"),
        "gcc": Version("12.2.0"), "clang": None, "glibc": Version("2.36"),
        "target": "compute_90a", "virtual": True, "suffix": "a", "cc": Version("9.0"), "N": 4, "cutlass": Version("3.5"),
    }  # fmt: skip
    assert toolchain_facts(**told, library="", packages={})["library"] is None
    with pytest.raises(InvalidVersion):
        toolchain_facts(**told, library="new", packages={})
    with pytest.raises(InvalidVersion):
        cell_facts(toolchain, Target.parse("sm_80"), {"cutlass": "new"})
    lenient = toolchain_facts(**told, library="new", packages={"cupy": "new"}, lenient=True)
    assert (lenient["library"], lenient["cupy"], lenient["wheels"]) == (None, None, False)
    assert cell_facts(lenient, Target.parse("sm_80"), {"cutlass": "new"}, lenient=True)["cutlass"] is None


def test_a_condition_for_which_no_cell_is_left_is_one_line() -> None:
    assert str(none_left("24", "cc >\n  '9.0'")) == "no cell is left of 24 --where cc > '9.0'"
