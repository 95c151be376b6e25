"""From a request to cells: backends, toolkits, targets and --where."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends import BACKENDS
from harness.engine import plan as plan_module
from harness.engine.environment import Environment
from harness.engine.plan import choose_backends, plan
from harness.errors import NothingToRun, UsageError
from harness.model import Case, Target, ToolkitRef, Variant
from harness.model.target import parse_targets
from harness.protocol.messages import Distribution
from harness.toolkits import parse_toolkits, rocm

NAMES = [
    "nvrtc",
    "cupy-nvrtc",
    "cupy-jitify",
    "numba",
    "numba-cuda",
    "numba-cuda-mlir",
    "nvcc",
    "ptxas",
    "torch-nvcc",
    "cuda-core",
    "triton",
    "cute-dsl",
    "warp",
    "cutile",
    "clang",
    "hiprtc",
    "hip-clang",
]


def environment(**versions: str) -> Environment:
    found = {name.replace("_", "-"): Distribution(v) for name, v in versions.items()}
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


def ids(where: str | None = None, backends: str = "nvrtc,numba", cases: list[Case] = CASES) -> list[str]:
    here = environment(numba="0.59.1")
    return [cell.id for cell in plan(cases, choose_backends(backends, here), TOOLKITS, TARGETS, here, where)]


def test_the_product_of_everything() -> None:
    cells = ids()
    assert len(cells) == len(set(cells)) == 2 * 2 * 2 * 2 + 1 * 2 * 2 * 2  # NVRTC accepts both cases, Numba one of them
    assert cells[0] == "wmma/half[size=1] nvrtc cuda12.4 sm_80"
    assert cells[-1] == "sync/grid[size=2] numba@0.59.1 cuda13.0 sm_90a"


@pytest.mark.parametrize(
    ("toolkits", "named", "planned"),
    [
        ("12.4", False, {"12.8@bundled"}),
        ("12.4,12.8", True, {"12.4", "12.8"}),
        ("12.8@bundled,13.0,12.9@bundled", True, {"12.8@bundled", "13.0"}),
    ],
)
def test_a_library_with_tools_of_its_own_takes_those_unless_a_toolkit_is_named(
    toolkits: str, named: bool, planned: set[str]
) -> None:
    here = environment(triton="3.5.0")
    cells = plan(
        [case("tensor/dot", "triton")], choose_backends("triton", here), parse_toolkits(toolkits), TARGETS, here,
        toolkits_named=named,
    )  # fmt: skip
    assert {str(cell.toolchain.toolkit) for cell in cells} == planned


@pytest.mark.parametrize(
    ("version", "built"),
    [
        ("0.23.0", ["sm_80", "sm_90", "sm_90a", "sm_120", "compute_90"]),
        ("0.24.0", ["sm_80", "sm_90a", "sm_120a", "compute_90"]),
        ("0.30.4", ["sm_80", "sm_90a", "sm_120a", "compute_90"]),
    ],
)
def test_numba_cuda_is_asked_for_what_it_builds(version: str, built: list[str]) -> None:
    here = environment(numba="0.68.1", numba_cuda=version)
    asked = [Target.parse(name) for name in ("sm_80", "sm_90", "sm_90a", "sm_120", "compute_90")]
    cells = plan(
        [case("sync/grid", "cuda", "python")], choose_backends("numba-cuda,nvrtc", here), TOOLKITS[1:], asked, here
    )

    def targets(backend: str) -> list[str]:
        return list(dict.fromkeys(str(cell.target) for cell in cells if cell.toolchain.backend == backend))

    assert targets("numba-cuda") == built
    assert targets("nvrtc") == [str(target) for target in asked]


def test_cells_of_one_toolchain_come_together() -> None:
    toolchains = [re.sub(r"^\S+ | sm_\w+$", "", cell) for cell in ids()]
    assert len(list(dict.fromkeys(toolchains))) == 4
    assert toolchains == sorted(toolchains, key=list(dict.fromkeys(toolchains)).index)


@pytest.mark.parametrize(
    ("where", "pattern"),
    [
        ('topic == "wmma"', r"wmma"), ('case in ("wmma/half",)', r"wmma"), ('"NUMBA" in cell', "numba"), ('target == "sm_90a" and backend == "numba"', r"numba.*sm_90a"),
        ('size == 2 and toolkit < "13.0"', r"size=2.*cuda12\.4"), ('variant == "size=1"', r"\[size=1\]"), ('"=1" in variant', r"\[size=1\]"),
        ('cc >= "9.0"', "sm_90a"), ('numba < "0.60" and library == "0.59.*"', "numba@"), ('not suffix == "a"', "sm_80"),
    ],
)  # fmt: skip
def test_cells_are_chosen_by_conditions(where: str, pattern: str) -> None:
    expected = [cell for cell in ids() if re.search(pattern, cell)]
    assert ids(where) == expected
    assert 0 < len(expected) < len(ids())


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ('bakend == "nvrtc"', r'^--where, character 1: unknown name \'bakend\' \(did you mean "backend"\?\)'),
        ('cc > "8.0" and backend == "nvrct"', r'^--where, character 27: backend is never \'nvrct\' \(did you mean "nvrtc"\?\)'),
        ('"jitfy" in backend', r"'jitfy' is in no backend \(did you mean \"cupy-jitify\"\?\)"),
        ('target == "sm80"', r'target is never \'sm80\' \(did you mean "sm_80"\?\)'),
        ('suffix != "b"', r"suffix is never 'b'; known are \"\", a, f$"),
        ("siz == 1", r'did you mean "size"'),
        ("size == 3", r"size is never 3"),
        ('status == "built"', r"unknown name 'status'"),
        ("cc >= ", r"^--where, character 6: cannot read the condition 'cc >= '|^--where, character 6: .*missing at its end"),
        ("(" * 3000 + "wmma", r"may have 2000 characters"),
    ],
)  # fmt: skip
def test_conditions_that_cannot_be_read(where: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ids(where)


def test_versions_are_those_of_the_environment_whichever_backend_compiles() -> None:
    assert ids('numba < "0.60"') == ids()
    with pytest.raises(NothingToRun):
        ids('cupy < "13.1"')
    assert {cell.split()[1] for cell in ids('library < "0.60"')} == {"numba@0.59.1"}


def test_an_architecture_that_no_table_has_can_be_chosen_where_a_cell_has_it() -> None:
    here, new = environment(), Target.parse("sm_999")
    chosen = plan(CASES, choose_backends("nvrtc", here), TOOLKITS[:1], [*TARGETS, new], here, 'target == "sm_999"')
    assert {cell.target for cell in chosen} == {new}


def test_a_condition_that_holds_for_no_cell_leaves_nothing_to_run() -> None:
    with pytest.raises(NothingToRun, match=r'^no cell is left of 24 --where cc < "5.0"$') as caught:
        ids('cc < "5.0"')
    assert caught.value.exit_code == 3


def test_a_parameter_of_one_case_is_none_of_another() -> None:
    other = replace(
        case("sync/other", "cuda"), variants=(Variant(labels={"size": "large", "mode": "x"}, definitions={}),)
    )
    assert len(ids("size > 1", "nvrtc", [*CASES, other])) == 2 * 4
    assert len(ids('mode == "x"', "nvrtc", [*CASES, other])) == 4
    assert len(ids('not mode == "x"', "nvrtc", [*CASES, other])) == 2 * 2 * 4
    # A case's parameter with a reserved name is selected by the name of the variant.
    named = replace(other, variants=(Variant(labels={"case": "mine"}, definitions={}),))
    assert ids('case == "sync/other"', "nvrtc", [named]) == ids('variant == "case=mine"', "nvrtc", [named]) != []


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ({}, ["nvrtc", "nvcc", "ptxas"]),
        ({"cupy_cuda12x": "13.6.0"}, ["nvrtc", "cupy-nvrtc", "cupy-jitify", "nvcc", "ptxas"]),
        ({"numba": "0.59.1"}, ["nvrtc", "numba", "nvcc", "ptxas"]),
        ({"numba": "0.61.2", "numba_cuda": "0.15.0"}, ["nvrtc", "numba-cuda", "nvcc", "ptxas"]),
        ({"torch": "2.11.0"}, ["nvrtc", "nvcc", "ptxas", "torch-nvcc"]),
    ],
)
def test_backends_that_an_environment_has(
    versions: dict[str, str], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "find_rocm", dict)
    assert [info.name for info in choose_backends(None, environment(**versions))] == expected


@pytest.mark.parametrize(
    ("targets", "named", "planned"),
    [
        ("sm_80", (False, False), ["gfx90a", "gfx942", "gfx1100"]),
        ("sm_80", (True, False), []),
        ("sm_80,gfx906", (True, False), ["gfx906"]),
        ("sm_80,gfx906", (True, True), ["sm_80", "gfx906"]),
    ],
)
def test_a_compiler_of_hip_is_for_amd_and_takes_the_machine_s_rocm(
    targets: str, named: tuple[bool, bool], planned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocm, "find_rocm", lambda: {"6.3": Path("/opt/rocm")})
    cells = plan(
        [case("hip/one", "hip")], [BACKENDS["hiprtc"]], TOOLKITS, parse_targets(targets), environment(),
        targets_named=named[0], backends_named=named[1],
    )  # fmt: skip
    assert list(dict.fromkeys(str(cell.target) for cell in cells)) == planned
    assert {cell.toolchain.name for cell in cells} == ({"hiprtc rocm6.3"} if planned else set())


def test_a_named_rocm_is_for_compilers_of_hip_alone() -> None:
    refs = parse_toolkits("12.4,1.9@rocm")
    cells = plan([case("a/both", "cuda", "hip")], [BACKENDS["nvrtc"], BACKENDS["hiprtc"]], refs, TARGETS, environment())
    assert {cell.toolchain.name for cell in cells} == {"nvrtc cuda12.4", "hiprtc rocm1.9"}


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
