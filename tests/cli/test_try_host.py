"""``cumatrix try`` on programs of the host, often the first file that a user tries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import write_case
from command import Command

from harness.toolkits import Installed

pytestmark = [pytest.mark.called, pytest.mark.compilers]

VECTOR_ADD = """\
#include <cstdio>
#include <cuda_runtime.h>

__global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

int main() {
    float *a;
    cudaMalloc(&a, 1024);
    add<<<1, 256>>>(a, a, a, 256);
    std::printf("%s\\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
"""


@pytest.fixture
def program(tmp_path: Path, toolkit: Callable[[str], Installed]) -> Path:
    """A program of the kind that tutorials have."""
    for release in ("13.0", "13.5"):
        toolkit(release)
    (tmp_path / "vectorAdd.cu").write_text(VECTOR_ADD)
    return tmp_path / "vectorAdd.cu"


@pytest.mark.slow
def test_nvcc_is_taken_and_a_toolkit_that_has_it(cumatrix: Command, program: Path) -> None:
    done = cumatrix("try", program, "--json")
    assert done.returncode == 0, done.stderr
    assert "vectorAdd.cu is a host program (main() in line 9, a launch in line 12" in done.stderr
    assert "of CUDA 13.5" in done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert {record["toolkit"] for record in records} == {"13.5"}
    counts = Counter((record["backend"], record["status"]) for record in records)
    # nvcc 13 supports nothing below 7.5: it rejects three of the nine default targets.
    assert counts == {("nvcc", "built"): 6, ("nvcc", "unsupported"): 3, ("nvrtc", "unsupported"): 9}
    reasons = {record["reason"] for record in records if record["backend"] == "nvrtc"}
    assert len(reasons) == 1 and "main() in line 9" in reasons.pop()


def test_what_is_wrong_in_it_is_nvccs_to_say(cumatrix: Command, program: Path) -> None:
    program.write_text(VECTOR_ADD.replace("c[i] =", "d[i] ="))
    done = cumatrix("try", program, "-a", "sm_80")
    assert done.returncode == 1
    assert 'identifier "d" is undefined' in done.stderr and "stdio" not in done.stderr


def test_a_backend_that_is_named_is_asked(cumatrix: Command, program: Path) -> None:
    done = cumatrix("try", program, "-b", "nvrtc", "-t", "13.0", "-a", "sm_80", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "rejected"
    assert "nvrtc will refuse it, nvcc compiles it" in done.stderr


def test_a_toolkit_without_nvcc_that_is_named(
    cumatrix: Command, program: Path, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.9")
    done = cumatrix("try", program, "-t", "12.9", "-a", "sm_80", "--json")
    assert done.returncode == 4
    found = {record["backend"]: record for record in map(json.loads, done.stdout.splitlines())}
    assert {name: record["status"] for name, record in found.items()} == {"nvrtc": "unsupported", "nvcc": "unavailable"}
    assert "has no nvcc" in found["nvcc"]["reason"]


def test_nvcc_alone_needs_no_toolkit_named(cumatrix: Command, program: Path) -> None:
    program.write_text("__global__ void k(int *a) { *a = 1; }")
    done = cumatrix("try", program, "-b", "nvcc", "-a", "sm_80", "--json")
    assert (done.returncode, json.loads(done.stdout)["toolkit"]) == (0, "13.5")
    assert "nvcc: CUDA 13.5, the newest release; -t names others" in done.stderr


@pytest.mark.parametrize("backends", [pytest.param("nvcc", marks=pytest.mark.slow), "nvrtc,nvcc"])
def test_a_run_of_nvcc_needs_no_toolkit_named_either(cumatrix: Command, program: Path, backends: str) -> None:
    write_case(program.parent / "cases", "plain/one", "__global__ void one(int *a) { *a = 1; }")
    records = cumatrix.records("run", "-b", backends, "-a", "sm_80")
    assert {record["backend"] for record in records} == set(backends.split(","))
    assert {(record["toolkit"], record["status"]) for record in records} == {("13.0", "built")}


@pytest.mark.parametrize(
    "option", ["-default-device", pytest.param("--device-as-default-execution-space", marks=pytest.mark.slow)]
)
def test_host_functions_for_the_device(cumatrix: Command, program: Path, option: str) -> None:
    """NVRTC treats main() as a device function, and builds it."""
    program.write_text("__global__ void k(int *a) { *a = 1; }\nint main() { return 0; }")
    arguments = ("try", program, "-t", "13.0", "-a", "sm_80", f"--option={option}", "--json")
    records = [json.loads(line) for line in cumatrix(*arguments).stdout.splitlines()]
    assert {record["backend"]: record["status"] for record in records}["nvrtc"] == "built"


@pytest.mark.slow
def test_headers_that_somebody_has_for_the_device(cumatrix: Command, program: Path, tmp_path: Path) -> None:
    program.write_text("#include <vector>\n__global__ void k(int *a) { *a = VECTOR; }")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vector").write_text("#define VECTOR 1\n")
    arguments = ("try", program, "-t", "13.0", "-a", "sm_80", "-I", tmp_path / "mine", "--json")
    records = [json.loads(line) for line in cumatrix(*arguments).stdout.splitlines()]
    assert {record["backend"]: record["status"] for record in records}["nvrtc"] == "built"
