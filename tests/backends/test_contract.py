"""The contract of every backend, with cumatrix's own backends and real compilers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from venvs import python_with

from cumatrix.contract import BackendContract

pytestmark = pytest.mark.compilers


@pytest.fixture(scope="module", autouse=True)
def _installed(toolkit: Callable[[str], object]) -> None:
    for release in ("12.9", "13.0"):
        toolkit(release)


class TestNvrtc(BackendContract):
    backend = "nvrtc"


class TestCudaCore(BackendContract):
    backend = "cuda-core"

    @classmethod
    def interpreter(cls) -> str:
        return python_with("cuda-core==1.2.2")


class TestCupyNvrtc(BackendContract):
    backend = "cupy-nvrtc"
    virtual = ""

    @classmethod
    def interpreter(cls) -> str:
        return python_with("cupy-cuda12x==13.6.0")


class TestNumba(BackendContract):
    backend = "numba"
    language = "python"
    unknown = "sm_100"

    @classmethod
    def interpreter(cls) -> str:
        return python_with("numba==0.59.1")


class TestNumbaCudaMlir(BackendContract):
    backend = "numba-cuda-mlir"
    language = "python"

    @classmethod
    def interpreter(cls) -> str:
        return python_with("numba-cuda-mlir==0.6.0")
