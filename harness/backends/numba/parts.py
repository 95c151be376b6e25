"""Small parts of the backends for Numba: its environment, what is loaded ahead, compiling to PTX."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
from collections.abc import Callable
from typing import Any

from harness.protocol.backend import Job, Setup, Unavailable


def set_apart(setup: Setup) -> None:
    """Nothing of the user's settings counts, and without a device no real driver is looked for."""
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or importing NumPy starts threads, and cells are forked from here
    os.environ["NUMBA_CUDA_INCLUDE_PATH"] = str(setup.home / "include")
    if not setup.device:
        os.environ["NUMBA_CUDA_DRIVER"] = "0"
        os.environ["NUMBA_CUDA_USE_NVIDIA_BINDING"] = "0"


def compile_ptx(kernel: Any, arguments: Any, job: Job) -> str:
    """Compile a kernel's function to PTX, by the library's public API."""
    from numba import cuda

    options = {name: kernel.targetoptions.get(name) for name in ("debug", "lineinfo", "fastmath", "opt")}
    options = {name: value for name, value in options.items() if value is not None}
    if hasattr(cuda, "compile"):
        options |= {"device": False, "abi": "numba", "output": "ptx"}
    build = getattr(cuda, "compile", None) or cuda.compile_ptx
    suffix = job.arch[len(job.arch.rstrip("af")) :]
    capability = (*job.capability, suffix) if suffix else job.capability
    ptx, _ = build(kernel.py_func, arguments, cc=capability, **options)
    return ptx if isinstance(ptx, str) else str(ptx.decode())


class Nothing:
    """In place of a target context, so that Numba imports what it would install there, in its own order."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("install_"):
            raise AttributeError(name)
        return lambda *_: None


def dotted(capability: tuple[int, int]) -> str:
    """A compute capability as people write it: ``"8.0"``."""
    return ".".join(map(str, capability))


def package_version(name: str) -> str | None:
    """Version of an installed distribution, or of a package on the path without one."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return str(importlib.import_module(name.replace("-", "_")).__version__)
    except (ImportError, AttributeError):
        return None


def preload(setup: Setup, *stems: str) -> None:
    """Load libraries of the toolkit, so that later lookups by name find these.

    Raises
    ------
    Unavailable
        When the toolkit lacks one.
    """
    for stem in stems:
        library = setup.library(stem)
        if library is None:
            raise Unavailable(f"CUDA {setup.release} as installed has no {stem}")
        ctypes.CDLL(str(library))
