"""The table of backends. Only workers import a backend's libraries (`harness.protocol.backend`)."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from harness.libraries import LIBRARIES, runtime_wheel
from harness.plugins import Table, place_of

if TYPE_CHECKING:  # workers import this package without the packages that the model needs
    from harness.model.case import Case
    from harness.protocol.backend import Backend
    from harness.protocol.messages import Setup

WHEELS: Final = "wheels"
"""End of the local part of a library's version that finds CUDA in wheels, and no toolkit: ``14.2.0+wheels``."""


HOST_COMPILERS: Final = "gcc-11,gcc-13, gcc-11..gcc-14, clang-16, all, NAME=/opt/gcc/bin/g++"
"""Examples of names for nvcc's host compilers (`harness.engine.program_axes`)."""

SOME_BACKENDS: Final[Mapping[str, bool | None]] = {
    "assembler": None,
    "compile_for": None,
    "linker": None,
    "num_stages": None,
    "num_warps": None,
    "toolkit_first": False,
    "toolkit_headers": True,
}
"""Case options that only some backends support, with the value that is the default in every backend."""


def takes_wheels(library: str) -> bool:
    """Return whether a library's version in a toolchain finds CUDA in wheels in its environment."""
    return re.split(r"[+.]", library)[-1] == WHEELS


def series_of(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version, ``(13, 6)``, which may be a development build's."""
    major, minor = [*re.findall(r"\d+", version.partition("+")[0]), "0", "0"][:2]
    return int(major), int(minor)


@dataclass(frozen=True)  # workers may run in Python 3.9, which has no kw_only
class BackendInfo:
    """The scheduler's description of a backend, which does not load the backend.

    Parameters
    ----------
    name, title : str
        Its name, and a one-line description.
    label : str
        Its name on pages and in answers; empty if that is `name`.
    aliases : tuple of str
        Additional names for questions (``cumatrix ask``), in lower case.
    in_questions : bool
        Whether questions may name the backend; False for a tool whose name starts other tools' messages.
    tracker : str
        Address of the form for a new issue; empty without a public tracker.
    module : str
        The module that a worker loads, relative to `harness.backends` or, for another distribution, by full name. A
        colon separates the object (by default ``backend``).
    languages : tuple of str
        Supported source languages (`harness.cases.schema.SOURCE`); the first one that a case has is compiled.
    imports : tuple of str
        Packages or modules; a Python file that imports one of them is a program in the first of `languages`.
    library : str
        The library under test (`harness.libraries.LIBRARIES`); empty for a backend that needs only the toolkit.
    excludes : tuple of str
        Distributions that replace the backend if they are installed.
    compiler : str
        The compiler whose messages its logs contain: ``nvrtc``, ``numba``, ``clang``, or ``nvcc``, which runs as a
        process with a host compiler. Empty for another compiler.
    specific_from : str
        The library's first release that builds for ``sm_90a`` and the like on every device with such a target, and
        never for ``sm_90``; empty for none.
    asks_device : bool
        Whether it reads the architecture from the device by default, and not from an option.
    text_only : bool
        Whether its compiler receives a program's text instead of its file, and so does not find headers in the file's
        folder.
    startup : str
        Why loading it may take minutes; empty if it does not.
    memory : int
        Memory estimate of a cell without a measurement, in bytes.
    seconds : float
        Time estimate of a cell without a measurement, in seconds. It distributes work and predicts the end of a run.
    every_target : bool
        Whether the library receives every target, because it has no list of targets: its refusal is the outcome.
    parts : tuple of str
        Parts of CUDA (``parts.toml``) whose headers its compiler includes before every program.
    machine : bool
        Whether the machine's own compiler is used if the environment does not have the library.
    vendors : tuple of str
        Vendors of the GPUs that it builds for (`harness.model.target.VENDORS`).
    repro : str
        The function that writes the script of ``cumatrix repro``, as ``module:function`` (`cumatrix.repro_script`);
        empty for none. Only the scheduler loads it.
    repro_seconds : float
        The minimum time limit of that script in seconds.
    words : tuple of str
        The options among `SOME_BACKENDS` that it supports.
    prepares : str
        The cells that its fork servers prepare once (`harness.protocol.backend.Ahead`): cells of one target and
        ``options``, cells whose programs begin with the same ``includes``, or both (``options, includes``); empty for
        none. Such cells are compiled one after another.
    place : str
        For a backend of another distribution, the file of the module's top-level package: workers run in other
        environments, and load the package from this file.
    """

    name: str
    title: str
    module: str
    languages: tuple[str, ...]
    library: str = ""
    excludes: tuple[str, ...] = ()
    startup: str = ""
    memory: int = 512 << 20
    seconds: float = 0.1
    place: str = ""
    words: tuple[str, ...] = ()
    prepares: str = ""
    label: str = ""
    aliases: tuple[str, ...] = ()
    tracker: str = ""
    imports: tuple[str, ...] = ()
    compiler: str = ""
    specific_from: str = ""
    asks_device: bool = False
    text_only: bool = False
    in_questions: bool = True
    every_target: bool = False
    parts: tuple[str, ...] = ()
    machine: bool = False
    vendors: tuple[str, ...] = ("nvidia",)
    repro: str = ""
    repro_seconds: float = 300.0

    @property
    def rocm(self) -> bool:
        """Return whether its toolkit is a ROCm, because it builds for AMD GPUs only."""
        return self.vendors == ("amd",)

    @property
    def nvcc(self) -> bool:
        """Return whether it runs the toolkit's nvcc and a host compiler as separate processes."""
        return self.compiler == "nvcc"

    @property
    def reads_host(self) -> bool:
        """Return whether it accepts host code too: clang parses host code, and compiles only device code."""
        return self.compiler in ("nvcc", "clang") and not self.text_only

    @property
    def of_host(self) -> bool:
        """Return whether it also compiles host code: it runs nvcc, and no library controls nvcc."""
        return self.nvcc and not self.library

    @property
    def distributions(self) -> tuple[str, ...]:
        """Distributions that may provide its library, by normalized name; the first installed one counts."""
        return tuple(LIBRARIES[self.library].distributions) if self.library else ()

    @property
    def companions(self) -> tuple[str, ...]:
        """Further distributions whose versions belong to its toolchain."""
        return LIBRARIES[self.library].companions if self.library else ()

    def without_word(self, options: Mapping[str, Any]) -> str:
        """Return why it does not support these options of a case; empty if it supports them."""
        options_set = [name for name, usual in SOME_BACKENDS.items() if options.get(name, usual) != usual]
        name = next((name for name in options_set if name not in self.words), "")
        return f"{self.name} has no word for {name}" if name else ""

    def language(self, case: Case) -> str | None:
        """Return the language in which this backend compiles a case, or None."""
        return self.language_among(case.sources, case.backends)

    def language_among(self, languages: Collection[str], only: Collection[str]) -> str | None:
        """Return the `language` of a case with programs in `languages`.

        The case is for the backends `only`, or for all backends if `only` is empty.
        """
        if only and self.name not in only:
            return None
        return next((language for language in self.languages if language in languages), None)

    def form(self, version: str, headers: str, versions: Mapping[str, str]) -> str:
        """Return `WHEELS` if this version of the library finds CUDA's headers in wheels of the release `headers`.

        Parameters
        ----------
        version, headers : str
            The library's version, and the CUDA release of the headers.
        versions : Mapping[str, str]
            Versions of the other installed packages, by normalized name.
        """
        since = LIBRARIES[self.library].wheel_headers if self.library else ""
        if not since or series_of(version) < series_of(since):
            return ""
        wheel = versions.get(runtime_wheel(int(headers.split(".")[0])), "")
        return WHEELS if wheel.split(".")[:2] == headers.split(".") else ""

    def incompatibility(self, distribution: str, release: str) -> str | None:
        """Return why this build of the library cannot use this CUDA release, or None if it can."""
        library = LIBRARIES[self.library]
        major, wanted = library.distributions[distribution].split(".")[0], release.split(".")[0]
        if major in ("", wanted):
            return None
        other = library.for_cuda(int(wanted))
        needs = f"CUDA {release} needs {other}" if other else f"none of its distributions loads CUDA {release}"
        return f"{distribution} loads the NVRTC of CUDA {major} and no other; {needs}"


_OWN: Final[Mapping[str, BackendInfo]] = {
    info.name: info
    for info in (
        BackendInfo(
            name="nvrtc",
            title="NVRTC called directly, the control",
            label="NVRTC",
            module="nvrtc",
            languages=("cuda",),
            words=tuple(SOME_BACKENDS),
            prepares="includes",
            compiler="nvrtc",
            repro="harness.repro.script:nvrtc",
        ),
        BackendInfo(
            name="cupy-nvrtc",
            title="CuPy's RawModule through NVRTC",
            label="CuPy",
            tracker="https://github.com/cupy/cupy/issues/new",
            module="cupy.backend:via_nvrtc",
            seconds=0.2,
            languages=("cupy", "cuda"),
            words=("toolkit_first", "toolkit_headers"),
            library="cupy",
            prepares="options, includes",
            imports=("cupy", "cupyx"),
            compiler="nvrtc",
            asks_device=True,
            repro="harness.repro.script:cupy",
        ),
        BackendInfo(
            name="cupy-jitify",
            title="CuPy's RawModule through Jitify",
            label="CuPy, Jitify",
            aliases=("jitify",),
            tracker="https://github.com/cupy/cupy/issues/new",
            module="cupy.backend:via_jitify",
            seconds=1.5,
            languages=("cupy", "cuda"),
            library="cupy",
            startup="the first time with a toolkit, Jitify looks for CUDA's headers, which takes minutes",
            prepares="options",
            imports=("cupy", "cupyx"),
            compiler="nvrtc",
            asks_device=True,
            repro="harness.repro.script:jitify",
            repro_seconds=1800.0,
        ),
        BackendInfo(
            name="numba",
            title="Numba's own CUDA target",
            label="Numba",
            tracker="https://github.com/numba/numba/issues/new",
            module="numba.backend",
            seconds=0.5,
            languages=("python",),
            library="numba",
            excludes=("numba-cuda",),
            imports=("numba",),
            compiler="numba",
            asks_device=True,
            repro="harness.repro.script:numba",
        ),
        BackendInfo(
            name="numba-cuda",
            title="numba-cuda, Numba's successor",
            label="numba-cuda",
            tracker="https://github.com/NVIDIA/numba-cuda/issues/new",
            module="numba.numba_cuda",
            seconds=0.6,
            languages=("python",),
            library="numba-cuda",
            imports=("numba",),
            compiler="numba",
            specific_from="0.24",
            asks_device=True,
            repro="harness.repro.script:numba",
        ),
        BackendInfo(
            name="numba-cuda-mlir",
            title="numba-cuda-mlir, numba-cuda's successor",
            label="numba-cuda-mlir",
            tracker="https://github.com/NVIDIA/numba-cuda-mlir/issues/new",
            module="numba.mlir",
            seconds=1.5,
            languages=("python",),
            library="numba-cuda-mlir",
            imports=("numba_cuda_mlir",),
            compiler="numba",
            asks_device=True,
            repro="harness.repro.script:numba_cuda_mlir",
        ),
        BackendInfo(
            name="nvcc",
            title="nvcc called directly",
            label="nvcc",
            module="nvcc",
            languages=("cuda",),
            words=("compile_for", "toolkit_first"),
            memory=1 << 30,
            seconds=1.5,
            compiler="nvcc",
            repro="harness.repro.script:nvcc",
        ),
        BackendInfo(
            name="ptxas",
            title="ptxas called directly, for programs in PTX",
            label="ptxas",
            module="ptxas",
            languages=("ptx",),
            in_questions=False,
            repro="harness.repro.script:ptxas",
        ),
        BackendInfo(
            name="torch-nvcc",
            title="nvcc through torch.utils.cpp_extension",
            label="PyTorch",
            tracker="https://github.com/pytorch/pytorch/issues/new",
            module="torch",
            languages=("torch", "cuda"),
            words=("toolkit_first",),
            library="torch",
            memory=3 << 30,
            seconds=5.0,
            compiler="nvcc",
            repro="harness.repro.script:torch",
            repro_seconds=1800.0,
        ),
        BackendInfo(
            name="cuda-core",
            title="cuda.core's Program and Linker",
            label="cuda.core",
            tracker="https://github.com/NVIDIA/cuda-python/issues/new",
            module="cuda_core",
            languages=("cuda",),
            words=("toolkit_first", "toolkit_headers"),
            library="cuda-core",
            compiler="nvrtc",
            text_only=True,
            repro="harness.repro.script:cuda_core",
        ),
        BackendInfo(
            name="triton",
            title="Triton's own compiler",
            label="Triton",
            tracker="https://github.com/triton-lang/triton/issues/new",
            module="triton",
            seconds=1.0,
            languages=("triton",),
            words=("num_stages", "num_warps"),
            library="triton",
            imports=("triton",),
            specific_from="3.0",
            every_target=True,
            vendors=("nvidia", "amd"),
            repro="harness.repro.kernel_languages:triton",
        ),
        BackendInfo(
            name="cute-dsl",
            title="CuTe DSL, the Python of CUTLASS",
            label="CuTe DSL",
            tracker="https://github.com/NVIDIA/cutlass/issues/new",
            module="cute_dsl",
            seconds=2.0,
            languages=("cute",),
            library="cute-dsl",
            imports=("cutlass",),
            every_target=True,
            repro="harness.repro.kernel_languages:cute_dsl",
        ),
        BackendInfo(
            name="warp",
            title="NVIDIA Warp, its modules compiled ahead of time",
            label="Warp",
            tracker="https://github.com/NVIDIA/warp/issues/new",
            module="warp",
            seconds=3.0,
            languages=("warp",),
            library="warp",
            imports=("warp",),
            every_target=True,
            repro="harness.repro.kernel_languages:warp",
        ),
        BackendInfo(
            name="cutile",
            title="cuTile, NVIDIA's tile language for Python",
            label="cuTile",
            tracker="https://github.com/NVIDIA/cutile-python/issues/new",
            module="cutile",
            seconds=2.0,
            languages=("cutile",),
            library="cutile",
            imports=("cuda.tile",),
            specific_from="1.3",
            every_target=True,
            repro="harness.repro.kernel_languages:cutile",
        ),
        BackendInfo(
            name="clang",
            title="clang as a compiler of CUDA C++, without nvcc",
            label="clang",
            tracker="https://github.com/llvm/llvm-project/issues/new",
            module="clang",
            languages=("cuda",),
            library="clang",
            memory=1 << 30,
            seconds=1.5,
            compiler="clang",
            every_target=True,
            parts=("curand",),
            repro="harness.repro.script:clang",
        ),
        BackendInfo(
            name="hiprtc",
            title="hipRTC called directly, for AMD GPUs",
            label="hipRTC",
            tracker="https://github.com/ROCm/clr/issues/new",
            module="hiprtc",
            languages=("hip",),
            seconds=0.5,
            compiler="clang",
            every_target=True,
            text_only=True,
            vendors=("amd",),
            repro="harness.repro.hip:hiprtc",
        ),
        BackendInfo(
            name="hip-clang",
            title="clang as a compiler of HIP, for AMD GPUs",
            label="clang, HIP",
            aliases=("hip clang", "clang hip", "hipcc"),
            tracker="https://github.com/llvm/llvm-project/issues/new",
            module="hip_clang",
            languages=("hip",),
            library="clang",
            machine=True,
            memory=1 << 30,
            seconds=1.0,
            compiler="clang",
            every_target=True,
            vendors=("amd",),
            repro="harness.repro.hip:hip_clang",
        ),
    )
}


def _plugged(name: str, value: Any) -> BackendInfo:
    """Return a backend of another distribution, with the file that workers load it from."""
    if not isinstance(value, BackendInfo):
        raise TypeError("it is no cumatrix.backend.BackendInfo")
    if value.name != name:
        raise ValueError(f"its BackendInfo is called {value.name!r}, and the entry point {name!r}")
    if value.library and value.library not in LIBRARIES:
        raise ValueError(f"its library {value.library!r} is in no table (group cumatrix.libraries)")
    place = place_of(value.module.partition(":")[0])
    if not place:
        raise ValueError(f"there is no file of its module {value.module}")
    return replace(value, place=place)


BACKENDS: Final[Mapping[str, BackendInfo]] = Table(_OWN, "cumatrix.backends", _plugged)
"""Every backend by name, in display order."""


def host_backends() -> tuple[str, ...]:
    """Return the names of the backends that compile host code."""
    return tuple(info.name for info in BACKENDS.values() if info.of_host)


def label_of(name: str) -> str:
    """Return a backend's name for pages and answers; the backend need not be installed."""
    return (BACKENDS[name].label if name in BACKENDS else "") or name


def library_of(name: str) -> str:
    """Return a backend's library under test.

    The result is empty if the backend has no library, or occurs in records without being installed.
    """
    return BACKENDS[name].library if name in BACKENDS else ""


def load_backend(name: str, setup: Setup) -> Backend:
    """Load a backend by name, as its setup specifies.

    A backend of another distribution is installed with cumatrix, and not in the environment under test. Its top-level
    package, and the package `cumatrix` that it imports, are loaded from their files. Nothing else of cumatrix's
    environment is importable.
    """
    if not setup.place:
        module, _, attribute = (setup.module or BACKENDS[name].module).partition(":")
        loaded = importlib.import_module(f"harness.backends.{module}")
    else:
        module, _, attribute = setup.module.partition(":")
        _make_known("cumatrix", str(Path(__file__).resolve().parents[2] / "cumatrix" / "__init__.py"))
        _make_known(module.partition(".")[0], setup.place)
        loaded = importlib.import_module(module)
    backend: Backend = getattr(loaded, attribute or "backend")
    return backend


def _make_known(name: str, file: str) -> None:
    if name in sys.modules:
        return
    folders = [os.path.dirname(file)] if os.path.basename(file) == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no module of Python")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
