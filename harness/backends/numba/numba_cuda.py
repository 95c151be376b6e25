"""The numba-cuda package, which replaces Numba's CUDA target (0.4 to 0.30).

A program is written and compiled as for `harness.backends.numba.backend`. Up to about 0.20, numba-cuda can reach the
driver through ctypes, and then behaves as Numba does here. Later releases use only NVIDIA's bindings (cuda.bindings,
cuda.core): compiled code that loads ``libcuda.so.1`` and links with nvJitLink in this process. For the bindings, the
virtual device is a library of that name, built here. nvJitLink, NVRTC and NVVM are loaded from the toolkit before the
bindings look for them, because the bindings use libraries that are already loaded.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from harness.backends.numba.backend import NumbaBackend, package_version, preload
from harness.nvidia import nvjitlink, tools
from harness.nvidia.virtual_driver import INVALID_PTX, LINKER, VirtualDevice, virtual_driver
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported


class NumbaCudaBackend(NumbaBackend):
    """`harness.protocol.backend.Backend` for numba-cuda."""

    package = "numba-cuda"
    driver: ctypes.CDLL | None = None

    def check_packages(self, setup: Setup) -> None:
        if package_version("numba") is None:
            raise Unavailable("this environment has no numba: install it there")
        if package_version("numba-cuda") is None:
            raise Unavailable("this environment has no numba-cuda: install it there, or use the backend numba")
        if bindings_only():
            check_bindings(setup, self.package)

    def load(self, setup: Setup) -> None:
        if bindings_only():
            preload_for_bindings(setup)
            self.driver = None if setup.device else virtual_driver(setup)
        with hide_real_driver() if self.driver else nullcontext():
            pass_over_wheels("numba.cuda.cuda_paths")
            super().load(setup)
        check_redirected()
        if not bindings_only():
            self.name_nvrtc(setup)

    def compile(self, setup: Setup, job: Job) -> None:
        super().compile(setup, job)
        if note := binding_note():
            job.notes.append(note)
        note_wheels(setup, job)

    def name_nvrtc(self, setup: Setup) -> None:
        """Set numba-cuda's path of NVRTC: some releases search ``$CUDA_HOME/nvrtc``, then the whole machine."""
        from numba.cuda.cuda_paths import get_cuda_paths

        paths, library = get_cuda_paths(), setup.library("libnvrtc")
        if "nvrtc" in paths and library is not None:
            paths["nvrtc"] = type(paths["nvrtc"])("CUDA_HOME", str(library))

    def capabilities(self) -> list[tuple[int, int]]:
        from numba.cuda.cudadrv import nvrtc

        if hasattr(nvrtc, "get_supported_ccs"):
            return sorted(tuple(cc) for cc in nvrtc.get_supported_ccs())
        return super().capabilities()

    def arch_option(self) -> Any:
        from numba.cuda.cudadrv import nvrtc, nvvm

        return getattr(nvrtc, "get_arch_option", None) or nvvm.get_arch_option

    def suffixes(self) -> bool:
        return "arch" in inspect.signature(self.arch_option()).parameters

    def check_target(self, setup: Setup, job: Job) -> None:
        super().check_target(setup, job)
        # The dispatcher selects sm_90a and the like if the device has such a target, and has no option for another
        # target.
        if self.suffixes() and not job.virtual and job.arch.isdigit() and job.capability >= (9, 0):
            raise Unsupported(f"{self.library} builds sm_{job.arch}a for this device, not sm_{job.arch}")

    def attach(self, device: VirtualDevice) -> None:
        if self.driver is None:
            super().attach(device)
            return
        self.reload_settings()
        attach_library(self.driver, device)

    def reload_settings(self) -> None:
        super().reload_settings()
        with suppress(ModuleNotFoundError):  # its own config since about 0.20
            importlib.import_module("numba.cuda.core.config").reload_config()

    def build(self, device: VirtualDevice, kernel: Any, arguments: Any) -> None:
        """Compile and link, or only assemble if the toolkit lacks a part that linking needs."""
        if self.driver is None:
            super().build(device, kernel, arguments)
            return
        job, setup = device.job, device.setup
        try:
            kernel.compile(arguments)
        except Exception as error:
            missing = nvjitlink.parts(setup)
            if "libcudadevrt.a not found" not in str(error) or not isinstance(missing, str):
                raise
            ptx = job.keep(self.to_ptx(device, kernel, arguments), "ptx")
            tools.assemble(setup, job, ptx, relocatable=True)
            job.complete()
            job.notes.append(f"not linked: {missing}")

    def collect(self, device: VirtualDevice, kernel: Any) -> None:
        """Read the cubin from the kernel, because nvJitLink linked it in this process."""
        # Below nvJitLink 12.3, the bindings leave linking to the driver.
        if self.driver is None or device.images:
            return
        job, library = device.job, kernel._codelibrary
        ptxs = library.get_asm_strs() if hasattr(library, "get_asm_strs") else [library.get_asm_str()]
        for ptx in ptxs:
            device.check(ptx)
        job.keep("\n".join(ptxs).encode(), "ptx")
        if not job.virtual:
            cubin = library.get_cubin()
            job.enter("assemble")
            if library.needs_cudadevrt or getattr(library, "_linking_files", ()):
                job.enter("link")
            job.observed["nvjitlink"] = nvjitlink_version()
            job.keep(bytes(getattr(cubin, "code", cubin)), "cubin")
        job.complete()


def package_folder() -> Path:
    """Return the folder of the installed numba-cuda."""
    spec = importlib.util.find_spec("numba_cuda")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def bindings_only() -> bool:
    """Return whether this numba-cuda reaches the driver only through NVIDIA's bindings."""
    return "USE_NV_BINDING" not in (package_folder() / "numba/cuda/cudadrv/driver.py").read_text()


def binding_note() -> str:
    """Describe the setting that keeps numba-cuda 0.15 to 0.20 from NVIDIA's bindings, its default; empty for others."""
    if bindings_only() or _SETTING not in (package_folder() / "numba/cuda/__init__.py").read_text():
        return ""
    instead = (
        "reaches the driver through cuda-bindings"
        if package_version("cuda-bindings")
        else "cannot be imported here, since cuda-bindings is not installed"
    )
    return f"set for this cell: {_SETTING}=0; without it numba-cuda {package_version('numba-cuda')} {instead}"


_SETTING = "NUMBA_CUDA_USE_NVIDIA_BINDING"


def check_redirected() -> None:
    """Raise if ``numba.cuda`` is Numba's own.

    A ``.pth`` file installs numba-cuda's finder, and takes effect only in a site-packages folder.
    """
    import numba.cuda

    loaded = Path(str(numba.cuda.__file__)).resolve()
    if not loaded.is_relative_to(package_folder().resolve()):
        raise Unavailable(
            f"numba-cuda {package_version('numba-cuda')} is installed, but `import numba.cuda` gives {loaded.parent}, Numba's own: "
            "the .pth file that puts numba-cuda in its place was not read, as with PYTHONPATH or pip --target; "
            "install both in one environment"
        )


def check_bindings(setup: Setup, package: str) -> None:
    """Raise if a package cannot use this CUDA through NVIDIA's bindings."""
    if setup.version < (12, 0):
        raise Unsupported(f"{package} {package_version(package)} needs CUDA 12 or later")
    core = package_version("cuda-core")
    if setup.version < (12, 3) and core and core.startswith("0."):
        raise Unsupported(f"cuda-core {core} asks nvJitLink for its version, which it tells from CUDA 12.3 on")


def attach_library(driver: ctypes.CDLL, device: VirtualDevice) -> None:
    """Configure the library that replaces libcuda as a device."""
    # A driver supports older toolkits. The bindings complain about a driver older than themselves.
    bindings = int((package_version("cuda-bindings") or "0").split(".")[0])
    major, minor = max(device.setup.version, (bindings, 0))
    device.launched = driver.virtual_launches
    # Kept for the life of the process, because C holds a pointer to it.
    _kept.append(LINKER(lambda *arguments: _link(device, *arguments)))
    driver.virtual_configure(1000 * major + 10 * minor, *device.job.capability, _kept[-1])


def pass_over_wheels(paths: str) -> None:
    """Make the library use the toolkit in ``CUDA_HOME``.

    By default, it tries CUDA wheels in the environment first, which ``numba-cuda[cu12]`` installs.

    Parameters
    ----------
    paths : str
        The library's module that finds parts of CUDA.
    """
    cuda_paths = importlib.import_module(paths)
    for name, function in vars(cuda_paths).copy().items():
        if "wheel" in name and callable(function):
            setattr(cuda_paths, name, lambda *_: None)


def cuda_wheels() -> list[str]:
    """Return the wheels in the environment that numba-cuda would load NVVM from."""
    names = ("nvidia-cuda-nvcc-cu12", "nvidia-nvvm", "nvidia-cuda-nvcc-cu11")
    return [f"{name} {version}" for name in names if (version := package_version(name))]


def note_wheels(setup: Setup, job: Job) -> None:
    """Note the CUDA wheels in the environment that the cell was not compiled with."""
    if wheels := cuda_wheels():
        job.notes.append(
            f"compiled with CUDA {setup.release} of cumatrix, not with {' and '.join(wheels)} of this environment"
        )


def preload_for_bindings(setup: Setup) -> None:
    """Load the toolkit's libraries under the names that the bindings look up."""
    preload(setup, "libnvrtc-builtins", "libnvrtc", "libnvJitLink", "libcudart")
    ctypes.CDLL(str(setup.home / "nvvm" / "lib64" / "libnvvm.so.4"))


@contextmanager
def hide_real_driver() -> Iterator[None]:
    """Keep ctypes from finding a real ``libcuda.so``, the name that numba-cuda tries before ``libcuda.so.1``.

    A stand-in of that name does not work: nvJitLink 12.4 also looks for it, and fails if it is not the real library.
    """
    real = ctypes.CDLL

    class Guarded(real):  # type: ignore[misc, valid-type]
        def __init__(self, name: Any, *arguments: Any, **options: Any) -> None:
            if str(name).rpartition("/")[2] == "libcuda.so":
                raise OSError(f"{name}: not looked for")
            super().__init__(name, *arguments, **options)

    ctypes.CDLL = Guarded  # type: ignore[misc]
    try:
        yield
    finally:
        ctypes.CDLL = real  # type: ignore[misc]


def nvjitlink_version() -> str:
    """Return the version of the nvJitLink that the bindings loaded."""
    from cuda.bindings import nvjitlink as bindings

    return ".".join(map(str, bindings.version()))


_kept: list[Any] = []


def _link(
    device: VirtualDevice, count: int, inputs: Any, options: int, names: Any, values: Any, cubin: Any, size: Any
) -> int:
    """Act as the driver's linker, called from C, which exceptions cannot cross."""
    try:
        items: list[tuple[int, bytes | Path]] = []
        for item in inputs[:count]:
            data = ctypes.string_at(item.data, item.size) if item.size else ctypes.string_at(item.data)
            items.append((item.kind, data if item.size else Path(os.fsdecode(data))))
        image = device.link(items, {names[i]: values[i] or 0 for i in range(options)})
        if image is None:
            return INVALID_PTX
        _kept.append(ctypes.create_string_buffer(image, len(image)))
        cubin[0] = ctypes.addressof(_kept[-1])
        size[0] = len(image)
        return 0
    except Exception as error:  # noqa: BLE001 (nothing passes through C, and it is raised later)
        device.fault = device.fault or error
        return 1


backend = NumbaCudaBackend()
