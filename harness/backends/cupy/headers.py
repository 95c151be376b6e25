"""The source of CUDA's headers for CuPy: the toolkit of CUDA_PATH, or wheels in its own environment.

CuPy adds its include directories itself, behind the user's, and in another order in almost every series. What can be decided
this module decides what CuPy finds: a toolkit under CUDA_PATH, or no toolkit at all next to the wheels that
``cupy-cuda12x[ctk]`` brings. CuPy looks into wheels from 13.3 on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from harness.backends.nvrtc import macros
from harness.libraries import runtime_wheel
from harness.nvidia.pch import Compile, Precompiled, behind
from harness.protocol import process_output
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported

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
    """Include directories that CuPy adds to every program, in its order; empty before 13.0, which cannot be asked.

    A child asks: CuPy keeps the answer for as long as its process lives, and a cell may be one without a toolkit (`without_toolkit`).
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, json.dumps(_asked(core, compiler)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    process_output.wait_for_helper(child)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    if not said:
        raise Unavailable("CuPy died when it was asked for its include directories")
    folders, error = json.loads(said)
    if error:
        raise Unavailable(f"CuPy finds no headers: {error}")
    return list(folders)


def _asked(core: Any, compiler: Any) -> tuple[list[str], str]:
    """CuPy's include directories, or what it says where it knows of none."""
    if not hasattr(core, "assemble_cupy_compiler_options"):
        return [], ""
    try:
        options = core.assemble_cupy_compiler_options(())
    except RuntimeError as error:
        return [], str(error)
    options += getattr(compiler, "_get_extra_include_dir_opts", tuple)()
    return [option.removeprefix("-I") for option in options if option.startswith("-I")], ""


def without_toolkit(setup: Setup, core: Any, compiler: Any) -> str:
    """Have CuPy find neither a toolkit nor its headers, as on a machine that has the driver alone; in a cell, before CuPy looks.

    Parameters
    ----------
    setup : Setup
        What the worker was started for.
    core, compiler : module
        ``cupy._core.core`` and ``cupy.cuda.compiler``.

    Returns
    -------
    str
        What CuPy says where it compiles nothing without a toolkit; empty where it goes on with what it bundles.

    Raises
    ------
    Unsupported
        Where a wheel in CuPy's environment has the headers: they are found without any toolkit.
    """
    name = runtime_wheel(setup.version[0])
    try:
        wheel = distribution(name)
    except PackageNotFoundError:
        pass
    else:
        raise Unsupported(f"CUDA's headers lie in CuPy's own environment ({name} {wheel.version}), toolkit or not")
    for variable in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
        os.environ.pop(variable, None)
    from cupy import _environment

    _environment._cuda_path = None
    if pathfinder := sys.modules.get("cuda.pathfinder"):
        # CuPy 14 looks with it, also in /usr/local, which this machine may have.
        pathfinder.find_nvidia_header_directory = lambda _library: None  # type: ignore[attr-defined]
    return _asked(core, compiler)[1]


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


class WithHeader:
    """Wraps CuPy's NVRTC module: a program with a precompiled header is compiled with it."""

    def __init__(self, nvrtc: Any, setup: Setup, job: Job, precompiled: Precompiled) -> None:
        self._nvrtc, self._setup, self._job, self._precompiled = nvrtc, setup, job, precompiled
        self._texts: dict[int, tuple[str, str]] = {}
        self._instead: dict[int, int] = {}
        self._logs: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._nvrtc, name)
        if not name.startswith("get"):
            return found
        return lambda *given: found(*(self._instead.get(each, each) for each in given[:1]), *given[1:])

    def createProgram(self, source: str, name: str, texts: Sequence[str], names: Sequence[str]) -> int:
        program: int = self._nvrtc.createProgram(source, name, texts, names)
        if not names:
            self._texts[program] = source, name
        return program

    def addNameExpression(self, program: int, name: str) -> None:
        self._texts.pop(program, None)  # name expressions need the program's own compilation
        self._nvrtc.addNameExpression(program, name)

    def getProgramLog(self, program: int) -> str:
        log: str = self._nvrtc.getProgramLog(self._instead.get(program, program))
        return behind(self._logs[program], log) if program in self._logs else log

    def destroyProgram(self, program: int) -> None:
        other = self._instead.pop(program, None)
        if other is not None:
            self._nvrtc.destroyProgram(other)
        self._nvrtc.destroyProgram(program)

    def compileProgram(self, program: int, options: Sequence[str]) -> None:
        refused = self._compiled_early(program, options)
        if refused is not None:
            raise refused
        if program not in self._instead:
            self._nvrtc.compileProgram(program, options)

    def _compiled_early(self, program: int, options: Sequence[str]) -> Exception | None:
        """Compile a program with its header, where there is one; what NVRTC raises where it refuses it so."""
        if program not in self._texts:
            return None
        (source, name), given = self._texts[program], macros(self._job.definitions)
        early = self._precompiled.early(self._setup, self._job, source.encode("utf-8"), options, given)
        if early is None:
            return None
        other = self._nvrtc.createProgram(early.text.decode("utf-8"), name, (), ())
        refused, made = None, b""
        try:
            self._nvrtc.compileProgram(other, early.options)
            made = bytes(self._nvrtc.getPTX(other))
        except self._nvrtc.NVRTCError as error:
            refused = error
        compiled = refused is None or "COMPILATION" in str(refused)
        if not compiled or not early.usable(str(self._nvrtc.getProgramLog(other)), made):
            self._nvrtc.destroyProgram(other)
            return None
        self._instead[program], self._logs[program] = other, early.log
        return refused


def built_by(nvrtc: Any) -> Compile:
    """CuPy's NVRTC module as `Precompiled` asks for it."""

    def built(text: bytes, name: str, options: Sequence[str]) -> tuple[bool, str]:
        program = nvrtc.createProgram(text.decode("utf-8"), name, (), ())
        try:
            try:
                nvrtc.compileProgram(program, tuple(options))
            except nvrtc.NVRTCError:
                return False, ""
            return True, str(nvrtc.getProgramLog(program))
        finally:
            nvrtc.destroyProgram(program)

    return built
