"""CuTe DSL, with real compilations by a release that cutlass#3420 is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

from cumatrix import try_
from cumatrix._results import Cell

CASES = Path(__file__).parents[2] / "cases" / "cute"


@pytest.fixture
def attempt(tmp_path: Path) -> Any:
    def run(text: str, target: str, **options: Any) -> list[Cell]:
        (tmp_path / "program.py").write_text(text)
        python = python_with("nvidia-cutlass-dsl==4.6.1")
        return list(
            try_(tmp_path / "program.py", backend="cute-dsl", python=python, target=target, cache=False, **options)
        )

    return run


@pytest.mark.slow
def test_builds_what_was_asked_for_and_nothing_else(attempt: Any) -> None:
    cells = attempt((CASES / "element-wise" / "kernel.py").read_text(), "sm_75,sm_90,sm_90a,compute_90")
    turing, hopper, specific, ptx = cells
    assert (turing.status, turing.stage) == ("rejected", "compile")
    assert "sm_75" in turing.message
    assert [cell.artifact["target"] for cell in (hopper, specific, ptx)] == ["sm_90", "sm_90a", "compute_90"]
    assert (hopper.artifact["format"], ptx.artifact["format"]) == ("cubin", "ptx")
    assert "add" in hopper.kernels[0].name and hopper.kernels[0].registers
    assert {cell.toolkit for cell in cells} == {"12.9@bundled"}
    assert hopper.toolchain["observed"]["cuda"] == "12.9"


@pytest.mark.slow
def test_refusals_and_what_is_no_program(attempt: Any) -> None:
    text = (CASES / "cutlass-3420" / "kernel.py").read_text()
    (cell,) = attempt(text, "sm_100a")
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert "NVVM backend compilation failed" in cell.message
    (cell,) = attempt(text, "sm_90a")
    assert (cell.status, "expects arch to be one of" in cell.log) == ("rejected", True)
    (cell,) = attempt("import cutlass\n", "sm_90a")
    assert cell.status == "unsupported" and "cute.compile" in cell.reason
    (cell,) = attempt(text, "sm_100a", toolkit="12.9")
    assert cell.status == "unsupported" and "takes none of CUDA 12.9" in cell.reason
