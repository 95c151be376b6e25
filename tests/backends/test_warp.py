"""Warp, with real compilations by the releases of warp#953."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

from cumatrix import try_
from cumatrix._results import Cell

CASES = Path(__file__).parents[2] / "cases" / "warp"


@pytest.fixture
def attempt(tmp_path: Path) -> Any:
    def run(text: str, target: str, release: str = "1.9.0", **options: Any) -> list[Cell]:
        (tmp_path / "program.py").write_text(text)
        python = python_with(f"warp-lang=={release}")
        return list(try_(tmp_path / "program.py", backend="warp", python=python, target=target, cache=False, **options))

    return run


@pytest.mark.slow
def test_builds_what_was_asked_for_forward_and_backward(attempt: Any) -> None:
    cells = attempt((CASES / "element-wise" / "kernel.py").read_text(), "sm_75,sm_90,sm_103,compute_90")
    turing, hopper, unknown, ptx = cells
    assert [each.artifact["target"] for each in (turing, hopper, ptx)] == ["sm_75", "sm_90", "compute_90"]
    assert [name.rpartition("_")[2] for name in sorted(each.name for each in hopper.kernels)] == ["backward", "forward"]
    assert hopper.kernels[0].registers and ptx.artifact["format"] == "ptx"
    assert (unknown.status, unknown.stage) == ("rejected", "compile")
    assert "invalid value for --gpu-architecture" in unknown.message
    assert {cell.toolkit for cell in cells} == {"12.8@bundled"}
    assert hopper.toolchain["observed"]["cuda"] == "12.8"


@pytest.mark.slow
def test_a_suffix_needs_a_release_that_has_a_setting_for_it(attempt: Any) -> None:
    text = (CASES / "element-wise" / "kernel.py").read_text()
    (old,), (new,) = attempt(text, "sm_90a"), attempt(text, "sm_90a", "1.19.0")
    assert old.status == "unsupported" and "makes no sm_90a of it" in old.reason
    assert (new.status, new.artifact["target"], new.toolkit) == ("built", "sm_90a", "13.4@bundled")


@pytest.mark.slow
def test_words_of_nvrtc_are_the_diagnostic_and_other_modules_are_compiled(attempt: Any) -> None:
    text = (CASES / "redux" / "kernel.py").read_text().replace("enable_backward=False", 'module="unique"')
    text += "\n\n@wp.kernel\ndef fill(x: wp.array(dtype=int)):\n    x[wp.tid()] = 1\n\n\nwp.launch(fill, 4, [1])\n"
    (cell,) = attempt(text, "sm_75")
    assert (cell.status, cell.stage) == ("rejected", "compile")
    assert '"__reduce_add_sync" is undefined' in cell.message
    assert "refused: total; built: fill" in cell.notes
    assert "left out, since there is no device: 1 of its launches" in cell.notes


@pytest.mark.slow
def test_programs_without_kernels_and_without_a_device(attempt: Any) -> None:
    (cell,) = attempt("import warp as wp\n", "sm_75")
    assert cell.status == "unsupported" and "defines no kernel" in cell.reason
    text = (CASES / "element-wise" / "kernel.py").read_text()
    (cell,) = attempt(text + '\nx = wp.zeros(4, device="cuda:0")\n', "sm_75")
    assert cell.status == "built" and any("ended early" in note for note in cell.notes)
    (cell,) = attempt(text.replace("wp.tid()", "wp.nothing()"), "sm_75")
    assert cell.status == "rejected" and "wp.nothing" in cell.message
    (cell,) = attempt(text, "sm_75", toolkit="12.9")
    assert cell.status == "unsupported" and "takes none of CUDA 12.9" in cell.reason
