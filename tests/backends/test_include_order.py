"""Two headers with one name: the requested one, and the toolkit's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from venvs import python_with

from harness.backends import cuda_core, nvcc, nvrtc
from harness.backends.cupy.backend import options_of as cupy_options_of
from harness.protocol.backend import Job, Setup, Unsupported
from harness.toolkits import Installed

compilers = pytest.mark.compilers
SOURCE = """\
#include <cuda_fp16.h>
#ifndef OWN
#error the toolkit's
#endif
extern "C" __global__ void kernel(int *a) { *a = OWN; }
"""


@pytest.fixture
def attempt(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    (tmp_path / "kernel.cu").write_text(SOURCE)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "cuda_fp16.h").write_text("#define OWN 1\n")

    def attempt(backend: str, release: str, *arguments: str | Path) -> dict[str, Any]:
        for name in release.split("+headers"):
            toolkit(name)
        (record,) = cumatrix.records("try", "kernel.cu", "-b", backend, "-t", release, "-a", "sm_80", *arguments)
        return record

    return attempt


def job_of(**options: Any) -> Job:
    folders = ["/lib", "/cuda/include", "/cuda/include/cccl", "/own"]
    return Job("", Path("k.cu"), {}, {}, "sm_80", options, folders, scratch=Path())  # type: ignore[arg-type]


def setup_of(headers: str = "13.0", **more: Any) -> Setup:
    include = ["/cuda/include", "/cuda/include/cccl"]
    return Setup(home=Path("/cuda"), release="13.0", headers=headers, include=include, tools=Path(), **more)


def test_the_toolkits_folders_behind_and_in_front() -> None:
    behind, first, setup = job_of(), job_of(toolkit_first=True), setup_of()
    assert nvrtc.options_of(setup, behind) == ["-I/lib", "-I/own", "-I/cuda/include", "-I/cuda/include/cccl"]
    assert nvrtc.options_of(setup, first) == ["-I/cuda/include", "-I/cuda/include/cccl", "-I/lib", "-I/own"]
    assert cuda_core.options_of(setup, first)["include_path"] == first.every_include(setup)
    assert cupy_options_of(setup, behind, "sm_80") == ("-I/lib", "-I/own")
    assert cupy_options_of(setup, first, "sm_80") == tuple(nvrtc.options_of(setup, first))
    with pytest.raises(Unsupported, match="there is no toolkit to put first"):
        cupy_options_of(setup_of(wheels=True), first, "sm_80")


def test_nvcc_looks_through_isystem_last() -> None:
    behind, first, setup = job_of(), job_of(toolkit_first=True), setup_of()
    assert (nvcc.include_of(setup, behind), nvcc.behind_toolkit(setup, behind)) == (["/lib", "/own"], [])
    words = "-isystem /cuda/include -isystem /cuda/include/cccl -isystem /lib -isystem /own".split()
    assert (nvcc.include_of(setup, first), nvcc.behind_toolkit(setup, first)) == ([], words)
    other = setup_of("13.1")
    # nvcc has no such concept: the headers are named with -I, which comes first anyway.
    assert (nvcc.include_of(other, first), nvcc.behind_toolkit(other, first)) == (setup.include, words[4:])


@pytest.mark.slow
@compilers
@pytest.mark.parametrize(
    ("backend", "release", "requirement"),
    [
        ("nvrtc", "12.4", ""),
        ("nvrtc", "13.0", ""),
        ("nvcc", "13.0", ""),
        ("cupy-nvrtc", "12.4", "cupy-cuda12x==13.2.0"),
        ("cupy-nvrtc", "12.4", "cupy-cuda12x==14.2.0"),
    ],
)
def test_what_is_asked_for_is_found_first(
    attempt: Callable[..., dict[str, Any]], tmp_path: Path, backend: str, release: str, requirement: str
) -> None:
    python = ("--python", python_with(requirement)) if requirement else ()
    without = attempt(backend, release, *python)
    assert (without["status"], "the toolkit's" in without["diagnostics"][0]["message"]) == ("rejected", True)
    record = attempt(backend, release, *python, "-I", tmp_path / "own")
    assert record["status"] == "built", record["log"]
    first = attempt(backend, release, *python, "-I", tmp_path / "own", "--toolkit-first")
    assert "the toolkit's" in first["diagnostics"][0]["message"]


@pytest.mark.slow
@compilers
def test_headers_of_another_release_come_behind_what_is_asked_for(
    attempt: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    # nvcc only with the device pass: the host pass requires runtime headers of its own release
    for backend in ("nvrtc", "nvcc"):
        record = attempt(backend, "13.5+headers13.0", "-I", tmp_path / "own", "--device-only")
        assert record["status"] == "built", record["log"]


@pytest.mark.slow
@compilers
def test_the_toolkits_own_may_be_asked_for_first(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """The workaround of users for https://github.com/cupy/cupy/issues/8146: ``options=("-I/usr/local/cuda/include",)``."""
    (tmp_path / "kernel.cu").write_text('#include <mma.h>\nextern "C" __global__ void kernel(int *a) { *a = 1; }\n')
    include = toolkit("12.4").home / "include"
    common = ("-b", "cupy-nvrtc", "-t", "12.4", "-a", "sm_80", "--python", python_with("cupy-cuda12x==13.2.0"))
    (before,) = cumatrix.records("try", "kernel.cu", *common)
    (after,) = cumatrix.records("try", "kernel.cu", *common, "-I", include)
    (first,) = cumatrix.records("try", "kernel.cu", *common, "--toolkit-first")
    assert (before["status"], after["status"], first["status"]) == ("rejected", "built", "built")
