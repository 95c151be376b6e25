"""numba-cuda-mlir, with real compilations; `run_cell` is as in test_numba.py."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

pytestmark = pytest.mark.compilers
RunCell = Callable[..., dict[str, Any]]

NEW, OLD = "numba-cuda-mlir==0.6.0", "numba-cuda-mlir==0.4.0"
NOTE = "in this program's imports, numba is numba_cuda_mlir"
PLAIN = """\
from numba import cuda, float32

@cuda.jit
def scale(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= float32(2)
"""
SIGNATURE = {"scale": "void(float32[:])"}


def made(reply: dict[str, Any]) -> list[Any]:
    """Return status, target and format of a reply, and the registers of its kernels."""
    artifact = reply["artifact"] or {}
    kernels = [kernel["num_regs"] for kernel in artifact.get("kernels", [])]
    return [reply["status"], artifact.get("target"), artifact.get("format"), kernels]


@pytest.mark.parametrize(
    ("target", "kind", "stages"),
    [
        ("sm_90", "cubin", ["compile", "assemble"]),
        ("sm_90a", "cubin", ["compile", "assemble"]),
        ("compute_90", "ptx", ["compile"]),
    ],
)
def test_the_target_is_read_from_what_came_out(run_cell: RunCell, target: str, kind: str, stages: list[str]) -> None:
    reply = run_cell(NEW, "numba-cuda-mlir", "12.9", PLAIN, target, SIGNATURE, {})
    status, built_for, form, registers = made(reply)
    assert (status, built_for, form) == ("built", target, kind), reply
    assert len(registers) == 1 and bool(registers[0]) == (kind == "cubin")
    assert (reply["stages"], reply["observed"]["nvvm"], reply["observed"]["ptx"]) == (stages, "12.9", "8.8")
    assert reply["device"] == {"virtual": True, "compute_capability": "9.0"}
    assert reply["notes"] == [NOTE]


LAUNCHED = """\
import numpy as np
from numba_cuda_mlir import cuda

@cuda.jit(device=True, inline="never")
def twice(x):
    return 2 * x

@cuda.jit
def launched(a):
    a[0] = twice(a[0])

@cuda.jit("void(int64[:])")
def signed(a):
    a[0] = 1

@cuda.jit
def alone():
    pass

@cuda.jit
def untyped(a, b):
    a[0] = b

launched[1, 1](np.zeros(3))
"""


@pytest.mark.parametrize("release", [NEW, pytest.param(OLD, marks=pytest.mark.slow)])
def test_kernels_count_and_device_functions_do_not(run_cell: RunCell, release: str) -> None:
    reply = run_cell(release, "numba-cuda-mlir", "12.9", LAUNCHED, "sm_90a", {}, {})
    status, target, _, registers = made(reply)
    assert (status, target, len(registers)) == ("built", "sm_90a", 3), reply
    assert [line.partition(".")[0] for line in reply["command"]] == ["signed", "launched", "alone"]
    assert "Array(float64" in reply["command"][1]
    assert reply["notes"] == [
        "left out, since nothing gives the types of its arguments: untyped",
        "1 launch was left out: the device is virtual",
    ]


def test_one_refusal_counts_and_the_other_kernels_are_compiled(run_cell: RunCell) -> None:
    text = (
        PLAIN
        + "\n@cuda.jit('void(float32[:])')\ndef other(a):\n    a[0] = 1\n\n@cuda.jit\ndef bad(a):\n    a[0] = missing\n"
    )
    reply = run_cell(NEW, "numba-cuda-mlir", "12.9", text, "sm_80", {**SIGNATURE, "bad": "void(float32[:])"}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile"), reply
    assert "NameError: name 'missing' is not defined" in reply["log"]
    assert "refused: bad; built: other, scale" in reply["notes"]


def test_grid_synchronization_is_linked(run_cell: RunCell) -> None:
    text = "from numba import cuda\n\n@cuda.jit\ndef wait():\n    cuda.cg.this_grid().sync()\n"
    reply = run_cell(NEW, "numba-cuda-mlir", "12.9", text, "sm_80", {}, {})
    assert (reply["status"], reply["stages"]) == ("built", ["compile", "assemble", "link"]), reply


UNPACKED = """\
from numba_cuda_mlir import cuda

SIZES = (8, 4)

@cuda.jit
def area(out):
    turned = SIZES[::-1]
    out[0] = turned[0]
"""


@pytest.mark.slow
def test_a_release_that_links_lto_ir(run_cell: RunCell) -> None:
    """Releases up to 0.4.0 link LTO-IR by themselves, and there is no PTX to read the target from."""
    reply = run_cell(OLD, "numba-cuda-mlir", "12.9", PLAIN, "sm_90a", SIGNATURE, {})
    assert made(reply)[:2] == ["built", "sm_90a"], reply
    assert "ptx" not in reply["observed"]
    reply = run_cell(OLD, "numba-cuda-mlir", "12.9", PLAIN, "compute_90", SIGNATURE, {})
    assert made(reply)[:3] == ["built", "compute_90", "ptx"], reply
    reply = run_cell(OLD, "numba-cuda-mlir", "12.9", UNPACKED, "sm_80", {"area": "void(int64[:])"}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile"), reply
    assert reply["log"].startswith("NotImplementedError: lowering getitem turned")  # not a file with the same text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from numba import cuda, prange\n", "cannot import name 'prange' from 'numba_cuda_mlir'"),
        ("from numba.core.extending import intrinsic\n", "No module named 'numba_cuda_mlir.core'"),
        ("import numba\nnumba.njit\n", "numba_cuda_mlir has no njit"),
    ],
)
def test_what_it_lacks_of_numba_is_refused(run_cell: RunCell, text: str, words: str) -> None:
    reply = run_cell(NEW, "numba-cuda-mlir", "12.9", text, "sm_80", {}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile"), reply
    assert words in reply["log"]


RENAMED = """
from harness.backends.numba.renamed import renamed

with renamed() as numba:
    import math
    assert not numba.imported
    import numba.cuda as through_as, numba.cuda.libdevice
    from numba import cuda, float32, types
    from numba.cuda import libdevice
    import numba_cuda_mlir.cuda
    assert numba.cuda is through_as is cuda is numba_cuda_mlir.cuda
    assert (float32, types) == (numba_cuda_mlir.types.float32, numba_cuda_mlir.types)
    assert libdevice is numba.cuda.libdevice is numba_cuda_mlir.cuda.libdevice
    for name in ("numba_cuda_mlir.numba_cuda.random", "numba_cuda_mlir"):
        try:
            exec("import numba", {"__name__": name})
        except ImportError:
            continue
        raise AssertionError(name)
try:
    import numba.cuda
except ImportError:
    print("as before")
"""


def test_numba_is_renamed_for_programs_and_not_for_the_package() -> None:
    """0.3.0 uses Numba if it is installed."""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [python_with(NEW), "-c", RENAMED], env={"PYTHONPATH": root}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "as before\n"), done.stderr
