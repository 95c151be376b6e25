"""Two headers of one name: the one that was asked for, and the toolkit's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from venvs import python_with

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers
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


def test_headers_of_another_release_come_behind_what_is_asked_for(
    attempt: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    for backend in ("nvrtc", "nvcc"):  # of nvcc the device pass: the host pass wants runtime headers of its own release
        record = attempt(backend, "13.5+headers13.0", "-I", tmp_path / "own", "--device-only")
        assert record["status"] == "built", record["log"]


def test_the_toolkits_own_may_be_asked_for_first(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """What mends https://github.com/cupy/cupy/issues/8146 for users: ``options=("-I/usr/local/cuda/include",)``."""
    (tmp_path / "kernel.cu").write_text('#include <mma.h>\nextern "C" __global__ void kernel(int *a) { *a = 1; }\n')
    include = toolkit("12.4").home / "include"
    common = ("-b", "cupy-nvrtc", "-t", "12.4", "-a", "sm_80", "--python", python_with("cupy-cuda12x==13.2.0"))
    (before,) = cumatrix.records("try", "kernel.cu", *common)
    (after,) = cumatrix.records("try", "kernel.cu", *common, "-I", include)
    assert (before["status"], after["status"]) == ("rejected", "built")
