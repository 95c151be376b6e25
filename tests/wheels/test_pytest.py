"""The gate of `[tool.cumatrix.wheel]` as an item of pytest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PTX = ".version 9.0\n.target {}\n.address_size 64\n.visible .entry k() {{ ret; }}\n"


def collected(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "pyproject.toml", *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.ptx").write_text(PTX.format("sm_75"))
    (tmp_path / "dist" / "new.ptx").write_text(PTX.format("sm_90a"))
    (tmp_path / "pyproject.toml").write_text(
        '[tool.cumatrix.wheel]\nfiles = ["dist/old.ptx", "dist/*.ptx", "lib/*.so"]\nrequire = "RTX 5090,T4"\n'
    )
    return tmp_path


def test_binaries_of_the_configuration_are_items(project: Path) -> None:
    done = collected(project, "-v")
    assert done.returncode == 1, done.stdout
    assert "pyproject.toml::wheel dist/old.ptx PASSED" in done.stdout
    assert "pyproject.toml::wheel dist/*.ptx FAILED" in done.stdout
    assert "new.ptx: new.ptx: RTX 5090 (sm_120): PTX of compute_90a (for 9.0 alone)" in done.stdout
    assert "lib/*.so fits no file: build the binaries first" in done.stdout
    assert "Traceback" not in done.stdout
    assert collected(project, "-q", "-k", "old").returncode == 0


def test_a_gpu_that_no_table_has_is_named(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.cumatrix.wheel]\nfiles = ["a.so"]\nrequire = "RTX 9999"\n')
    done = collected(project)
    assert done.returncode == 2, done.stdout
    assert "wheel.require: no GPU is called 'RTX 9999'" in done.stdout
