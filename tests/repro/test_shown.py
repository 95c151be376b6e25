"""The folders themselves, run without cumatrix: in an environment from their requirements, compared with the record.

The records are real. Builds of PyTorch take minutes, with host pass and link; they run only with ``CUMATRIX_TESTS_ALL=1``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from command import Command
from repositories import Repository, cutlass

from harness.cases.sources import packaged_cases
from harness.toolkits import Installed

pytestmark = [pytest.mark.compilers, pytest.mark.timeout(2700)]
LONG = pytest.mark.skipif(
    os.environ.get("CUMATRIX_TESTS_ALL") != "1", reason="takes long: run with CUMATRIX_TESTS_ALL=1"
)
TORCH = ("torch==2.11.0", "ninja==1.13.0", "numpy==2.2.6", "setuptools==80.9.0")


@dataclass(frozen=True)
class Shown:
    """A cell to show: its compilation and its outcome."""

    backend: str
    case: str
    variant: str
    toolkit: str
    status: str
    requires: tuple[str, ...] = ()
    target: str = "sm_80"
    exactly: bool = False


CELLS = [
    Shown("nvrtc", "shared-memory/static", "bytes == 49156", "12.9", "rejected"),
    Shown("nvrtc", "shared-memory/static", "bytes == 49156", "12.4", "built", exactly=True),
    Shown("nvcc", "exceptions/throw", "", "13.0", "rejected"),
    Shown("cupy-nvrtc", "shared-memory/cupy-8156", "bytes == 49156 and cooperative", "12.9", "rejected", ("cupy-cuda12x==13.6.0",)),
    Shown("numba", "cooperative/numba-9432", "cache", "12.9", "rejected", ("numba==0.59.0",)),
    Shown("numba", "cooperative/numba-9432", "not cache", "12.9", "built", ("numba==0.59.0",)),
    Shown("numba-cuda", "shared-memory/static", "bytes == 49156", "12.9", "rejected", ("numba-cuda==0.24.0",)),
    Shown("numba-cuda", "shared-memory/static", "bytes == 49152", "12.9", "built", ("numba-cuda==0.24.0",)),
    Shown("numba-cuda-mlir", "numba/tuples", 'form == "slice"', "12.9", "rejected", ("numba-cuda-mlir==0.4.0",)),
    Shown("numba-cuda-mlir", "cooperative/grid-sync", "not rdc", "12.9", "built", ("numba-cuda-mlir==0.6.0",)),
    Shown("cupy-jitify", "wmma/accumulator-16x16x8", 'arch == "implicit"', "12.1", "rejected", ("cupy-cuda12x==12.3.0",)),
    Shown("cupy-nvrtc", "cupy/reduction-kernel", 'type == "float16" and not defined', "12.9", "rejected", ("cupy-cuda12x==13.6.0",)),
    Shown("cupy-nvrtc", "cupy/jit-half-atomic", 'type == "float16"', "12.9", "built", ("cupy-cuda12x==13.6.0",)),
    Shown("torch-nvcc", "exceptions/torchao-1648", 'form == "reported" and includes == "lean"', "13.0", "rejected", TORCH, "sm_75"),
    Shown("cuda-core", "exceptions/throw", "", "12.9", "rejected", ("cuda-core==0.4.2",)),
    pytest.param(
        Shown("torch-nvcc", "exceptions/torchao-1648", 'form == "reported" and includes == "lean"', "13.0", "built", TORCH),
        marks=LONG,
    ),
]  # fmt: skip


def recorded(cumatrix: Command, what: Shown, python: str = "") -> str:
    """Run a cell; return its id."""
    where = ["--where", what.variant] if what.variant else []
    axes = ["-b", what.backend, "-t", what.toolkit, "-a", what.target, "--out", "results.jsonl"]
    interpreter = ["--python", python] if python else []
    done = cumatrix("run", what.case, "--cases", packaged_cases(), *axes, *where, *interpreter, timeout=2000)
    (record,) = map(json.loads, (cumatrix.folder / "results.jsonl").read_text().splitlines())
    assert record["status"] == what.status, done.stderr
    return str(record["cell"])


@pytest.mark.slow
@pytest.mark.parametrize("what", CELLS, ids=lambda what: f"{what.backend}-{what.case}-{what.toolkit}-{what.status}")
def test_a_folder_shows_what_was_recorded(
    what: Shown, cumatrix: Command, toolkit: Callable[[str], Installed], venv: Callable[..., str]
) -> None:
    toolkit(what.toolkit)
    cell = recorded(cumatrix, what, venv(*what.requires) if what.requires else "")
    done = cumatrix("repro", cell, "--results", "results.jsonl", "--out", "out", "--check", timeout=2000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"out shows the same in a clean environment: {what.status}" in done.stdout
    if what.exactly:
        assert "byte for byte" in done.stdout and "not byte" not in done.stdout
    # The result contains nothing of the installation.
    assert not {".venv", "cuda", "cuda-wheels"} & {path.name for path in (cumatrix.folder / "out").iterdir()}


@pytest.mark.slow
def test_a_folder_that_shows_something_else_is_told_of(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    what = Shown("nvrtc", "exceptions/throw", "", "12.9", "rejected")
    cell = recorded(cumatrix, what)
    shutil.copytree(packaged_cases() / "exceptions", cumatrix.folder / "cases" / "exceptions")
    source = cumatrix.folder / "cases" / "exceptions" / "throw" / "kernel.cu"
    source.write_text("__global__ void kernel() {}\n")
    done = cumatrix("repro", cell, "--results", "results.jsonl", "--out", "out", "--check")
    assert done.returncode == 1
    assert "out does not show what was recorded: built instead of rejected" in done.stdout
    source.write_text("__global__ void kernel() { missing(); }\n")
    done = cumatrix("repro", cell, "--results", "results.jsonl", "--out", "other", "--check")
    assert "other does not show what was recorded: its first message is another one" in done.stdout


@pytest.mark.slow
def test_a_program_without_a_case_with_its_headers(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    for name, text in {
        "src/kernel.cu": '#include "det/d.h"\n#include <extra.h>\n__global__ void k(int *p) { *p = N + VALUE + EXTRA; }\n',
        "src/det/d.h": "#define VALUE 3\n",
        "inc/extra.h": "#define EXTRA missing\n",
    }.items():
        (cumatrix.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (cumatrix.folder / name).write_text(text)
    axes = ["-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--out", "results.jsonl"]
    cumatrix("try", "src/kernel.cu", *axes, "-DN=2", "-Iinc", "-std=c++17")
    done = cumatrix("repro", "kernel.cu", "--results", "results.jsonl", "--out", "out", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    out = cumatrix.folder / "out"
    assert (out / "include-1" / "extra.h").is_file() and (out / "det" / "d.h").is_file()
    # From another folder the options are unknown, and no folder is written.
    other = Command(cumatrix.folder / "src")
    done = other("repro", "kernel.cu", "--results", "../results.jsonl", "--out", "out")
    assert done.returncode == 2
    assert "name it with --program FILE" in done.stderr
    assert not (other.folder / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("source", ["./cutlass", "./cutlass@main~1"])
def test_a_folder_and_a_commit_of_a_header_library(
    source: str, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.9")
    checkout = Repository(cumatrix.folder / "cutlass")
    for number in (1, 2):
        checkout.commit({**cutlass("9.1.2"), "include/cutlass/part.h": f"#define PART missing_{number}\n"})
    program = "#include <cutlass/version.h>\n#include <cutlass/part.h>\n__global__ void k(int *p) { *p = PART; }\n"
    (cumatrix.folder / "kernel.cu").write_text(program)
    axes = ["-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--out", "results.jsonl"]
    cumatrix("try", "kernel.cu", *axes, "--library", f"cutlass={source}")
    done = cumatrix("repro", "kernel.cu*", "--results", "results.jsonl", "--out", "out", "--check")
    assert done.returncode == 0, done.stdout + done.stderr
    headers = {path.name for path in (cumatrix.folder / "out").rglob("cutlass/*.h")}
    assert headers == {"version.h", "part.h"}
    assert f"headers of cutlass that the program includes, from {'<file:' if '@' in source else 'a folder'}" in (cumatrix.folder / "out" / "README.md").read_text()  # fmt: skip
    if "@" not in source:
        checkout.commit({"include/cutlass/part.h": "#define PART 1\n"})
        done = cumatrix("repro", "kernel.cu*", "--results", "results.jsonl", "--out", "later")
        assert done.returncode == 2 and "have changed since" in done.stderr
        assert not (cumatrix.folder / "later").exists()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["nvrtc", "cuda-core"])
def test_a_program_of_several_files(
    backend: str, cumatrix: Command, toolkit: Callable[[str], Installed], venv: Callable[..., str]
) -> None:
    toolkit("12.9")
    for name, text in {
        "pyproject.toml": '[project]\nname = "p"\nversion = "0"\n[[tool.cumatrix.programs]]\nname = "both"\ntogether = true\n'
        'sources = ["csrc/cuda/a.cu", "csrc/other/b.cu"]\ninclude = ["include"]\nflags = ["-rdc=true"]\n',
        "csrc/cuda/a.cu": "#include <pub.h>\n__device__ int other(int);\n__global__ void k(int *x) { *x = other(*x) + PUB; }\n",
        "csrc/other/b.cu": "__device__ int other(int x) { return x + 1; }\n",
        "include/pub.h": "#define PUB 3\n",
    }.items():
        (cumatrix.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (cumatrix.folder / name).write_text(text)
    interpreter = ["--python", venv("cuda-core==0.4.2")] if backend == "cuda-core" else []
    cumatrix("run", "both", "-b", backend, "-t", "12.9", "-a", "sm_80", *interpreter, "--out", "results.jsonl")
    done = cumatrix("repro", "both", "--results", "results.jsonl", "--out", "out", "--check", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "out shows the same in a clean environment: built, byte for byte" in done.stdout


def test_explain_names_the_command(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    cell = recorded(cumatrix, Shown("nvrtc", "exceptions/throw", "", "12.9", "rejected"))
    done = cumatrix("explain", cell, "--results", "results.jsonl")
    command = f"cumatrix repro '{cell}' --results results.jsonl --out repro-throw"
    assert f"To repeat this without cumatrix: {command}\n" in done.stdout
    assert json.loads(cumatrix("explain", cell, "--results", "results.jsonl", "--json").stdout)["repro"] == command
    # The command works as printed.
    assert subprocess.run(f"{cumatrix.script.parent}/{command}", shell=True, cwd=cumatrix.folder, check=False).returncode == 0  # fmt: skip
    assert (cumatrix.folder / "repro-throw" / "README.md").is_file()


@pytest.mark.skipif(
    not shutil.which("cvise") and not shutil.which("creduce"), reason="neither cvise nor creduce is there"
)
def test_a_smaller_program_shows_the_same(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    text = (
        "__device__ int unused(int a) { return a + 1; }\n"
        "__global__ void kernel(int *p) {\n  int x = 3;\n  *p = x;\n  throw 1;\n}\n"
    )
    (cumatrix.folder / "kernel.cu").write_text(text)
    cumatrix("try", "kernel.cu", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80", "--out", "results.jsonl")
    done = cumatrix("repro", "kernel.cu", "--results", "results.jsonl", "--out", "out", "--reduce", timeout=2000)
    assert done.returncode == 0, done.stdout + done.stderr
    small = (cumatrix.folder / "out" / "kernel.cu").read_text()
    assert "throw" in small and "unused" not in small and len(small) < len(text)
    assert (cumatrix.folder / "out" / "kernel.cu.orig").read_text() == text
    assert (
        f"kernel.cu has {len(small)} bytes instead of {len(text)}"
        in (cumatrix.folder / "out" / "README.md").read_text()
    )
