"""An empty selection reports the missing part."""

from __future__ import annotations

from pathlib import Path

from cells import make_case

from harness.backends import BACKENDS
from harness.engine.environment import Environment
from harness.engine.plan import nothing
from harness.errors import NothingToRun
from harness.model import Case

BARE = Environment(name="local", python="/somewhere/bin/python", version="3.11.7", distributions={})
CONTROL = [BACKENDS["nvrtc"], BACKENDS["nvcc"]]


def case(tmp_path: Path, name: str) -> Case:
    (tmp_path / name).write_text("")
    return make_case(tmp_path / name)


def test_a_program_for_numba_says_how_to_get_numba(tmp_path: Path) -> None:
    error = nothing([case(tmp_path, "k.py")], CONTROL, BARE, named=False)
    assert isinstance(error, NothingToRun)  # pytest collects such a case without cells
    assert error.exit_code == 4
    assert "`/somewhere/bin/python -m pip install numba-cuda`" in str(error)


def test_backends_that_were_named_are_named(tmp_path: Path) -> None:
    error = nothing([case(tmp_path, "k.py")], CONTROL, BARE, named=True)
    assert error.exit_code == 3
    assert "not for nvrtc, nvcc, only for numba, numba-cuda" in str(error)


def test_anything_else_is_the_selection(tmp_path: Path) -> None:
    for cases in ([], [case(tmp_path, "k.cu")], [case(tmp_path, "k.cu"), case(tmp_path, "k.py")]):
        error = nothing(cases, CONTROL, BARE, named=False)
        assert error.exit_code == 3
        assert "no cell fits this selection" in str(error)
