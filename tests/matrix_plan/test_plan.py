"""The plan of the published matrix: reading, cells, coverage and proposals."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from harness.cases.discovery import load_cases
from harness.cases.toml import CaseError
from harness.matrix_plan.coverage import Coverage, Part, Place, cells_of_part, cover, read_plan
from harness.matrix_plan.proposals import propose
from harness.model import Case

ROOT = Path(__file__).parents[2]
TARGETS = ("sm_80", "sm_90")
TOOLKITS = ("12.8", "12.9")


@pytest.fixture(scope="module")
def case() -> Case:
    return load_cases(ROOT / "cases", ["atomics/short"])[0]


def part(**changes: object) -> Part:
    options = {"backends": "nvrtc", "toolkits": ",".join(TOOLKITS), "targets": ",".join(TARGETS)}
    return Part(name="p", why="w", **{**options, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('name = "a"\nwhy = "b"\nbackends = "nvrtc"\ntoolkits = "12.9"', "plan.toml:1: part.targets: is missing"),
        ('name = "a"\nwhy = "b"\nbackends = "nvrtc"\ntargets = "sm_80"', "plan.toml:1: part.toolkits: is missing"),
        ('name = "a"\nwhy = 3', "plan.toml:3: part.why: must be a text, not 3"),
        ('name = "a"\ntargts = "sm_80"', "plan.toml:3: part.targts: is no key of a part"),
        ('backends = "nvrt"', "plan.toml:2: part.backends: unknown backend 'nvrt'"),
        ('toolkits = "12.99"', "plan.toml:2: part.toolkits: unknown CUDA release '12.99'"),
        ('targets = "sm_81"', "plan.toml:2: part.targets: "),
        ('with = ["numba=0.1.0"]\nbackends = "numba"', "plan.toml:2: part.with: --with numba=0.1.0: the index has no"),
        ('with = "numba=all"', "plan.toml:2: part.with: must be a list of texts, not 'numba=all'"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_key(tmp_path: Path, text: str, problem: str) -> None:
    needed = {"name": "a", "why": "b", "backends": "nvrtc", "toolkits": "12.9", "targets": "sm_80"}
    left_out = "is missing" in problem
    more = (
        "" if left_out else "".join(f'{key} = "{value}"\n' for key, value in needed.items() if f"{key} =" not in text)
    )
    path = tmp_path / "plan.toml"
    path.write_text(f"[[part]]\n{text}\n{more}")
    with pytest.raises(CaseError) as error:
        read_plan(path)
    assert f"{tmp_path}/{problem}" in str(error.value)


def test_a_plan_without_parts_and_two_parts_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("parts = 3\n")
    with pytest.raises(CaseError, match=r"plan.toml:1: parts: is no key of a plan"):
        read_plan(path)
    one = '[[part]]\nname = "a"\nwhy = "b"\nbackends = "nvrtc"\ntoolkits = "12.9"\ntargets = "sm_80"\n'
    path.write_text(one + one)
    with pytest.raises(CaseError, match=r"plan.toml:8: part.name: 'a' is the name of an earlier part"):
        read_plan(path)


def test_the_published_plan_has_cells_that_are_published() -> None:
    parts = read_plan(ROOT / "reports" / "matrix" / "plan.toml")
    manifest = json.loads((ROOT / "reports" / "matrix" / "manifest.json").read_text("utf-8"))
    assert {backend for each in parts for backend in each.backends.split(",")} == set(manifest["backends"])


def test_releases_of_a_library_are_cells_with_the_names_of_a_run() -> None:
    case = load_cases(ROOT / "cases", ["wmma/accumulator-16x16x8"])[0]
    cells = cells_of_part(
        part(backends="cupy-nvrtc", releases=("cupy=12.3.0,13",), toolkits="12.4", targets="sm_80"), [case]
    )
    assert {cell.id.partition("] ")[2] for cell in cells} == {
        "cupy-nvrtc@12.3.0 cuda12.4 sm_80",
        "cupy-nvrtc@13.6.0 cuda12.4 sm_80",
    }


def test_a_library_that_brings_cuda_along_needs_no_toolkits() -> None:
    (case,) = load_cases(ROOT / "cases", ["triton/matmul"])
    cells = cells_of_part(
        part(backends="triton", releases=("triton=3.3.1,3.9.0",), toolkits="", targets="sm_90"), [case]
    )
    assert {(place.library, place.toolkit) for place in map(Place.of, cells)} == {
        ("3.3.1", "12.4@bundled"),
        ("3.9.0", "12.9@bundled"),
    }


def places(case: Case, tried: set[tuple[str, str]], toolkits: str = ",".join(TOOLKITS)) -> Coverage:
    cells = cells_of_part(part(toolkits=toolkits), [case])
    done = {cell.id: "built" for cell in cells if (cell.toolchain.toolkit.release, str(cell.target)) in tried}
    return cover(part(toolkits=toolkits), cells, done)


def test_a_square_is_separated_confounded_or_untried(case: Case) -> None:
    every = set(product(TOOLKITS, TARGETS))
    found = places(case, every)
    assert (found.separated, found.confounded.total(), found.untried) == (1, 0, 0)
    assert found.total("tried") == 4 * len(case.variants)
    # A change of both axes at once.
    found = places(case, {("12.8", "sm_80"), ("12.9", "sm_90")})
    assert (found.separated, found.confounded.total(), found.untried) == (0, 1, 0)
    (pair,) = found.confounded
    assert pair == ("nvrtc", ("toolkit", "target"), TOOLKITS, TARGETS)
    found = places(case, {("12.8", "sm_80")})
    assert (found.separated, found.confounded.total(), found.untried) == (0, 0, 1)


def test_an_unavailable_place_separates_nothing_and_is_not_proposed(case: Case) -> None:
    cells = cells_of_part(part(), [case])
    found = cover(part(), cells, {cell.id: "unavailable" for cell in cells if str(cell.target) == "sm_90"})
    assert found.total("unavailable") == 2 * len(case.variants)
    assert (found.separated, found.confounded.total(), found.untried) == (0, 0, 0)
    proposed = propose([found], [case], {}, most=9)
    assert {argument for each in proposed for argument in each.argv if argument.startswith("sm_")} == {"sm_80"}


def test_the_best_command_completes_most_for_the_least_time(case: Case) -> None:
    # 12.6 lacks one target, 12.8 and 12.9 both: the missing cell completes a step with 12.5 and a square.
    tried = {("12.5", "sm_80"), ("12.5", "sm_90"), ("12.6", "sm_80")}
    found = places(case, tried, "12.5,12.6,12.8,12.9")
    first, *others = propose([found], [case], {(case.name, "nvrtc"): 1000.0}, most=9)
    variants = len(case.variants)
    assert first.argv == ("run", "atomics", "-b", "nvrtc", "-t", "12.6", "-a", "sm_90", "--timeout", "300")
    assert (first.cells, first.seconds) == (variants, 1000.0 * variants)
    # Its value: two steps and the whole square with 12.5; with 12.8, half of a step and a third of the square.
    assert first.separates == pytest.approx(3 + 1 / 2 + 1 / 3)
    assert [each.argv[each.argv.index("-t") + 1] for each in others] == ["12.8", "12.9"]
    # With 12.6 done, 12.8 completes its own step, both steps to 12.6 and the square, and half of the steps between it and 12.9.
    assert others[0].separates == pytest.approx(1 + 2 + 1 + 2 / 2 + 2 / 4)


def test_commands_fit_into_the_time(case: Case) -> None:
    found = places(case, set())
    seconds = {(case.name, "nvrtc"): 10.0}
    one = 2 * len(case.variants) * 10.0
    assert len(propose([found], [case], seconds, most=9)) == 2
    assert len(propose([found], [case], seconds, most=9, budget=one)) == 1
    assert propose([found], [case], seconds, most=9, budget=one - 1) == []


def test_a_place_is_what_one_command_compiles(case: Case) -> None:
    cells = cells_of_part(part(), [case])
    assert {Place.of(cell) for cell in cells} == {
        Place(case.name, "nvrtc", "", toolkit, target) for toolkit, target in product(TOOLKITS, TARGETS)
    }
