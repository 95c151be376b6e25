"""``cumatrix try``: distinguishing programs from options, and nvcc's options in their usual forms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Installed

pytestmark = [pytest.mark.called, pytest.mark.compilers]
PLAIN = "__global__ void k(float *a) { *a = __sinf(*a); }\n"
WITH_N = '#include "n.h"\n__global__ void k(int *a) { *a = N; }\n'


@pytest.fixture(autouse=True)
def _toolkits(toolkit: Callable[[str], Installed]) -> None:
    for release in ("11.8", "13.0"):
        toolkit(release)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.cu"
    path.write_text(PLAIN)
    return path


def tried(cumatrix: Command, *arguments: str | Path, **keywords: Any) -> list[dict[str, Any]]:
    return cumatrix.records("try", *arguments, "-t", "13.0", "-a", "80", "-b", "nvrtc", **keywords)


def one(cumatrix: Command, *arguments: str | Path) -> dict[str, Any]:
    (record,) = tried(cumatrix, *arguments)
    return record


def matrix(cumatrix: Command, folder: Path, *results: str) -> list[dict[str, Any]]:
    done = cumatrix("report", *results, "--out", "html")
    assert done.returncode == 0, done.stderr
    cells: list[dict[str, Any]] = json.loads((folder / "html" / "matrix.json").read_text())["cells"]
    return cells


@pytest.mark.slow
def test_every_way_to_compile_a_program_is_a_cell_of_its_own(cumatrix: Command, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"inc{number}").mkdir()
        (tmp_path / f"inc{number}" / "n.h").write_text(f"#define N {number}\n")
    (tmp_path / "kernel.cu").write_text(WITH_N)
    ways = [
        (), ("-I", "inc1"), ("-I", "inc2"), ("-I", "inc1", "-I", "inc2"), ("-DN=3",), ("-Iinc1", "-DM"), ("-Iinc1", "-DM=2"),
        ("-Iinc1", "-std=c++17"), ("-Iinc1", "-std=c++20"), ("-Iinc1", "-G"), ("-Iinc1", "--option=-lineinfo"),
        ("-Iinc1", "--device-only"), ("-Iinc1", "--toolkit-first"), ("-Iinc1", "-rdc=true"), ("-Iinc1", "-O3"), ("-Iinc1", "--option", "nvcc:-lineinfo"),
    ]  # fmt: skip
    seen: dict[str, dict[str, Any]] = {}
    for way in ways:
        done = cumatrix("try", "kernel.cu", *way, "-t", "13.0", "-a", "80", "-b", "nvrtc", "--json", "--out", "r.jsonl")
        record = json.loads(done.stdout)
        assert record["cell"] not in seen, way
        assert record["cell"].startswith("kernel.cu")
        assert record["cell"].endswith(" nvrtc cuda13.0 sm_80")
        seen[record["cell"]] = record
    assert {record["status"] for record in seen.values()} == {"built", "rejected"}
    shown = matrix(cumatrix, tmp_path, "r.jsonl")
    assert {cell["cell"]: cell["status"] for cell in shown} == {cell: record["status"] for cell, record in seen.items()}


def test_the_same_options_are_one_cell_however_they_are_written(cumatrix: Command, program: Path) -> None:
    ways = [
        ("kernel.cu", "-std=c++17", "-DA=1", "-D", "B", "-lineinfo", "--rdc"),
        (program, "--std", "c++17", "-D", "B=1", "-D", "A=1", "--generate-line-info", "-rdc=true"),
        ("./kernel.cu", "--option=-lineinfo", "-std", "c++17", "-DB", "-DA=1", "-dc"),
    ]
    cells = {one(cumatrix, *way)["cell"] for way in ways}
    assert cells == {"kernel.cu[-std=c++17 -rdc=true -lineinfo -DA=1 -DB=1] nvrtc cuda13.0 sm_80"}


@pytest.mark.slow
def test_another_content_is_another_run_of_the_same_cell(cumatrix: Command, program: Path, tmp_path: Path) -> None:
    argv = ("try", "kernel.cu", "-t", "13.0", "-a", "80", "-b", "nvrtc", "--out", "r.jsonl")
    assert cumatrix(*argv).returncode == 0
    program.write_text("__global__ void k() { wrong; }\n")
    assert cumatrix(*argv).returncode == 1
    assert [cell["status"] for cell in matrix(cumatrix, tmp_path, "r.jsonl")] == ["rejected"]


@pytest.mark.slow
def test_two_programs_of_one_name_are_two(cumatrix: Command, tmp_path: Path) -> None:
    for name, text in (("a", PLAIN), ("b", "__global__ void k() { wrong; }\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.cu").write_text(text)
    records = tried(cumatrix, "a/kernel.cu", tmp_path / "b" / "kernel.cu", "a/kernel.cu")
    assert sorted((record["case"], record["status"]) for record in records) == [
        ("a/kernel.cu", "built"),
        ("b/kernel.cu", "rejected"),
    ]
    # The folders contain files of one name; the table distinguishes them.
    for name in "ab":
        cumatrix.folder = tmp_path / name
        done = cumatrix("try", "kernel.cu", "-t", "13.0", "-a", "80", "-b", "nvrtc", "--out", "../r.jsonl", "--json")
        assert json.loads(done.stdout)["cell"] == "kernel.cu nvrtc cuda13.0 sm_80"
    # From another folder, their names contain a part of their path.
    (tmp_path / "c").mkdir()
    cumatrix.folder = tmp_path / "c"
    outside = tried(cumatrix, "../a/kernel.cu", "../b/kernel.cu", "-I", "../a")
    assert len({record["cell"] for record in outside}) == 2
    assert not any(str(tmp_path) in record["cell"] for record in outside)
    cumatrix.folder = tmp_path
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2
    shown = matrix(cumatrix, tmp_path, "r.jsonl")
    assert sorted(cell["status"] for cell in shown) == ["built", "rejected"]
    assert len({cell["case"] for cell in shown}) == 2
    assert all(cell["case"].startswith("kernel.cu@") for cell in shown)


@pytest.mark.slow
def test_options_for_one_backend_alone(cumatrix: Command, program: Path) -> None:
    argv = ("try", "kernel.cu", "-b", "nvrtc,nvcc", "-t", "13.0", "-a", "80", "--json", "-O3")
    done = cumatrix(*argv, "--option", "nvcc:-lineinfo", "--option=nvrtc:-default-device", "--option=-DX=a:-b")
    command = {record["backend"]: record["command"][0] for record in map(json.loads, done.stdout.splitlines())}
    assert command.keys() == {"nvrtc", "nvcc"}, done.stderr
    assert ("-lineinfo" in command["nvcc"], "-lineinfo" in command["nvrtc"]) == (True, False)
    assert ("-O3" in command["nvcc"], "-O3" in command["nvrtc"]) == (True, False)
    assert ("-default-device" in command["nvcc"], "-default-device" in command["nvrtc"]) == (False, True)
    assert all("-DX=a:-b" in words for words in command.values())


@pytest.mark.parametrize("release", ["11.8", "13.0"])
def test_the_options_of_nvcc_are_taken(cumatrix: Command, program: Path, release: str) -> None:
    backends = "nvrtc" if release == "11.8" else "nvrtc,nvcc"
    done = cumatrix(
        "try", "kernel.cu", "-b", backends, "-t", release, "-arch=sm_80", "--json", "-std=c++17", "-O3", "-lineinfo", "--use_fast_math",
        "-Xptxas", "-v", "-maxrregcount=32", "-ftz=true", "-prec-div", "false", "--fmad=true", "-w", "-UX", "-Xcompiler", "-fPIC",
        "--expt-relaxed-constexpr", "-g",
    )  # fmt: skip
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["status"] for record in records] == ["built"] * len(backends.split(",")), done.stdout + done.stderr
    for record in records:
        assert record["target"] == "sm_80"
        for word in ("-lineinfo", "--use_fast_math", "--ptxas-options=-v", "--maxrregcount=32", "--ftz=true", "-UX"):
            assert word in record["command"][0], record["backend"]


@pytest.mark.parametrize(
    "option", ["-G", "--device-debug", "-rdc=true", "--rdc", "-dc", "--relocatable-device-code=true"]
)
def test_debug_and_relocatable_code(cumatrix: Command, program: Path, option: str) -> None:
    record = one(cumatrix, option, "kernel.cu")
    assert record["status"] == "built", record["log"]
    wanted = "-G" if option in ("-G", "--device-debug") else "--relocatable-device-code=true"
    assert wanted in record["command"][0]


def test_generate_code(cumatrix: Command, program: Path) -> None:
    argv = ("try", "kernel.cu", "-b", "nvrtc", "-t", "13.0")
    records = cumatrix.records(
        *argv, "-gencode", "arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=[sm_90,compute_90]"
    )
    assert {record["target"] for record in records} == {"sm_80", "sm_90", "compute_90"}
    done = cumatrix(*argv, "-gencode", "arch=compute_80,code=sm_86")
    assert done.returncode == 2
    assert "cumatrix compiles sm_86 from compute_86 alone" in done.stderr
    assert cumatrix(*argv, "-gencode", "sm_80").returncode == 2


@pytest.mark.slow
def test_headers_and_the_newest_release_of_a_major_version(
    cumatrix: Command, tmp_path: Path, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("13.5")
    (tmp_path / "kernel.cuh").write_text(PLAIN)
    argv = ("try", "kernel.cuh", "-b", "nvrtc,nvcc", "-t", "13", "-a", "8.0")
    assert [(record["toolkit"], record["status"]) for record in cumatrix.records(*argv)] == [("13.5", "built")] * 2


@pytest.mark.slow
def test_options_that_no_file_takes(cumatrix: Command, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("from numba import cuda\n")
    for words in (
        ("-O3",),
        ("-lineinfo",),
        ("--option=-x",),
        ("-std=c++17",),
        ("-I", "."),
        ("--rdc",),
        ("--device-only",),
    ):
        done = cumatrix("try", "kernel.py", *words)
        assert done.returncode == 2
        assert "is an option for CUDA C++, and no file is CUDA C++" in done.stderr


def test_a_backend_that_nothing_knows(cumatrix: Command, program: Path) -> None:
    done = cumatrix("try", "kernel.cu", "--option", "nvc:-O3")
    assert done.returncode == 2
    assert "unknown backend 'nvc' (did you mean \"nvcc\"?)" in done.stderr


def test_a_file_that_got_no_answer_is_said(cumatrix: Command, program: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("from numba import cuda\n")
    done = cumatrix("try", "kernel.cu", "kernel.py", "-b", "nvrtc", "-t", "13.0", "-a", "80")
    assert done.returncode == 0
    assert "no compiler answered for the file kernel.py: none of the chosen cells has it" in done.stderr
