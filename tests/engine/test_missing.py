"""A missing header: an error of the program, or of a part of CUDA that is not installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.engine.toolchain import part_of, without_part
from harness.model import Diagnostic, Outcome, Status, ToolkitRef
from harness.toolkits import Installed

KERNEL = "\n__global__ void k(int *a) { *a = 1; }\n"
# Parts that no test installs: missing parts stay missing.
INCLUDES = "#include <nvshmem.h>\n#include <cusparseLt.h>"


@pytest.mark.compilers
@pytest.mark.parametrize(("backend", "release"), [("nvrtc", "12.4"), ("nvcc", "13.0"), ("cupy-nvrtc", "12.4")])
def test_a_part_that_is_not_installed(
    run_cell: Callable[..., Outcome], toolkit: Callable[[str], Installed], backend: str, release: str
) -> None:
    assert not any((folder / "nvshmem.h").exists() for folder in toolkit(release).include)
    requirement = "cupy-cuda12x==13.1.0" if backend.startswith("cupy") else ""
    outcome = run_cell(requirement, backend, release, INCLUDES + KERNEL, "sm_80")
    assert outcome.status is Status.UNAVAILABLE, outcome.log
    assert outcome.reason.startswith("nvshmem.h is a header of nvshmem, a part of CUDA that is not installed with")
    assert f"`cumatrix toolkits install {release} --with nvshmem,cusparselt`" in outcome.reason
    assert "nvshmem.h" in outcome.log, "what the compiler said stays"


@pytest.mark.compilers
@pytest.mark.parametrize("text", ["#include <mine.h>", '#include "boost/config.hpp"', '#error "nvshmem.h"', "#include <stdio.h>"])  # fmt: skip
def test_other_headers_are_the_programs_own(run_cell: Callable[..., Outcome], text: str) -> None:
    assert run_cell("", "nvrtc", "12.4", text + KERNEL, "sm_80").status is Status.REJECTED


@pytest.mark.compilers
def test_the_program_is_wrong_before_the_header_is_missed(run_cell: Callable[..., Outcome]) -> None:
    outcome = run_cell("", "nvrtc", "12.4", "int a = missing;" + KERNEL + INCLUDES, "sm_80")
    assert outcome.status is Status.REJECTED, "an error of its own came first"
    outcome = run_cell("", "nvrtc", "12.4", "#if 0\n" + INCLUDES + "\n#endif\n" + KERNEL, "sm_80")
    assert outcome.status is Status.BUILT, "what is not compiled is not missed"


def refused(message: str, **more: Any) -> Outcome:
    return Outcome(
        status=Status.REJECTED, diagnostics=(Diagnostic(severity="fatal", message=message, **more),)
    )  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        'cannot open source file "curand.h"',
        'could not open source file "curand.h" (no directories in search list)',
        "curand.h: No such file or directory",
        "'curand.h' file not found",
    ],
)
def test_as_compilers_say_it(message: str, tmp_path: Path) -> None:
    ref = ToolkitRef(release="13.5", headers="13.0")
    outcome = without_part(refused(message), ref, [tmp_path], tmp_path / "none.cu")
    assert outcome.status is Status.UNAVAILABLE
    assert "install 13.0 --with curand`" in outcome.reason, "headers come from the headers' release"
    (tmp_path / "curand.h").touch()
    assert without_part(refused(message), ref, [tmp_path], tmp_path / "none.cu").status is Status.REJECTED


def test_parts_of_pytorch_s_headers_are_named_at_once(tmp_path: Path) -> None:
    outcome = refused("cusparse.h: No such file or directory", file="torch/include/ATen/cuda/CUDAContextLight.h")
    ref = ToolkitRef(release="13.0", headers="13.0")
    (tmp_path / "curand.h").touch()
    found = without_part(outcome, ref, [tmp_path], tmp_path / "none.cu")
    assert "install 13.0 --with cusparse,cublas,cusolver,cufft`" in found.reason


@pytest.mark.parametrize("status", [Status.CRASHED, Status.BUILT])
def test_only_a_refusal_misses_a_part(status: Status, tmp_path: Path) -> None:
    outcome = replace(refused("curand.h: No such file or directory"), status=status)
    ref = ToolkitRef(release="13.5", headers="13.0")
    assert without_part(outcome, ref, [tmp_path], tmp_path / "none.cu") == outcome


def test_a_toolkit_of_this_machine(tmp_path: Path) -> None:
    ref = ToolkitRef(release="12.4", headers="12.4", home="/opt/cuda", local=True)
    outcome = without_part(refused("curand.h: No such file or directory"), ref, [tmp_path], tmp_path / "none.cu")
    assert outcome.reason.endswith("not installed with 12.4@local: add it to /opt/cuda")


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("cublas_v2.h", "cublas"),
        ("curand_kernel.h", "curand"),
        ("cusolverDn.h", "cusolver"),
        ("nppi_filtering_functions.h", "npp"),
        ("cuda_profiler_api.h", "profiler-api"),
        ("nvtx3/nvToolsExt.h", "nvtx"),
        ("cudnn_frontend.h", None),
        ("cuda_runtime.h", None),
        ("mma.h", None),
        ("curand", None),
    ],
)
def test_parts(header: str, part: str | None) -> None:
    assert part_of(header) == part
