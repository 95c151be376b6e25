"""The empty program that CuPy compiles before each cell: the cells for which it is compiled ahead, and equality of everything but time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.cupy.backend import EmptyProgram
from harness.nvidia.includes import Words
from harness.protocol.backend import Job
from harness.toolkits import Installed

ROOT = Path(__file__).parents[2]


class FakeCompiler:
    """Fake ``cupy.cuda.compiler`` that reports the calling process and its request."""

    def __init__(self) -> None:
        self._preprocess = self._reported

    @staticmethod
    def _reported(source: str, options: tuple[str, ...], architecture: str, backend: str) -> str:
        if "--use_fast_math" in options:
            raise RuntimeError("NVRTC refuses that")
        return f"{os.getpid()} {source!r} {options} {architecture} {backend}"


@pytest.fixture
def cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return the macros for a cell with these options, and whether the cell compiled the empty program itself; `ahead` is called before."""
    monkeypatch.setattr(EmptyProgram, "_words", Words([b"size_t"]))
    compiler = FakeCompiler()
    real, program = compiler._preprocess, EmptyProgram(compiler)

    def cell(alike: int = 5, target: str = "sm_80", flags: tuple[str, ...] = (), **macros: int) -> SimpleNamespace:
        given = ("--std=c++11", *flags, *(f"-D{name}={value}" for name, value in macros.items()), "-ftz=true")
        job = Job("cell", tmp_path / "kernel.cu", {}, dict(macros), target, {"flags": list(flags)}, [])

        def compiled(blank: Job) -> None:
            assert not blank.definitions
            assert blank.source.read_text() == ""
            compiler._preprocess("", ("--std=c++11", *flags, "-ftz=true"), target.removeprefix("sm_"), "nvrtc")

        program.ahead(job, alike, compiled, lambda: None)
        compiler._preprocess = real
        program.stand_before(job)
        reply = compiler._preprocess("", given, target.removeprefix("sm_"), "nvrtc")
        compiler._preprocess = real
        return SimpleNamespace(reply=reply, itself=int(reply.split()[0]) == os.getpid())

    return cell


def test_it_is_compiled_once_for_cells_that_differ_by_their_macros(cells: Callable[..., Any]) -> None:
    first, second, third = cells(), cells(N=1), cells(N=2, M=3)
    assert not first.itself
    assert first.reply == second.reply == third.reply
    assert "('--std=c++11', '-ftz=true') 80 nvrtc" in first.reply
    other = cells(target="sm_90")
    assert not other.itself
    assert "90 nvrtc" in other.reply


def test_not_for_few_cells(cells: Callable[..., Any]) -> None:
    assert [cells(alike=0).itself for _ in range(4)] == [True, True, False, False]
    assert cells(alike=-1, target="sm_90").itself


def test_not_for_a_macro_that_could_matter(cells: Callable[..., Any]) -> None:
    assert [cells(size_t=1).itself, cells(__CUDACC_RTC__=1).itself, cells(N=1).itself] == [True, True, False]


@pytest.mark.parametrize("flag", ["--time=/tmp/table", "--pre-include=a.h"])
def test_not_with_options_that_could_write_files(flag: str, cells: Callable[..., Any]) -> None:
    assert cells(flags=(flag,)).itself


def test_what_is_refused_is_refused_to_the_cell_itself(cells: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="NVRTC refuses that"):
        cells(flags=("--use_fast_math",))


def test_another_question_is_answered_by_cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmptyProgram, "_words", Words([b"size_t"]))
    compiler = FakeCompiler()
    program = EmptyProgram(compiler)
    job = Job("cell", tmp_path / "kernel.cu", {}, {}, "sm_80", {}, [])
    options = ("--std=c++11",)

    def compiled(_blank: Job) -> None:
        compiler._preprocess("", options, "80", "nvrtc")

    program.ahead(job, 5, compiled, lambda: None)
    program.stand_before(job)
    answers = [
        compiler._preprocess(*asked)
        for asked in (
            ("", options, "80", "nvrtc"),
            ("int x;", options, "80", "nvrtc"),
            ("", ("--std=c++14",), "80", "nvrtc"),
            ("", options, "90", "nvrtc"),
            ("", options, "80", "nvcc"),
        )
    ]
    assert [int(answer.split()[0]) == os.getpid() for answer in answers] == [False, True, True, True, True]


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.timeout(600)
def test_cells_come_to_the_same_with_and_without(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    """The benchmark compiles each cell both ways, and stops if a record differs."""
    toolkit("12.9")
    chosen = ["wmma/fragments", "exceptions/guarded", "shared-memory/static"]
    done = subprocess.run(
        [sys.executable, "benchmarks/precompiled.py", *chosen, "--with", "cupy=13.6.0", "-b", "cupy-nvrtc", "-t", "12.9", "-a", "sm_80"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "25 cells are the same" in done.stdout
