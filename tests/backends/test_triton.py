"""Triton: signatures without Triton, and real compilations with the release of triton#8473."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from venvs import python_with

from cumatrix import try_
from cumatrix._results import Cell
from harness.backends.triton import Compiled, Kernel, Signature, read_signature
from harness.protocol.backend import Unavailable

RELEASE = "3.5.0"
DOT = """
import triton
import triton.language as tl


@triton.jit
def dot(a, b, c, B: tl.constexpr):
    i = tl.arange(0, B)
    p = i[:, None] * B + i[None, :]
    tl.store(c + p, tl.dot(tl.load(a + p), tl.load(b + p)))
"""
TUNED = """
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"B": b}, num_warps=w) for b, w in ((32, 4), (64, 2))], key=[])
@triton.jit
def fill(x, value, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), value)
"""


def kernel(**values: Any) -> Kernel:
    names = ("x", "n", "B")
    params = [SimpleNamespace(name=name, is_constexpr=name == "B") for name in names]
    return Kernel(SimpleNamespace(__name__="scale", arg_names=list(names), params=params), values=values)


def test_a_signature_has_types_values_and_hints() -> None:
    found = read_signature("*fp16:16, 1, 128", kernel(), {})
    assert (found.types, found.constants, found.aligned) == ({"x": "*fp16"}, {"n": 1, "B": 128}, ("x",))
    assert read_signature("*fp16, i32:1, 128", kernel(), {}).constants == {"n": 1, "B": 128}


def test_names_in_a_signature_are_definitions_and_configurations_decide_first() -> None:
    assert read_signature("*TYPE, i32, SIZE", kernel(), {"TYPE": "bf16", "SIZE": 64}).types == {
        "x": "*bf16",
        "n": "i32",
    }
    assert read_signature("*fp32, i32, constexpr", kernel(B=32), {}).constants == {"B": 32}


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("*fp16, i32", "has 2 arguments, and scale takes 3: x, n, B"),
        ("*fp16, i32, i32", "'i32' for B, which takes a value"),
        ("*fp16:8, i32, 128", "a hint is :16 or :1"),
    ],
)
def test_a_signature_that_does_not_fit(signature: str, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        read_signature(signature, kernel(), {})


@pytest.fixture
def attempt(tmp_path: Path) -> Any:
    def run(text: str, target: str, **options: Any) -> list[Cell]:
        (tmp_path / "program.py").write_text(text)
        python = python_with(f"triton=={RELEASE}")
        return list(
            try_(tmp_path / "program.py", backend="triton", python=python, target=target, cache=False, **options)
        )

    return run


@pytest.mark.slow
def test_pointers_of_triton_s_come_after_the_arguments() -> None:
    """As in the PTX of 3.6, which has two of them."""
    parameters = [f"\t.param .u64 .ptr .global .align 1 scale_param_{number}" for number in range(4)]
    ptx = ".visible .entry scale(\n" + ",\n".join(parameters) + "\n)\n{\n\tld.param.b64 \t%rd1, [scale_param_0];\n}\n"
    made = Compiled(kernel(), Signature({"x": "*fp32", "n": "*fp32"}, {}), b"", ptx, {})
    assert made.hidden == 2


def test_builds_crashes_and_says_what_it_made(attempt: Any) -> None:
    cells = attempt(DOT, "sm_75,compute_80,sm_90,sm_103", signature={"dot": "*fp16, *fp16, *fp32, 64"})
    turing, hopper, ultra, ptx = cells
    assert (turing.status, turing.kernels[0].tensor_cores) == ("built", "")
    assert (ptx.status, ptx.artifact["format"], ptx.artifact["target"]) == ("built", "ptx", "compute_80")
    assert (hopper.target, hopper.artifact["target"], hopper.stages) == ("sm_90a", "sm_90a", ["compile", "assemble"])
    assert hopper.kernels[0].registers and hopper.kernels[0].tensor_cores == "HGMMA"
    assert (ultra.status, ultra.stage, ultra.signal) == ("crashed", "compile", 6)
    assert any("Cannot select" in each.message for each in ultra.diagnostics)
    assert "triton: llir" in ultra.log
    assert {cell.toolkit for cell in cells} == {"12.8@bundled"}
    assert hopper.toolchain["observed"]["ptxas"].startswith("12.8.")


@pytest.mark.slow
def test_a_newer_ptxas_takes_what_the_bundled_one_does_not_know(attempt: Any) -> None:
    """triton#8539."""
    text = DOT.replace("tl.dot(tl.load(a + p), tl.load(b + p))", "tl.load(a + p) + tl.load(b + p)")
    wanted = {"dot": "*fp32, *fp32, *fp32, 64"}
    bundled, newer = (attempt(text, "sm_121", signature=wanted, toolkit=name)[0] for name in ("12.8@bundled", "13.0"))
    assert (bundled.status, bundled.stage) == ("rejected", "assemble")
    assert bundled.message == "ptxas: Value 'sm_121a' is not defined for option 'gpu-name'"
    assert (newer.status, newer.toolkit) == ("built", "13.0")
    assert newer.toolchain["observed"]["ptxas"].startswith("13.0.")


@pytest.mark.slow
def test_every_configuration_of_the_autotuner_is_compiled(attempt: Any) -> None:
    (cell,) = attempt(TUNED, "sm_80", signature={"fill": "*fp32, fp32, constexpr"})
    assert cell.status == "built", cell.log
    assert [each.name for each in cell.kernels] == ["fill", "fill"]
    assert "B=32" in cell.command[0] and "num_warps=2" in cell.command[1]


@pytest.mark.slow
def test_refusals_name_what_is_wrong_before_the_program_s_lines(attempt: Any) -> None:
    (cell,) = attempt(DOT.replace("tl.dot(", "tl.dott("), "sm_80", signature={"dot": "*fp16, *fp16, *fp32, 64"})
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert "dott" in cell.message
    (cell,) = attempt(DOT, "sm_80")
    assert cell.status == "unsupported" and '--signature "dot=' in cell.reason
    (cell,) = attempt("import absent\n" + DOT, "sm_80")
    assert cell.status == "unavailable" and "absent" in cell.reason


@pytest.mark.slow
def test_code_for_amd_is_read_back(attempt: Any) -> None:
    cells = attempt(DOT, "gfx90a,gfx942,gfx1100", signature={"dot": "*fp16, *fp16, *fp32, 64"})
    for cell, target in zip(cells, ("gfx90a", "gfx942", "gfx1100"), strict=True):
        assert (cell.status, cell.target, cell.stages) == ("built", target, ["compile", "assemble"]), cell.log
        assert (cell.artifact["format"], cell.artifact["target"]) == ("hsaco", target)
        (kernel,) = cell.kernels
        assert kernel.name == "dot" and kernel.registers > 32
        assert "triton: hsaco" in cell.log


@pytest.mark.slow
def test_triton_refuses_a_gpu_of_amd_that_it_does_not_know(attempt: Any) -> None:
    (cell,) = attempt(TUNED, "gfx900", signature={"fill": "*fp32, fp32, constexpr"})
    assert (cell.status, cell.stage) == ("rejected", "compile")
