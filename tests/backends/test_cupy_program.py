"""Programs of CuPy's own API, with a virtual device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

RunCell = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.compilers
OLD, NEW = "cupy-cuda12x==12.3.0", "cupy-cuda12x==13.6.0"

WHOLE = """\
import cupy
import numpy as np
from cupyx import jit

values = cupy.arange(10, dtype="f")
cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "length_of")(values)
cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x - y", "difference")(values, values)

@cupy.fuse()
def root(x, y):
    return cupy.sqrt(x * y)

root(values, values)

@jit.rawkernel()
def scale(x, n):
    i = jit.grid(1)
    if i < n:
        x[i] *= 2

scale((1,), (32,), (values, np.uint32(10)))
module = cupy.RawModule(code="template <class T> __global__ void one(T *x) { *x = 1; }",
                        options=("-std=c++17",), name_expressions=["one<float>"])
module.get_function("one<float>")((1,), (1,), (values,))
stream = cupy.cuda.Stream()
with stream:
    np.testing.assert_array_equal(cupy.asnumpy(cupy.array([1, 2, 3])), [1, 2, 3])  # memory is the host's
assert cupy.cuda.Device().compute_capability == "80"
print("to the end")
"""


@pytest.mark.parametrize("requirement", [OLD, NEW])
def test_everything_that_compiles_is_in_the_artifact(run_cell: RunCell, requirement: str) -> None:
    reply = run_cell(requirement, "cupy-nvrtc", "12.4", WHOLE, "sm_80", {}, {})
    assert reply["status"] == "built", reply
    names = [kernel["name"] for kernel in reply["artifact"]["kernels"]]
    assert [name for name in ("length_of", "difference", "root", "scale", "_Z3oneIfEvPT_") if name not in names] == []
    assert reply["artifact"]["target"] == "sm_80"
    assert reply["device"]["virtual"] is True
    assert reply["command"][0] == "python kernel.py"
    assert sum("nvrtcCompileProgram" in line for line in reply["command"]) >= 6
    assert "to the end" in reply["log"]
    assert [note for note in reply["notes"] if "launches were left out: the device is virtual" in note]
    assert not [note for note in reply["notes"] if "ended early" in note]


def test_a_virtual_architecture_ends_with_ptx(run_cell: RunCell) -> None:
    program = 'import cupy\ncupy.ElementwiseKernel("T x", "T y", "y = x", "same")(cupy.zeros(4, "f"))\n'
    reply = run_cell(NEW, "cupy-nvrtc", "12.4", program, "compute_90", {"same": ""}, {})
    assert (reply["status"], reply["artifact"]["format"], reply["artifact"]["target"]) == ("built", "ptx", "compute_90")


LARGE = """\
code = "__shared__ float s[12289]; s[threadIdx.x] = *x; __syncthreads(); *x = s[*(int *)x];"
cupy.RawKernel('extern "C" __global__ void k(float *x) { ' + code + " }", "k")((1,), (1,), (cupy.zeros(4, "f"),))
"""


@pytest.mark.parametrize(
    ("program", "status", "stage", "words"),
    [
        ('cupy.ElementwiseKernel("T x", "T y", "y = nothing(x)", "wrong")(cupy.zeros(4, "f"))',
         "rejected", "compile", 'identifier "nothing" is undefined'),
        ('try:\n    cupy.ElementwiseKernel("T x", "T y", "y = nothing(x)", "wrong")(cupy.zeros(4, "f"))\nexcept Exception:\n    pass',
         "rejected", "compile", 'identifier "nothing" is undefined'),
        (LARGE,
         "rejected", "assemble", r"uses too much shared data"),
        ('cupy.RawModule(code="extern \\"C\\" __global__ void k() {}").get_function("no_such")',
         "rejected", "load", "named symbol not found: no_such"),
        ("cupy.cuda.runtime.getDeviceProperties(0)", "unsupported", None, "asks for what only a device has: CUDARuntimeError"),
        ("pass", "unsupported", None, "has CuPy compile nothing"),
        ("raise KeyError('mine')", "rejected", "compile", "KeyError: 'mine'"),
        ("cupy.zeros(4, 'f') + 1\nraise KeyError('mine')", "built", None, "ended early, after launches that computed nothing: KeyError: 'mine'"),
        ("import no_such_module", "unavailable", None, "no module no_such_module is there"),
    ],
)  # fmt: skip
def test_what_a_program_comes_to(run_cell: RunCell, program: str, status: str, stage: str | None, words: str) -> None:
    reply = run_cell(NEW, "cupy-nvrtc", "12.9", f"import cupy\n{program}\n", "sm_80", {}, {})
    assert reply["status"] == status, reply
    assert stage is None or reply["stage"] == stage
    assert words in "\n".join([reply["log"], reply["reason"], *reply["notes"]])
    if "nothing" in words and status == "rejected":
        assert reply["diagnostics"][0]["file"] == "made-by-cupy.cu"  # the lines of the log are not the program's


def test_what_differs_between_cells_has_to_reach_the_program(run_cell: RunCell) -> None:
    program = "import cupy\ncupy.zeros(4, 'f') + 1\n"
    reply = run_cell(NEW, "cupy-nvrtc", "12.9", program, "sm_80", {}, {"fastmath": True})
    assert (reply["status"], "does not use OPTIONS, so fastmath would not reach CuPy" in reply["reason"]) == (
        "unsupported",
        True,
    )
    program = (
        "import cupy\ncupy.RawKernel('extern \"C\" __global__ void k() {}', 'k', options=OPTIONS)((1,), (1,), ())\n"
    )
    reply = run_cell(NEW, "cupy-nvrtc", "12.9", program, "sm_80", {"k": ""}, {"fastmath": True})
    assert reply["status"] == "built"
    assert "--use_fast_math" in reply["command"][-1]


def test_jitify_and_nvcc_are_other_backends(run_cell: RunCell) -> None:
    kernel = "'extern \"C\" __global__ void k() {}', 'k'"
    program = f"import cupy\ncupy.RawKernel({kernel}, jitify=True)((1,), (1,), ())\n"
    reply = run_cell(OLD.replace("12.3.0", "13.1.0"), "cupy-nvrtc", "12.4", program, "sm_80", {}, {})
    assert reply["status"] == "unsupported"
    assert "to Jitify, which looks for the device by itself: cupy-jitify has a stand-in for that" in reply["reason"]
    program = f"import cupy\ncupy.RawKernel({kernel}, backend='nvcc')((1,), (1,), ())\n"
    reply = run_cell(NEW, "cupy-nvrtc", "12.9", program, "sm_80", {}, {})
    assert (reply["status"], "nvcc compile a kernel of kernel.py" in reply["reason"]) == ("unsupported", True)
