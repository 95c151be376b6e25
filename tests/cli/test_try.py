"""``cumatrix try`` on an unchanged file, compared with direct calls of NVRTC."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers
RELEASES = ["11.8", "12.0", "12.4", "12.9", "13.0"]
TARGETS = ["sm_50", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "compute_80"]

# Kernels that no case contains: atomics of newer types, an asynchronous copy, and a warp reduction with templates.
KERNELS = {
    "histogram": """
#include <cuda_fp16.h>
extern "C" __global__ void histogram(const unsigned char *in, int n, unsigned *out, double *sum, __half2 *pairs) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        atomicAdd(&local[in[i]], 1u);
        atomicAdd(sum, (double)in[i]);
        atomicAdd(pairs, __half2half2(__int2half_rn(in[i])));
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], local[i]);
}
""",
    "copy": """
__global__ void copy(const float4 *in, float4 *out) {
    __shared__ float4 stage[128];
    unsigned place = (unsigned)__cvta_generic_to_shared(&stage[threadIdx.x]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(place), "l"(in + threadIdx.x));
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[threadIdx.x] = stage[threadIdx.x ^ 1];
}
""",
    "reduce": """
template <int Width, typename T> __device__ T total(T value) {
    if constexpr (Width > 1) return total<Width / 2>(value + __shfl_down_sync(~0u, value, Width / 2));
    else return value;
}
__global__ void reduce(const int *in, int *out) {
    int mine = in[threadIdx.x];
#if __CUDA_ARCH__ >= 800
    *out = __reduce_add_sync(~0u, mine) - total<32>(mine);
#else
    *out = total<32>(mine);
#endif
}
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
def test_it_agrees_with_nvrtc_driven_by_hand(
    name: str, cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    source = tmp_path / f"{name}.cu"
    source.write_text(KERNELS[name])
    homes = {release: toolkit(release) for release in RELEASES}

    def by_hand(place: tuple[str, str]) -> dict[str, Any]:
        release, target = place
        folders = [f"-I{folder}" for folder in homes[release].include]
        argv: list[str | Path] = [
            sys.executable,
            "-S",
            Path(__file__).with_name("hand.py"),
            homes[release].home / "lib64",
            source,
            target,
            "--std=c++17",
            *folders,
        ]
        found: dict[str, Any] = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
        return found

    places = list(product(RELEASES, TARGETS))
    with ThreadPoolExecutor(2) as pool:
        expected = dict(zip(places, pool.map(by_hand, places), strict=True))
    records = cumatrix.records(
        "try", source, "-b", "nvrtc", "-t", ",".join(RELEASES), "-a", ",".join(TARGETS), "--std", "c++17"
    )
    found = {(record["toolkit"], record["target"]): record for record in records}
    assert found.keys() == expected.keys()
    assert {place: record["status"] for place, record in found.items()} == {
        place: hand["status"] for place, hand in expected.items()
    }
    assert len({record["status"] for record in records}) == (3 if name != "reduce" else 2)
    for place, hand in expected.items():
        if hand["status"] == "built":
            assert found[place]["artifact"]["sha256"] == hand["sha256"], place
            assert found[place]["artifact"]["bytes"] == hand["bytes"], place


def attempt(cumatrix: Command, *arguments: str | Path, **keywords: Any) -> dict[str, Any]:
    (record,) = cumatrix.records("try", *arguments, "-t", "12.4", "-a", "sm_80", **keywords)
    return record


@pytest.fixture
def file(tmp_path: Path, toolkit: Callable[[str], Installed]) -> Callable[..., Path]:
    toolkit("12.4")

    def file(text: str, name: str = "program.cu") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return file


def test_a_file_as_it_stands(cumatrix: Command, file: Callable[..., Path]) -> None:
    record = attempt(cumatrix, file("__global__ void k() {}"))
    assert (record["cell"], record["status"]) == ("program.cu nvrtc cuda12.4 sm_80", "built")
    assert [kernel["name"] for kernel in record["artifact"]["kernels"]] == ["_Z1kv"]
    assert record["stages"] == ["compile", "assemble"]


def test_what_a_compiler_refuses_exits_with_1(cumatrix: Command, file: Callable[..., Path]) -> None:
    done = cumatrix("try", file("__global__ void k() { no; }"), "-b", "nvrtc", "-t", "12.4", "-a", "sm_80")
    assert done.returncode == 1
    assert done.stdout == ""
    assert 'identifier "no" is undefined' in done.stderr


@pytest.mark.slow
def test_options_reach_the_compiler(cumatrix: Command, file: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "mine.h").write_text("#define FROM_HEADER 1\n")
    source = file(
        "#include <mine.h>\n#if !FROM_HEADER || N != 4 || !defined(PLAIN) || __cplusplus != 202002L\n"
        "#error something is missing\n#endif\nint four() { return N; }\n__global__ void k(int *a) { *a = four(); }"
    )
    everything = ("-I", tmp_path / "inc", "-D", "N=4", "-D", "PLAIN", "--std", "c++20", "--option=-default-device")
    assert attempt(cumatrix, source)["status"] == "rejected"
    record = attempt(cumatrix, source, *everything)
    assert record["status"] == "built", record["log"]
    for word in ("-DN=4", "-DPLAIN=1", "--std=c++20", "-default-device", f"-I{tmp_path / 'inc'}"):
        assert word in record["command"][0]
    for start in (0, 2, 4, 6):  # the compiler rejects it without any one of them
        assert attempt(cumatrix, source, *everything[:start], *everything[start + 2 :])["status"] == "rejected"
    assert attempt(cumatrix, source, *everything[:-1])["status"] == "rejected"


def test_an_option_that_the_compiler_does_not_know(cumatrix: Command, file: Callable[..., Path]) -> None:
    record = attempt(cumatrix, file("__global__ void k() {}"), "--option=--no-such-thing")
    assert record["status"] == "rejected"
    assert "--no-such-thing" in record["diagnostics"][0]["message"]


def test_a_header_beside_the_file(cumatrix: Command, file: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "beside.h").write_text("#define BESIDE 1\n")
    assert (
        attempt(cumatrix, file('#include "beside.h"\n__global__ void k(int *a) { *a = BESIDE; }'))["status"] == "built"
    )


@pytest.mark.slow
def test_python(cumatrix: Command, file: Callable[..., Path], venv: Callable[..., str]) -> None:
    source = file("from numba import cuda\n@cuda.jit\ndef axpy(a, x):\n    a[0] += N * x[0]\n", "axpy.py")
    common = ("--python", venv("numba==0.59.1"), "-b", "numba", "-D", "N=3")
    record = attempt(cumatrix, source, *common, "--signature", "axpy=void(float32[:], float32[:])")
    assert record["status"] == "built", record
    assert record["toolchain"]["observed"]["numba"] == "0.59.1"
    assert record["device"] == {"virtual": True, "compute_capability": "8.0"}
    without = attempt(cumatrix, source, *common)
    assert without["status"] == "unsupported"
    assert "give their types" in without["reason"]


def test_a_program_without_a_kernel_is_marked_and_no_success(cumatrix: Command) -> None:
    """A template without an instantiation builds, and nothing is compiled for the device."""
    (cumatrix.folder / "template.cu").write_text("template <class T> __global__ void set(T *x) { *x = 1; }\n")
    (cumatrix.folder / "kernel.cu").write_text("__global__ void set(int *x) { *x = 1; }\n")
    done = cumatrix("try", "template.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
    assert (done.returncode, "1 no kernels" in done.stderr) == (3, True)
    assert "no kernel came out of the one cell that was built" in done.stderr
    done = cumatrix("try", "template.cu", "kernel.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
    assert (done.returncode, "1 built  1 no kernels" in done.stderr) == (0, True)
