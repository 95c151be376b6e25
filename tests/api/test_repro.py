"""``cumatrix.repro``, with a real compiler."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import cumatrix
from harness.toolkits import Installed


@pytest.mark.compilers
def test_a_folder_shows_the_cell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toolkit: Callable[[str], Installed],
    capfd: pytest.CaptureFixture[str],
) -> None:
    toolkit("12.9")
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text("__global__ void k() { throw 1; }\n")
    cumatrix.try_("k.cu", backend="nvrtc", toolkit="12.9", target="sm_80", out="k.jsonl")
    made = cumatrix.repro("k.cu", results=[Path("k.jsonl")], out="made")
    assert (made.cell, made.folder, made.confirmed) == ("k.cu nvrtc cuda12.9 sm_80", Path("made"), None)
    assert "throw" in next(Path("made").rglob("k.cu")).read_text()
    compile(Path("made", "repro.py").read_text(), "repro.py", "exec")
    assert capfd.readouterr() == ("", "")
    with pytest.raises(cumatrix.UsageError, match="nothing-like-this"):
        cumatrix.repro("nothing-like-this", results="k.jsonl", out="other")
    assert not Path("other").exists()


def test_it_is_a_function_whatever_is_imported_first() -> None:
    code = "import cumatrix, cumatrix.repro_script; assert callable(cumatrix.repro)"
    subprocess.run([sys.executable, "-c", code], check=True)
