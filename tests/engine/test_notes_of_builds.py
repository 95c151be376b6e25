"""Notes on builds: builds without a kernel, with the reason, and shared memory above the limit of a block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cells import Place

from harness.model import Status

GUARDED = "#if __CUDA_ARCH__ >= 900\n__global__ void hopper(float *x) { *x = 1; }\n#endif\n"


@pytest.fixture
def place(places: Callable[[str], Place], toolkit: Callable[[str], object]) -> Place:
    toolkit("13.0")
    return places("")


@pytest.mark.compilers
@pytest.mark.parametrize("backend", ["nvrtc", pytest.param("nvcc", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("source", "options", "why"),
    [
        ("", {}, "kernel.cu has no __global__ function"),
        (GUARDED, {}, "hopper (kernel.cu:2) is behind `#if __CUDA_ARCH__ >= 900`"),
        ("#ifdef FAST\n__global__ void fast() {}\n#endif\n", {}, "fast (kernel.cu:2) is behind `#ifdef FAST`"),
        ("#ifndef FAST\n__global__ void slow() {}\n#endif\n", {"flags": ["-DFAST"]}, "slow (kernel.cu:2) is behind `#ifndef FAST`"),
        ("template <class T> __global__ void k(T *x) {}\n", {}, "k (kernel.cu:1) is a template without an instance"),
        ("#if __CUDA_ARCH__ >= 700\ntemplate <class T> __global__ void k(T *x) {}\n#endif\n", {}, "k (kernel.cu:2) is a template without an instance"),
        ("__global__ void k(int *x);\n", {}, "k (kernel.cu:1) is declared, not defined"),
    ],
    ids=["empty", "architecture", "macro", "flag", "template", "live", "declaration"],
)  # fmt: skip
def test_compilers_build_it_and_the_note_says_why(
    place: Place, backend: str, source: str, options: dict[str, list[str]], why: str
) -> None:
    outcome = place.run(backend, "13.0", source, "sm_80", options=options)
    assert outcome.status is Status.BUILT
    assert outcome.artifact is not None
    assert outcome.artifact.kernels == ()
    assert f"no kernel came out: {why}" in outcome.notes


@pytest.mark.compilers
def test_nothing_is_said_of_a_kernel_or_of_what_a_header_may_have(place: Place, tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("")
    (tmp_path / "kernel.cu").write_text('#include "own.h"\n')
    static = place.run("nvrtc", "13.0", "static __global__ void k(float *x) { *x = 1; }\n", "sm_80")
    header = place.run("nvrtc", "13.0", tmp_path / "kernel.cu", "sm_80")
    for outcome in (static, header):
        assert outcome.status is Status.BUILT
        assert not any(note.startswith("no kernel") for note in outcome.notes)


@pytest.mark.compilers
@pytest.mark.parametrize(("target", "large"), [("sm_80", False), ("sm_86", True)])
def test_what_ptxas_lets_through_beyond_a_block_cannot_launch(
    places: Callable[[str], Place], toolkit: Callable[[str], object], target: str, large: bool
) -> None:
    toolkit("12.4")
    source = "__global__ void k(float *x) { __shared__ float s[25600]; s[threadIdx.x] = *x; __syncthreads(); *x = s[threadIdx.x ^ 1]; }"
    outcome = places("").run("nvrtc", "12.4", source, target)
    assert outcome.status is Status.BUILT
    expected = "cannot launch: _Z1kPf has 102400 bytes of static shared memory; a block can have 101376 on compute capability 8.6"
    assert outcome.notes == ((expected,) if large else ())
