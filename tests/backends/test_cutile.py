"""cuTile, with real compilations by tileiras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

from cumatrix import try_
from cumatrix._results import Cell

CASES = Path(__file__).parents[2] / "cases" / "cutile"
ADD = (CASES / "element-wise" / "kernel.py").read_text()


@pytest.fixture
def attempt(tmp_path: Path) -> Any:
    def run(text: str, target: str, **options: Any) -> list[Cell]:
        (tmp_path / "program.py").write_text(text)
        python = python_with("cuda-tile[tileiras]==1.3.0")
        return list(
            try_(tmp_path / "program.py", backend="cutile", python=python, target=target, cache=False, **options)
        )

    return run


@pytest.mark.slow
def test_the_target_takes_the_place_of_the_gpu_that_the_program_names(attempt: Any) -> None:
    cells = {cell.target: cell for cell in attempt(ADD, "sm_75,sm_80,sm_90,sm_120,compute_80")}
    turing, hopper, blackwell = cells["sm_75"], cells["sm_90a"], cells["sm_120a"]
    assert {(cell.status, cell.stage) for cell in (turing, hopper)} == {("rejected", "compile")}
    assert "Cannot find option named 'sm_75'" in turing.message
    assert [cell.artifact["target"] for cell in (cells["sm_80"], blackwell)] == ["sm_80", "sm_120a"]
    assert "add" in blackwell.kernels[0].name and blackwell.kernels[0].registers
    assert "makes sm_80 of it, not compute_80" in cells["compute_80"].reason
    assert {cell.toolkit for cell in cells.values()} == {"13.2@bundled"}
    assert blackwell.toolchain["observed"]["tileiras"].startswith("13.2.")


@pytest.mark.slow
def test_every_export_belongs_to_the_artifact_and_files_are_written(attempt: Any) -> None:
    more = (
        ADD
        + """
export_kernel(add, [signature.with_symbol("again")], "again.cubin", gpu_code="sm_100", output_format="cubin")
with open("again.cubin", "rb") as file:
    assert file.read(4) == b"\\x7fELF"
ct.launch(None, (1,), add, ())
"""
    )
    (cell,) = attempt(more, "sm_80")
    assert cell.status == "built", cell.log
    assert [each.name == "again" for each in cell.kernels] == [False, True]
    assert cell.notes == ["left out, since there is no device: 1 of its launches"]


@pytest.mark.slow
def test_refusals_and_what_is_no_program(attempt: Any) -> None:
    (cell,) = attempt((CASES / "fp8-matmul" / "kernel.py").read_text(), "sm_80")
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert "float8_e4m3fn is not supported on" in cell.message
    (cell,) = attempt("import cuda.tile\n", "sm_80")
    assert cell.status == "unsupported" and "export_kernel" in cell.reason
    (cell,) = attempt(ADD, "sm_80", toolkit="13.0")
    assert cell.status == "unsupported" and "takes none of CUDA 13.0" in cell.reason
