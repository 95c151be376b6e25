"""Options that a case names: passed on as the library's users write them, or reported as meaningless for the backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.compilers, pytest.mark.timeout(2700)]
RunCell = Callable[..., dict[str, Any]]
OLD, NEW, NUMBA = "cupy-cuda12x==12.3.0", "cupy-cuda12x==13.1.0", "numba==0.61.2"
NUMBA_CUDA = "numba-cuda==0.24.0"

SINE = 'extern "C" __global__ void scale(float *a) { a[threadIdx.x] = sinf(a[threadIdx.x]) / a[0]; }'
IN_PYTHON = """\
import math
from numba import cuda

@cuda.jit({decorator})
def scale(a):
    a[cuda.threadIdx.x] = math.sin(a[cuda.threadIdx.x]) / a[0]
"""
ENTRY = {"scale": "void(float32[:])"}
SWITCHES = {
    "debug": (True, "-G"),
    "lineinfo": (True, "-lineinfo"),
    "fastmath": (True, "--use_fast_math"),
    "ptxas": (["-O0"], "--ptxas-options=-O0"),
}
"""Options of a case, and the options that users of NVRTC and of CuPy write."""


@pytest.fixture
def cubin(tmp_path: Path) -> Callable[[], bytes]:
    """Leftovers of the last cell."""
    return lambda: next(max(tmp_path.glob("cell-*")).glob("*.cubin")).read_bytes()


@pytest.mark.parametrize(
    ("requirement", "backend"),
    [(OLD, "nvrtc"), (OLD, "cupy-nvrtc"), pytest.param(NEW, "cupy-jitify", marks=pytest.mark.slow)],
)
def test_nvrtc_is_given_them_as_its_users_write_them(
    run_cell: RunCell, cubin: Callable[[], bytes], requirement: str, backend: str
) -> None:
    def built(**options: Any) -> dict[str, Any]:
        given = {"arch": "given", **options} if backend == "nvrtc" else options
        reply = run_cell(requirement, backend, "12.4", SINE, "sm_80", {"scale": ""}, given)
        assert reply["status"] == "built", reply
        return reply

    plain = built()["artifact"]
    assert b".debug_line" not in cubin()
    for name, (value, word) in SWITCHES.items():
        asked = built(**{name: value})
        assert word in asked["command"][0], name
        # Two programs that differ only in lines of the source have equal kernels.
        assert (b".debug_line" in cubin()) is (name in ("debug", "lineinfo")), name
        assert (asked["artifact"]["kernels"] == plain["kernels"]) is (name == "lineinfo"), name
        assert asked["artifact"]["kernels"] == built(flags=[word])["artifact"]["kernels"], name
        assert built(**{name: [] if name == "ptxas" else False})["artifact"] == plain, name


@pytest.mark.parametrize(("requirement", "backend"), [(NUMBA, "numba"), (NUMBA_CUDA, "numba-cuda")])
def test_numba_is_given_those_of_its_decorator(
    run_cell: RunCell, cubin: Callable[[], bytes], requirement: str, backend: str
) -> None:
    def opcodes(decorator: str, **options: Any) -> Any:
        text = IN_PYTHON.format(decorator=decorator)
        reply = run_cell(requirement, backend, "12.9", text, "sm_80", ENTRY, options)
        assert reply["status"] == "built", reply
        return [kernel["opcodes"] for kernel in reply["artifact"]["kernels"]]

    plain = opcodes("")
    assert b".debug_line" not in cubin()
    assert opcodes("**JIT_OPTIONS", lineinfo=True) == plain
    assert b".debug_line" in cubin()
    assert opcodes("**JIT_OPTIONS", fastmath=True) == opcodes("fastmath=True") != plain


@pytest.mark.parametrize(("requirement", "backend"), [(NUMBA, "numba"), (NUMBA_CUDA, "numba-cuda")])
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"fastmath": True}, "kernel.py does not use JIT_OPTIONS, so fastmath=True would not reach Numba"),
        ({"debug": True, "lineinfo": True}, "so debug=True, lineinfo=True would not reach Numba"),
        ({"arch": "given"}, "no architecture can be given"),
        ({"rdc": True}, "no word on relocatable code (rdc)"),
        ({"flags": ["-lineinfo"]}, "no options for compilers (flags)"),
        ({"ptxas": ["-O0"]}, "no options for compilers (ptxas)"),
    ],
)
def test_what_numba_has_no_word_for_is_not_applicable(
    run_cell: RunCell, requirement: str, backend: str, options: dict[str, Any], reason: str
) -> None:
    text = IN_PYTHON.format(decorator="")
    reply = run_cell(requirement, backend, "12.9", text, "sm_80", ENTRY, options)
    assert (reply["status"], reply["artifact"]) == ("unsupported", None)
    assert reason in reply["reason"]


@pytest.mark.parametrize("options", [{"std": "c++17"}, {"lineinfo": False, "rdc": False, "flags": []}])
def test_what_is_of_cpp_alone_or_not_asked_for_stops_no_python(run_cell: RunCell, options: dict[str, Any]) -> None:
    reply = run_cell(NUMBA, "numba", "12.9", IN_PYTHON.format(decorator=""), "sm_80", ENTRY, options)
    assert reply["status"] == "built", reply
