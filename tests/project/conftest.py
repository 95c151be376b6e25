"""A small project with a ``csrc/`` and headers of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Configure = Callable[..., Path]

FILES = {
    "csrc/scale.cu": '#include "three.h"\nextern "C" __global__ void scale(float *x) { x[N] *= THREE; }\n',
    "csrc/deep/shift.cu": 'extern "C" __global__ void shift(float *x) { *x += 1; }\n',
    "csrc/bind.cpp": "int main() {}\n",
    "include/three.h": "#pragma once\n#define THREE 3\n",
    "python/axpy.py": "from numba import cuda\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def configure(project: Path) -> Configure:
    """Write the configuration."""

    def write(text: str, name: str = "cumatrix.toml") -> Path:
        (project / name).write_text(text)
        return project / name

    return write
