"""The scripts: each backend's own way to compile, in a few lines that import nothing of cumatrix."""

from __future__ import annotations

from collections.abc import Callable

from harness.repro import compilers, libraries
from harness.repro.script import Script
from harness.repro.subject import ReproTarget

_SCRIPTS: dict[str, Callable[[ReproTarget], Script]] = {
    "nvrtc": compilers.nvrtc,
    "cupy-nvrtc": libraries.cupy,
    "cupy-jitify": libraries.cupy,
    "numba": libraries.numba,
    "numba-cuda": libraries.numba,
    "nvcc": compilers.nvcc,
    "torch-nvcc": compilers.torch,
    "cuda-core": libraries.cuda_core,
}


def script_of(subject: ReproTarget) -> Script:
    """The script of a cell."""
    return _SCRIPTS[subject.backend](subject)
