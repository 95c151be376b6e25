"""The cases that cumatrix comes with."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.cases.discovery import load_cases
from harness.cases.library import PAGE, check, page
from harness.cases.rules import options_for
from harness.model import Case, Cell, Stage, Status, Target, Toolchain, ToolkitRef
from harness.model.judge import expectation_of

ROOT = Path(__file__).parents[2] / "cases"
CASES = {case.name: case for case in load_cases(ROOT)}


@pytest.mark.parametrize("name", CASES)
def test_a_case_can_be_pickled_whole(name: str) -> None:
    case = CASES[name]
    again: Case = pickle.loads(pickle.dumps(case))
    assert again == case
    for old, new in zip(case.expectations, again.expectations, strict=True):
        assert new.when.tree == old.when.tree
    for before, after in zip(case.launches, again.launches, strict=True):
        definitions = case.variants[0].definitions
        assert [size(definitions) for size in after.grid] == [size(definitions) for size in before.grid]


def cell(
    name: str,
    backend: str = "nvrtc",
    target: str = "sm_80",
    toolkit: str = "12.4",
    library: str = "",
    packages: Mapping[str, str] | None = None,
    **labels: object,
) -> Cell:
    case = CASES[name]
    (variant,) = (
        variant
        for variant in case.variants
        if all(variant.labels[key] == value for key, value in labels.items()) and len(labels) == len(variant.labels)
    )
    chain = Toolchain(
        backend=backend,
        library=library,
        toolkit=ToolkitRef(release=toolkit, headers=toolkit),
        packages=packages or {},
    )
    return Cell(case=case, variant=variant, toolchain=chain, target=Target.parse(target))


def cupy(version: str) -> dict[str, Any]:
    return {"backend": "cupy-jitify", "library": version, "packages": {"cupy": version}}


def numba(version: str) -> dict[str, Any]:
    return {"backend": "numba", "library": version, "packages": {"numba": version}}


def test_nothing_is_wrong() -> None:
    assert check(ROOT) == []


def test_the_four_features_are_there() -> None:
    assert {case.topic for case in CASES.values()} >= {"wmma", "cooperative", "shared-memory", "exceptions"}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_a_case_tells_what_it_is_for(case: Case) -> None:
    assert case.description
    assert case.features
    assert case.links
    assert not case.title.endswith(".")
    for rule in case.expectations:
        assert rule.reason, f"expectation of line {rule.line}"
        assert rule.link or not rule.xfail, f"expectation of line {rule.line}"
        assert rule.stage or rule.status is not Status.REJECTED, f"expectation of line {rule.line}"

    for rejected in case.unsupported:
        assert rejected.reason


def test_there_are_as_many_as_a_library_needs() -> None:
    assert len(CASES) >= 75
    for case in CASES.values():
        # Distinct names need distinct folders: another spelling of a name would be another case.
        same = [name for name in CASES if name.replace("_", "-") == case.name.replace("_", "-")]
        assert same == [case.name]


def test_the_page_of_cases_is_that_of_the_cases() -> None:
    assert (ROOT.parent / PAGE).read_text("utf-8") == page(list(CASES.values())), "python -m harness.cases.library"


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_sources_need_nothing_of_the_host(case: Case) -> None:
    if "cuda" in case.sources:
        text = case.sources["cuda"].read_text()
        includes = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
        # A program about a header that NVRTC cannot read, or for nvcc and clang only, can include any header.
        if case.topic not in ("cccl", "headers", "cupy") and not set(case.backends or ("nvrtc",)) <= {"nvcc", "clang"}:
            mine = {"cutlass": ("<cute/", "<cutlass/")}
            prefixes = tuple(prefix for name in case.libraries for prefix in mine[name])
            others = {name for name in includes if not name.startswith(("<cuda_", "<cooperative_groups", *prefixes))}
            assert others <= {"<mma.h>"}
        assert 'extern "C" __global__' in text
    if "python" in case.sources:
        tree = ast.parse(case.sources["python"].read_text())
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert set(case.entries["python"]) <= functions | names
        assert "JIT_OPTIONS" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("toolkit", ["11.8", "12.4", "12.9"])
@pytest.mark.parametrize(
    ("fragment", "first"), [("half", 70), ("int8", 72), ("bf16", 80), ("tf32", 80), ("double", 80)]
)
def test_fragments_exist_from_a_compute_capability_on(fragment: str, first: int, toolkit: str) -> None:
    for number in (50, 60, 61, 70, 72, 75, 80, 86, 89, 90):
        for kind in ("sm", "compute"):
            one = cell("wmma/fragments", target=f"{kind}_{number}", toolkit=toolkit, fragment=fragment, arch="given")
            expected = expectation_of(one).status
            assert expected is (Status.BUILT if number >= first else Status.REJECTED), one.id


@pytest.mark.parametrize(
    ("version", "target", "arch", "toolkit", "status", "xfail"),
    [
        ("12.3.0", "sm_80", "implicit", "12.1", Status.REJECTED, True),
        ("13.0.0", "sm_90", "implicit", "12.1", Status.REJECTED, True),
        ("13.1.0", "sm_80", "implicit", "12.1", Status.BUILT, False),
        ("14.2.0", "sm_80", "implicit", "13.0", Status.BUILT, False),
        ("14.2.0", "sm_75", "implicit", "13.0", Status.REJECTED, False),
        ("12.3.0", "sm_75", "implicit", "12.1", Status.REJECTED, False),
        ("13.6.0", "sm_80", "given", "12.4", Status.REJECTED, False),
        ("13.6.0", "sm_80", "given", "12.9", Status.BUILT, False),
    ],
)
def test_the_row_of_cupy_8155(version: str, target: str, arch: str, toolkit: str, status: Status, xfail: bool) -> None:
    one = cell("wmma/accumulator-16x16x8", target=target, toolkit=toolkit, arch=arch, **cupy(version))
    expected = expectation_of(one)
    assert (expected.status, expected.xfail) == (status, xfail)
    assert options_for(one)["arch"] == arch


@pytest.mark.parametrize("backend", ["cupy-nvrtc", "cupy-jitify"])
@pytest.mark.parametrize(
    ("version", "toolkit", "status", "xfail"),
    [
        ("11.6.0", "12.4", Status.REJECTED, True),
        ("13.0.0", "12.1", Status.BUILT, False),
        ("13.0.0", "12.2", Status.REJECTED, True),
        ("13.1.0", "12.9", Status.REJECTED, True),
        ("13.2.0", "12.4", Status.REJECTED, True),
        ("13.3.0", "12.4", Status.BUILT, False),
        ("14.2.0", "12.9", Status.BUILT, False),
    ],
)
def test_the_row_of_cupy_8146(backend: str, version: str, toolkit: str, status: Status, xfail: bool) -> None:
    library = {**cupy(version.removesuffix("+wheels")), "backend": backend, "library": version}
    expected = expectation_of(cell("wmma/cupy-8146", toolkit=toolkit, **library))
    assert (expected.status, expected.xfail) == (status, xfail)
    control = cell("wmma/cupy-8146", toolkit=toolkit)
    assert expectation_of(control).status is Status.BUILT


@pytest.mark.parametrize(("backend", "status"), [("cupy-nvrtc", Status.REJECTED), ("cupy-jitify", Status.BUILT)])
def test_only_nvrtc_misses_the_header_that_wheels_lack(backend: str, status: Status) -> None:
    """Jitify goes on without crt/mma.h: built and verified on an H100 (CuPy 14.2.0, CUDA 13.0), built for 13.6.0 and 14.2.0 with 12.9."""
    library = {**cupy("14.2.0"), "backend": backend, "library": "14.2.0+wheels"}
    assert expectation_of(cell("wmma/cupy-8146", toolkit="12.9", **library)).status is status


@pytest.mark.parametrize(
    ("version", "cache", "status"),
    [
        ("0.58.1", True, Status.BUILT),
        ("0.59.0", True, Status.REJECTED),
        ("0.59.0", False, Status.BUILT),
        ("0.59.1", True, Status.BUILT),
    ],
)
def test_the_row_of_numba_9432(version: str, cache: bool, status: Status) -> None:
    one = cell("cooperative/numba-9432", cache=cache, **numba(version))
    assert expectation_of(one).status is status
    assert options_for(one).get("cache", False) is cache


@pytest.mark.parametrize(
    ("size", "toolkit", "target", "stage"),
    [
        (49152, "12.0", "sm_80", None),
        (49156, "12.0", "sm_80", Stage.ASSEMBLE),
        (49156, "12.3", "compute_80", None),  # PTX alone cannot show it
        (49156, "12.4", "sm_50", None),
        (49156, "12.6", "sm_80", None),
        (49156, "12.8", "sm_80", Stage.ASSEMBLE),
        (65540, "12.4", "sm_75", Stage.ASSEMBLE),
        (65540, "12.4", "sm_80", None),
        (102400, "12.6", "sm_70", Stage.ASSEMBLE),
        (102400, "12.6", "sm_86", None),
        (232448, "12.5", "sm_90", Stage.ASSEMBLE),
        (232448, "13.5", "sm_121", Stage.ASSEMBLE),
    ],
)
def test_static_shared_memory(size: int, toolkit: str, target: str, stage: Stage | None) -> None:
    expected = expectation_of(cell("shared-memory/static", target=target, toolkit=toolkit, bytes=size))
    assert expected.stage is stage
    assert expected.status is (Status.REJECTED if stage else Status.BUILT)
