"""From a request to cells: backends, toolkits, targets and -k."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends import BACKENDS
from harness.engine.environment import Environment
from harness.engine.plan import choose_backends, plan
from harness.errors import UsageError
from harness.model import Case, Target, ToolkitRef, Variant

NAMES = ["nvrtc", "cupy-nvrtc", "cupy-jitify", "numba", "numba-cuda", "nvcc", "torch-nvcc"]


def environment(**versions: str) -> Environment:
    found = {name.replace("_", "-"): {"version": v, "requires": [], "root": True} for name, v in versions.items()}
    return Environment(name="e", python="python", version="3.11.7", distributions=found)


def case(name: str, *languages: str) -> Case:
    variants = tuple(Variant(labels={"size": size}, definitions={}) for size in (1, 2))
    return Case(
        name=name,
        path=Path("c"),
        title=name,
        sources={language: Path("k") for language in languages},
        variants=variants,
    )


CASES = [case("wmma/half", "cuda"), case("sync/grid", "cuda", "python")]
TOOLKITS = [ToolkitRef(release=r, headers=r) for r in ("12.4", "13.0")]
TARGETS = [Target.parse("sm_80"), Target.parse("sm_90a")]


def ids(expression: str | None = None, backends: str = "nvrtc,numba", cases: list[Case] = CASES) -> list[str]:
    here = environment(numba="0.59.1")
    return [cell.id for cell in plan(cases, choose_backends(backends, here), TOOLKITS, TARGETS, here, expression)]


def test_the_product_of_everything() -> None:
    cells = ids()
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2 + 1 * 2 * 2 * 2  # NVRTC takes both cases, Numba one of them
    assert cells[0] == "wmma/half[size=1] nvrtc cuda12.4 sm_80"
    assert cells[-1] == "sync/grid[size=2] numba@0.59.1 cuda13.0 sm_90a"


def test_cells_of_one_toolchain_come_together() -> None:
    toolchains = [re.sub(r"^\S+ | sm_\w+$", "", cell) for cell in ids()]
    assert len(list(dict.fromkeys(toolchains))) == 4
    assert toolchains == sorted(toolchains, key=list(dict.fromkeys(toolchains)).index)


@pytest.mark.parametrize(
    ("expression", "pattern"),
    [
        ("wmma", r"wmma"), ("WMMA", r"wmma"), ("not wmma", r"^(?!.*wmma)"), ("sm_90a and numba", r"numba.*sm_90a"),
        ("wmma or numba", r"wmma|numba"), ("not (wmma or numba)", r"^(?!.*(wmma|numba))"), ("size=2 and not 13.0", r"size=2.*cuda12\.4"),
        ("wmma and sm_80 or numba and sm_90a", r"wmma.*sm_80|numba.*sm_90a"), ("not not wmma", "wmma"), ("[size=1]", r"\[size=1\]"),
    ],
)  # fmt: skip
def test_expressions(expression: str, pattern: str) -> None:
    expected = [cell for cell in ids() if re.search(pattern, cell)]
    assert ids(expression) == expected
    assert 0 < len(expected) < len(ids())


@pytest.mark.parametrize(
    "expression", ["(wmma", "wmma)", "and", "wmma and", "or wmma", "not", "()", "wmma numba", "(((", "wmma or or numba"]
)
def test_expressions_that_cannot_be_read(expression: str) -> None:
    with pytest.raises(UsageError, match="cannot read -k"):
        ids(expression)


@given(st.lists(st.sampled_from(["wmma", "and", "or", "not", "(", ")", "sm_80", " "]), max_size=12).map(" ".join))
def test_any_expression_is_read_or_refused(expression: str) -> None:
    try:
        assert set(ids(expression)) <= set(ids())
    except UsageError:
        pass


def test_an_expression_that_is_endless_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot read -k: it may have 200 words"):
        ids("(" * 3000 + "wmma" + ")" * 3000)


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, ["nvrtc", "nvcc"]),
        ({"cupy_cuda12x": "13.6.0"}, ["nvrtc", "cupy-nvrtc", "cupy-jitify", "nvcc"]),
        ({"numba": "0.59.1"}, ["nvrtc", "numba", "nvcc"]),
        ({"numba": "0.61.2", "numba_cuda": "0.15.0"}, ["nvrtc", "numba-cuda", "nvcc"]),
        ({"torch": "2.11.0"}, ["nvrtc", "nvcc", "torch-nvcc"]),
    ],
)
def test_backends_that_an_environment_has(versions: dict[str, str], expected: list[str]) -> None:
    assert [info.name for info in choose_backends(None, environment(**versions))] == expected


def test_backends_by_name() -> None:
    here = environment()
    assert [info.name for info in choose_backends("numba, nvrtc ,numba", here)] == ["numba", "nvrtc"]
    assert [info.name for info in choose_backends("all", here)] == list(BACKENDS) == NAMES


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("nvrct", "did you mean .?nvrtc"),
        ("cupy_jitify", "did you mean .?cupy-jitify"),
        (",", "no backend is named"),
        ("x", "known are nvrtc"),
    ],
)
def test_backends_that_do_not_exist(names: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        choose_backends(names, environment())
