"""CuPy itself, through NVRTC and through Jitify, with a virtual device."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.toolkits.store import data_folder

# Jitify reads large headers one by one, which takes minutes.
pytestmark = [pytest.mark.compilers, pytest.mark.timeout(2700)]
RunCell = Callable[..., dict[str, Any]]
OLD, NEW = "cupy-cuda12x==12.3.0", "cupy-cuda12x==13.1.0"

PLAIN = 'extern "C" __global__ void scale(float *a) { a[threadIdx.x] *= 2; }'
# https://github.com/cupy/cupy/issues/8155
ACCUMULATOR = """\
#include <mma.h>
extern "C" __global__ void scale(float *a) {
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> c;
    nvcuda::wmma::fill_fragment(c, 0.0f);
    a[threadIdx.x] = c.x[0];
}
"""
WRONG = 'extern "C" __global__ void scale(float *a) { missing; }'
LARGE = 'extern "C" __global__ void scale(float *a) { __shared__ float b[12289]; b[threadIdx.x] = *a; __syncthreads(); *a = b[*(int *)a]; }'


@pytest.mark.parametrize("backend", ["cupy-nvrtc", "cupy-jitify"])
@pytest.mark.parametrize("target", ["sm_70", "sm_90"])
def test_a_plain_kernel(run_cell: RunCell, backend: str, target: str) -> None:
    reply = run_cell(OLD, backend, "12.4", PLAIN, target, {"scale": ""}, {})
    assert reply["status"] == "built", reply
    assert reply["artifact"]["target"] == target
    assert reply["observed"]["cupy"] == "12.3.0"
    assert reply["observed"]["nvrtc"] == "12.4"
    assert reply["device"]["virtual"] is True


@pytest.mark.parametrize(
    ("requirement", "backend", "target", "status"),
    [
        (OLD, "cupy-nvrtc", "sm_75", "rejected"), (OLD, "cupy-nvrtc", "sm_80", "built"), (OLD, "cupy-jitify", "sm_75", "rejected"),
        (OLD, "cupy-jitify", "sm_80", "rejected"), (OLD, "cupy-jitify", "sm_90", "rejected"), (NEW, "cupy-jitify", "sm_75", "rejected"),
        (NEW, "cupy-jitify", "sm_80", "built"), (NEW, "cupy-nvrtc", "sm_80", "built"),
    ],
)  # fmt: skip
def test_the_accumulator_of_8155(run_cell: RunCell, requirement: str, backend: str, target: str, status: str) -> None:
    reply = run_cell(requirement, backend, "12.4", ACCUMULATOR, target, {"scale": ""}, {})
    assert reply["status"] == status, reply
    if status == "rejected":
        assert reply["stage"] == "compile"
        assert any("incomplete type" in item["message"] for item in reply["diagnostics"])  # though Jitify hides it


@pytest.mark.parametrize("backend", ["cupy-nvrtc", "cupy-jitify"])
@pytest.mark.parametrize("requirement", [OLD, NEW])
def test_the_compilers_own_words_are_there(run_cell: RunCell, requirement: str, backend: str) -> None:
    reply = run_cell(requirement, backend, "12.4", WRONG, "sm_80", {"scale": ""}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile")
    assert any('identifier "missing" is undefined' in item["message"] for item in reply["diagnostics"])


def test_what_the_assembler_refuses_is_told_from_what_the_compiler_refuses(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-nvrtc", "12.9", LARGE, "sm_80", {"scale": ""}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "assemble")
    assert "uses too much shared data (0xc004 bytes, 0xc000 max)" in reply["log"]


def test_a_given_architecture_reaches_the_compiler(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-jitify", "12.4", ACCUMULATOR, "sm_80", {"scale": ""}, {"arch": "given"})
    assert "-arch=sm_80" in reply["command"][0]


def test_suffixes_are_beyond_cupy(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-nvrtc", "12.4", PLAIN, "sm_90a", {"scale": ""}, {})
    assert reply["status"] == "unsupported"
    assert "no suffix" in reply["reason"]


def test_a_cell_does_not_inherit_the_device_of_the_one_before(run_cell: RunCell) -> None:
    for target in ("sm_90", "sm_70", "sm_90"):
        assert run_cell(OLD, "cupy-nvrtc", "12.4", PLAIN, target, {"scale": ""}, {})["artifact"]["target"] == target


def test_headers_that_jitify_found_beforehand_change_nothing(run_cell: RunCell, tmp_path: Path) -> None:
    """The table of headers saves time; with an empty one a program compiles to the same."""
    warm = [run_cell(NEW, "cupy-jitify", "12.4", text, "sm_80", {"scale": ""}, {}) for text in (ACCUMULATOR, WRONG)]
    tools = tmp_path / "tools"
    shutil.copytree(data_folder() / "tools", tools)
    tables = list((tools / "jitify").glob("*.json"))
    assert tables
    for table in tables:
        assert table.read_text() != "{}"
        table.write_text("{}")
    cold = [
        run_cell(NEW, "cupy-jitify", "12.4", text, "sm_80", {"scale": ""}, {}, tools) for text in (ACCUMULATOR, WRONG)
    ]
    assert [item["status"] for item in cold] == ["built", "rejected"]
    assert cold[0]["artifact"] == warm[0]["artifact"]
    assert cold[1]["diagnostics"] == warm[1]["diagnostics"]
