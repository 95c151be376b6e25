"""Direct calls of NVRTC: options, rejections and artifacts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.backends.nvrtc import is_ptxas_error, macros, options_of
from harness.protocol.backend import Job, Setup

RunCell = Callable[..., dict[str, Any]]

KERNEL = 'extern "C" __global__ void kernel(float *x) { x[threadIdx.x] *= 2; }'
LARGE = 'extern "C" __global__ void kernel(float *x) { __shared__ float s[16384]; s[threadIdx.x] = *x; __syncthreads(); *x = s[threadIdx.x ^ 1]; }'
GIVEN = {"arch": "given"}


def test_definitions_become_options() -> None:
    assert macros({"N": 3, "ON": True, "OFF": False, "T": "float"}) == ["-DN=3", "-DON=1", "-DOFF=0", "-DT=float"]


@pytest.mark.parametrize(
    ("log", "by_ptxas"),
    [
        ("ptxas error   : Entry function 'k' uses too much shared data", True),
        ("ptxas fatal   : Value 'sm_1' is not defined for option 'gpu-name'", True),
        ("ptxas warning : stack size cannot be determined", False),
        ('k.cu(3): error: identifier "x" is undefined', False),
        ('ptxas error   : gave up\nk.cu(3): error: identifier "x" is undefined', False),
        ("", False),
    ],
)
def test_who_refused_is_read_from_the_log(log: str, by_ptxas: bool) -> None:
    assert is_ptxas_error(log) is by_ptxas


def test_the_toolkits_headers_are_found_last(tmp_path: Path) -> None:
    setup = Setup(home=tmp_path, release="12.4", headers="12.4", include=[str(tmp_path / "cuda")], tools=tmp_path)
    job = Job(
        cell="", source=tmp_path / "k.cu", entries={}, definitions={"N": 1}, target="sm_80", scratch=tmp_path,
        options={"std": "c++17", "rdc": True, "debug": True, "flags": ["-lineinfo"]}, include=[str(tmp_path / "own"), str(tmp_path / "cuda")],
    )  # fmt: skip
    options = options_of(setup, job)
    assert options[:5] == ["--std=c++17", "--relocatable-device-code=true", "-G", "-lineinfo", "-DN=1"]
    assert options[-1] == f"-I{tmp_path / 'cuda'}"
    assert f"-I{tmp_path / 'own'}" in options[5:-1]


@pytest.mark.compilers
@pytest.mark.parametrize(("target", "form"), [("sm_80", "cubin"), ("compute_80", "ptx")])
def test_a_real_architecture_gives_a_cubin_and_a_virtual_one_ptx(run_cell: RunCell, target: str, form: str) -> None:
    reply = run_cell("", "nvrtc", "12.4", KERNEL, target, {"kernel": ""}, GIVEN)
    assert reply["status"] == "built", reply
    assert (reply["artifact"]["format"], reply["artifact"]["target"]) == (form, target)
    assert [kernel["name"] for kernel in reply["artifact"]["kernels"]] == ["kernel"]
    assert reply["observed"]["nvrtc"] == "12.4"


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("source", "stage", "message"),
    [(KERNEL.replace("*x", "*y"), "compile", 'identifier "x" is undefined'), (LARGE, "assemble", "too much shared data")],
)  # fmt: skip
def test_a_refusal_has_the_stage_and_the_words_of_who_refused(
    run_cell: RunCell, source: str, stage: str, message: str
) -> None:
    # ptxas of CUDA 12.4 accepts the large one.
    reply = run_cell("", "nvrtc", "13.0", source, "sm_80", {"kernel": ""}, GIVEN)
    assert (reply["status"], reply["stage"]) == ("rejected", stage), reply
    assert message in reply["diagnostics"][0]["message"]


@pytest.mark.compilers
def test_without_an_architecture_there_is_nothing_to_ask(run_cell: RunCell) -> None:
    reply = run_cell("", "nvrtc", "12.4", KERNEL, "sm_80", {"kernel": ""}, {"arch": "implicit"})
    assert reply["status"] == "unsupported"
    assert reply["stages"] == []
