"""Toolkits with the CCCL of another release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from venvs import python_with

from harness.toolkits import RELEASES, Installed, Release, ToolkitStore
from harness.toolkits.store import borrowed, note

CCCL = ["include/cub", "include/cuda", "include/nv", "include/thrust"]


def test_only_releases_whose_own_lacks_headers_borrow() -> None:
    assert {name: set(release.borrowed.values()) for name, release in RELEASES.items() if release.borrowed} == {
        "11.7": {"11.8"}, "12.0": {"12.4"}, "12.1": {"12.4"}, "12.2": {"12.4"},
    }  # fmt: skip
    for release in RELEASES.values():
        for wheel, other in release.borrowed.items():
            assert release.packages[wheel] == RELEASES[other].packages[wheel]


@pytest.mark.compilers
def test_folders_of_another_release(toolkit: Callable[[str], Installed]) -> None:
    home = toolkit("12.0").home
    assert borrowed(home) == dict.fromkeys(CCCL, "12.4")
    assert all((home / folder).is_dir() for folder in CCCL)
    assert borrowed(toolkit("12.4").home) == {}
    assert borrowed(Path("/usr")) == {}


@pytest.mark.compilers
def test_a_cell_that_read_them_says_so(toolkit: Callable[[str], Installed]) -> None:
    home = toolkit("12.0").home
    own = [home / "include" / "cuda_fp16.h", home / "include" / "cuda.h", Path("/elsewhere/include/cub/cub.cuh")]
    assert note(home, own) is None
    said = note(home, [*own, str(home / "include" / "nv" / "target"), home / "include" / "cub" / "cub.cuh"])
    assert said == "include/cub, include/nv: of CUDA 12.4, since the wheel of CUDA 12.0's own CCCL lacks headers"
    assert note(toolkit("12.4").home, [toolkit("12.4").home / "include" / "nv" / "target"]) is None


@pytest.mark.compilers
def test_a_wheel_of_its_own_is_not_borrowed(tmp_path: Path) -> None:
    release = Release(name="12.0", packages={"nvidia-cuda-cccl-cu12": "12.0.140"})
    assert borrowed(ToolkitStore(tmp_path / "toolkits").install(release).home) == {}


@pytest.mark.compilers
def test_users_are_told(cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    toolkit("12.0")
    (line,) = [text for text in cumatrix("toolkits", "list").stdout.splitlines() if text.startswith("12.0 ")]
    assert "cuda-cccl-cu12=12.4.127.post1 (of CUDA 12.4)" in line
    assert "12.0 (CCCL of 12.4" in cumatrix("doctor", "-t", "12.0").stdout
    (tmp_path / "kernel.cu").write_text("__global__ void k() {}")
    (record,) = cumatrix.records("try", "kernel.cu", "-b", "nvrtc", "-t", "12.0", "-a", "sm_80")
    assert record["toolchain"]["observed"]["borrowed"] == dict.fromkeys(CCCL, "12.4")
    assert not [text for text in record["notes"] if "of CUDA 12.4" in text]  # no part of it was used


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.timeout(2700)  # Jitify searches for headers, which takes minutes
@pytest.mark.parametrize(
    ("backend", "header", "folder"),
    [
        ("nvrtc", "cub/version.cuh", "cub"), ("nvrtc", "cuda/std/type_traits", "cuda"), ("nvrtc", "nv/target", "nv"), ("cupy-nvrtc", "nv/target", "nv"),
        # Jitify receives no CCCL header in advance (CuPy 13 and later bring their own): it finds the headers while compiling.
        ("cupy-jitify", "nv/target", "nv"), ("cupy-jitify", "cuda/std/type_traits", "cuda"), ("cupy-jitify", "cub/version.cuh", "cub"),
    ],
)  # fmt: skip
def test_cells_with_headers_of_another_release_carry_a_note(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path, backend: str, header: str, folder: str
) -> None:
    python = ("--python", python_with("cupy-cuda12x==12.3.0")) if backend.startswith("cupy") else ()
    notes = {}
    for release in ("12.0", "12.4"):
        toolkit(release)
        for name, text in (("plain.cu", ""), ("kernel.cu", f"#include <{header}>\n")):
            (tmp_path / name).write_text(text + "__global__ void k() {}")
        for cached in (False, True):
            for record in cumatrix.records(
                "try", "plain.cu", "kernel.cu", "-b", backend, "-t", release, "-a", "sm_80", *python
            ):
                assert record["status"] == "built", record["log"]
                told = [text for text in record["notes"] if "since the wheel" in text]
                notes[record["case"], release, cached] = told
    assert notes["kernel.cu", "12.0", False] == notes["kernel.cu", "12.0", True]
    (note,) = notes.pop(("kernel.cu", "12.0", False)) and notes.pop(("kernel.cu", "12.0", True))
    assert f"include/{folder}" in note
    assert not any(notes.values()), "nothing of it took part"
