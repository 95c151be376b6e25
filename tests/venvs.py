"""Virtual environments with exact versions of the libraries under test, created once and kept."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import measured
import uv

from harness.process_locks import lock_exclusively, lock_file
from harness.toolkits.store import data_folder

_COMPANIONS = {
    "numba==0.57.1": ["numpy==1.24.4"],
    "numba==0.58.1": ["numpy==1.26.4"],
    "numba==0.59.0": ["numpy==1.26.4"],
    "numba==0.59.1": ["numpy==1.26.4"],
    "numba==0.60.0": ["numpy==2.0.2"],
    "numba==0.61.2": ["numpy==2.2.6"],
    "numba==0.68.1": ["numpy==2.4.6"],
    "numba-cuda==0.4.0": ["numba==0.61.0", "numpy==2.1.3"],
    "numba-cuda==0.15.0": ["numba==0.61.2", "numpy==2.2.6"],
    "numba-cuda==0.20.0": ["numba==0.62.1", "numpy==2.3.5", "cuda-bindings==13.0.3"],
    "numba-cuda[cu12]==0.20.0": ["numba==0.62.1", "numpy==2.3.5", "cuda-bindings==12.9.10"],
    "numba-cuda==0.24.0": ["numba==0.63.1", "numpy==2.3.5", "cuda-core==0.7.0", "cuda-bindings==13.5.0"],
    "numba-cuda==0.30.4": ["numba==0.68.1", "numpy==2.4.6", "cuda-core==1.2.2", "cuda-bindings==13.5.0"],
    "numba-cuda-mlir==0.4.0": ["numpy==2.4.6", "cuda-core==1.0.1", "cuda-bindings==13.3.1"],
    "numba-cuda-mlir==0.6.0": ["numpy==2.4.6", "cuda-core==1.2.2", "cuda-bindings==13.5.0"],
    "cuda-core==1.2.2": ["cuda-bindings==12.9.10", "numpy==2.4.6"],
    "cuda-core==0.4.2": ["cuda-bindings==12.9.10", "numpy==2.2.6"],
    "cupy-cuda12x==12.3.0": ["numpy==1.26.4"],
    "cupy-cuda12x==13.1.0": ["numpy==1.26.4"],
    "cupy-cuda12x==13.2.0": ["numpy==1.26.4"],
    "cupy-cuda12x==13.3.0": ["numpy==2.2.6"],
    "cupy-cuda12x==13.6.0": ["numpy==2.2.6"],
    "cupy-cuda12x==14.2.0": ["numpy==2.2.6"],
}
"""Companions of each release: the newest that work with it, which keeps newer releases from changing a test."""


def python_with(*requirements: str) -> str:
    """Return the interpreter of an environment with `requirements` and their companions.

    The environment is in cumatrix's data folder. Its name contains its packages, which saves an inspection.

    Raises
    ------
    RuntimeError
        If the packages cannot be installed; the message is uv's.
    """
    wanted = sorted({item for each in requirements for item in (each, *_COMPANIONS.get(each, []))})
    wanted += measured.requirements()
    # The base interpreter, not the environment of the tests: other checkouts have no copies.
    interpreter = os.path.realpath(sys.executable)
    named = hashlib.sha256("\n".join([interpreter, sys.version, *wanted]).encode()).hexdigest()[:16]
    folder = data_folder() / "test-envs" / named
    python, complete = folder / "bin" / "python", folder / "complete"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_file(folder.with_suffix(".lock")) as lock:
        assert lock_exclusively(lock, 1200)
        if not complete.exists():
            # The libraries under test are from the time of Python 3.11.
            base = sys.executable if sys.version_info[:2] == (3, 11) else "3.11"
            _uv("venv", "--clear", "--python", base, str(folder))
            if wanted:
                # As in conftest.py; PyTorch and Zig are too large to copy.
                mode = "hardlink" if any(item.startswith(("torch==", "ziglang==")) for item in wanted) else "copy"
                _uv("pip", "install", "--only-binary=:all:", "--link-mode", mode, "--python", str(python), *wanted)
            complete.touch()
        measured.begin(str(python))
    return str(python)


def _uv(*arguments: str) -> None:
    environ = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run([uv.find_uv_bin(), *arguments], capture_output=True, text=True, env=environ, timeout=1200)
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)}: {done.stderr}")
