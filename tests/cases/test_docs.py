"""docs/cases.md knows every key and every name."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest

from harness.cases.schema import ARGUMENT, CASE, EXPECT, EXPECTED, LAUNCH, LIBRARY, OPTIONS, SOURCE, UNSUPPORTED, VERIFY
from harness.model import Stage
from harness.model.case import RequiredKernels
from harness.model.condition import NAMES

from .conftest import Load

TEXT = (Path(__file__).parents[2] / "docs" / "cases.md").read_text()
WORDS = {word for span in re.findall(r"`([^`\n]+)`", TEXT) for word in re.findall(r"[\w-]+", span)}


@pytest.mark.parametrize(
    "words",
    [
        CASE,
        SOURCE,
        LIBRARY,
        OPTIONS,
        LAUNCH,
        ARGUMENT,
        VERIFY,
        UNSUPPORTED,
        EXPECT,
        NAMES,
        EXPECTED,
        tuple(map(str, Stage)),
    ],
)
def test_every_word_is_explained(words: Collection[str]) -> None:
    assert set(words) <= WORDS


def test_the_first_example_is_a_case(load: Load) -> None:
    example = re.search(r"```toml\n(#:schema.*?)```", TEXT, re.DOTALL)
    assert example is not None
    assert load(example[1]).title == "Adding up in double precision"


def test_the_example_of_an_expectation_is_one(load: Load) -> None:
    start, expect = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[:2]
    assert load(start + expect).expectations[0].reason


def test_the_example_of_required_kernels_is_one(load: Load) -> None:
    start, _, kernels = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[:3]
    # Keys of the case come before its tables.
    own, _, expect = kernels.partition("\n\n")
    case = load(f"{own}\n{start}{expect}")
    assert case.kernels == RequiredKernels(names=("saxpy", "detail::reduce"))
    assert case.expectations[0].kernels == RequiredKernels()


def test_the_examples_of_libraries_are_some(load: Load) -> None:
    start, *_, known, described, order = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert [v.libraries for v in load(start + known).variants] == [{"cutlass": "3.4.1"}, {"cutlass": "4.2.0"}]
    assert load(start + described).libraries["mine"].macros == ("MINE_VERSION",)
    (rule,) = load(start + order).options
    assert (rule.when({"order": "behind"}), dict(rule.values)) == (True, {"toolkit_first": True})


def test_the_example_of_parameters_is_one(load: Load) -> None:
    start, _, _, _, parameters = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)[:5]
    assert len(load(start + parameters).variants) == 8
