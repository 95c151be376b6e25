"""Where CuPy takes CUDA's headers from: the toolkit that CUDA_PATH names, or wheels in its own environment.

CuPy adds its include directories itself, behind the user's, and in another order in almost every series. What can be decided
here is what it finds when it looks: a toolkit under CUDA_PATH, or no toolkit at all beside the wheels that
``cupy-cuda12x[ctk]`` brings. CuPy looks into wheels from 13.3 on.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from harness.libraries import runtime_wheel
from harness.protocol.backend import Setup, Unavailable

_HEADER = "cuda_runtime_api.h"


def find(setup: Setup) -> Path:
    """Decide where CuPy will look, before it is imported; returns the folder of headers that it has to come to."""
    if not setup.wheels:
        # With headers of another release than the compiler's, these are what CuPy knows of a toolkit.
        os.environ["CUDA_PATH"] = str(Path(setup.include[0]).parent)
        return Path(setup.include[0])
    for name in ("CUDA_PATH", "CUDA_HOME"):
        os.environ.pop(name, None)
    major = setup.headers.split(".")[0]
    name = runtime_wheel(int(major))
    try:
        wheel = distribution(name)
    except PackageNotFoundError:
        raise Unavailable(f"CUDA's headers were to come from {name}, which is not installed") from None
    if wheel.version.split(".")[:2] != setup.headers.split("."):
        raise Unavailable(f"CUDA {setup.headers}'s headers were to come from {name}, which is {wheel.version}")
    return Path(str(wheel.locate_file(f"nvidia/{'cuda_runtime' if int(major) < 13 else f'cu{major}'}/include")))


def hide_toolkits(setup: Setup, environment: Any, version: tuple[int, ...], headers: Path) -> None:
    """Have CuPy know of no toolkit where it is to use wheels, whatever this machine has in ``/usr/local``.

    Parameters
    ----------
    environment : module
        ``cupy._environment``.
    version : tuple of int
        CuPy's.
    headers : Path
        What `find` returned.
    """
    if setup.wheels:
        # From CUDA 13 on the wheels share one folder, which CuPy 14 takes for a toolkit.
        whole = version >= (14, 0) and headers.parent.name.startswith("cu1")
        environment._cuda_path = str(headers.parent) if whole else None


def added(core: Any, compiler: Any) -> list[str]:
    """Include directories that CuPy adds to every program, in its order; empty before 13.0, which cannot be asked."""
    assemble = getattr(core, "assemble_cupy_compiler_options", None)
    if assemble is None:
        return []
    try:
        options = assemble(())
    except RuntimeError as error:
        raise Unavailable(f"CuPy finds no headers: {error}") from None
    options += getattr(compiler, "_get_extra_include_dir_opts", tuple)()
    return [option.removeprefix("-I") for option in options if option.startswith("-I")]


def check(folders: list[str], headers: Path, setup: Setup) -> None:
    """Refuse to go on where CuPy takes CUDA's headers from anywhere else than it has to.

    Raises
    ------
    Unavailable
        CuPy 14.1 and later prefer those of a wheel in their environment, of whatever release, to CUDA_PATH's.
    """
    found = next((folder for folder in folders if Path(folder, _HEADER).is_file()), None)
    if folders and (found is None or not os.path.samefile(found, headers)):
        raise Unavailable(
            f"CuPy takes CUDA's headers from {found}, not from CUDA {setup.headers}: "
            "ask for that release, or use an environment without nvidia-cuda-runtime"
        )
