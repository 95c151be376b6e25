"""Numba's own CUDA target (numba 0.57 to 0.68 without the package numba-cuda).

A program runs as with ``python FILE`` (`harness.backends.python_program`). Its globals contain the case's constants
(its definitions) before its code runs, and ``JIT_OPTIONS``: the `jit` options that the case varies. The program uses
both without declaring them::

    from numba import cuda, float32

    @cuda.jit(**JIT_OPTIONS)
    def fill(out):
        buffer = cuda.shared.array(SIZE, float32)
        ...

The dispatcher's own `compile` compiles kernels for the signatures that the case gives, kernels that take no arguments,
kernels declared with signatures, and kernels that the program itself launches. The device is virtual: a launch compiles
and links as usual, and then does nothing.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backends.numba.program import RealDevice, Watch, check_options, compile_all, launch_kernel, watched
from harness.backends.python_program import first_line, from_elsewhere
from harness.libraries import LIBRARIES
from harness.nvidia import tools
from harness.nvidia.virtual_driver import VirtualDevice, VirtualDriver, VirtualRuntime, foreign
from harness.protocol.backend import Ended, Job, Setup, Unavailable, Unsupported
from harness.protocol.messages import Ready


def isolate_settings(setup: Setup) -> None:
    """Ignore the user's settings, and without a device, keep Numba from looking for a real driver."""
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # or importing NumPy starts threads before cells are forked
    os.environ["NUMBA_CUDA_INCLUDE_PATH"] = str(setup.home / "include")
    if not setup.device:
        os.environ["NUMBA_CUDA_DRIVER"] = "0"
        os.environ["NUMBA_CUDA_USE_NVIDIA_BINDING"] = "0"


def compile_ptx(kernel: Any, arguments: Any, job: Job) -> str:
    """Compile a kernel's function to PTX with the library's public API."""
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
    """Replaces a target context, so that Numba imports in its usual order what it would install there."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("install_"):
            raise AttributeError(name)
        return lambda *_: None


def package_version(name: str) -> str | None:
    """Return the version of an installed distribution, or of an importable package without a distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
    try:
        return str(importlib.import_module(name.replace("-", "_")).__version__)
    except (ImportError, AttributeError):
        return None


def preload(setup: Setup, *stems: str) -> None:
    """Load libraries of the toolkit, so that later lookups by name find them.

    Raises
    ------
    Unavailable
        If the toolkit lacks one of them.
    """
    for stem in stems:
        library = setup.library(stem)
        if library is None:
            raise Unavailable(f"CUDA {setup.release} as installed has no {stem}")
        ctypes.CDLL(str(library))


class NumbaBackend:
    """`harness.protocol.backend.Backend` for Numba's CUDA target."""

    package = "numba"
    modules = (*LIBRARIES["numba"].modules, *LIBRARIES["numba-cuda"].modules)

    def prepare(self, setup: Setup) -> Ready:
        """Import all modules and load the toolkit's NVVM, without looking for a driver."""
        self.isolate(setup)
        observed: dict[str, Any] = {"python": platform.python_version(), "ptxas": tools.version(setup)}
        self.check_packages(setup)
        observed |= {name.replace("-", "_"): v for name in self.packages() if (v := package_version(name))}
        self.library = f"{self.package} {observed[self.package.replace('-', '_')]}"
        try:
            self.load(setup)
            known = self.capabilities()
        except Exception as error:
            if not isinstance(error, ImportError) and not from_elsewhere(error):
                raise
            # Support for CUDA 11 ended at some release: a library that cannot be loaded with it does not support it.
            ending = Unsupported if setup.version < (12, 0) else Unavailable
            raise ending(
                f"{self.library} with NumPy {observed.get('numpy')} cannot be loaded with CUDA {setup.release}: "
                f"{type(error).__name__}: {first_line(error)}"
            ) from None
        self.check_libraries(setup)
        sys.dont_write_bytecode = True  # for programs; the library's own modules have bytecode already
        return Ready(observed=observed, architectures=[10 * major + minor for major, minor in known])

    def compile(self, setup: Setup, job: Job) -> None:
        """Compile to a cubin with the virtual driver, or to PTX with the public API for a virtual architecture."""
        self.check_target(setup, job)
        check_options(job)
        device = VirtualDevice(setup, job, self.library)
        job.device.update(virtual=True, compute_capability=job.compute_capability)
        os.environ["NUMBA_CACHE_DIR"] = str(job.scratch / "numba-cache")
        self.attach(device)
        job.enter("compile")
        watch = self.watch(job, lambda kernel: self.collected(device, kernel))
        with watch.listening():
            compile_all(self, job, device, watch, lambda *kernel: self.finish(device, watch, *kernel))
        self.check_libraries(setup)
        if count := device.launched():
            launches = "1 launch was" if count == 1 else f"{count} launches were"
            job.notes.append(f"{launches} left out: the device is virtual")

    def execute(self, setup: Setup, job: Job) -> None:
        """Launch on the real device, which compiles as usual."""
        self.check_target(setup, job)
        check_options(job)
        device = RealDevice(setup, job, self.library)
        os.environ["NUMBA_CACHE_DIR"] = str(job.scratch / "numba-cache")
        self.reload_settings()
        job.enter("compile")
        launches = {spec.kernel: spec for spec in job.launches}
        watch = Watch(job, lambda _kernel: None)

        def act(name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
            if name in launches:
                launch_kernel(job, launches[name], kernel)
            else:
                kernel.compile(arguments)
                job.notes.append(f"{name} was loaded; the case does not say how to launch it")

        with watched(device), watch.listening():
            compile_all(self, job, device, watch, act)
        self.check_libraries(setup)

    def watch(self, job: Job, collect: Callable[[Any], None]) -> Watch:
        """Return a watcher of the library's dispatchers."""
        return Watch(job, collect)

    def packages(self) -> list[str]:
        """Return the distributions whose versions belong to the toolchain."""
        library = LIBRARIES[self.package]
        return [*library.distributions, *library.companions]

    def isolate(self, setup: Setup) -> None:
        """Ignore the user's settings, and without a device, keep the library from looking for a real driver."""
        isolate_settings(setup)

    def check_packages(self, setup: Setup) -> None:
        """Raise if the environment is not for this backend."""
        if package_version("numba") is None:
            raise Unavailable("this environment has no numba: install it there")
        if version := package_version("numba-cuda"):
            raise Unavailable(
                f"this environment has numba-cuda {version}, which takes the place of Numba's own CUDA target: "
                "use the backend numba-cuda, or an environment without it"
            )

    def load(self, setup: Setup) -> None:
        """Import what a compilation needs and load NVVM.

        No registry is refreshed here, although that takes a third of a cell's time. Which implementations a registry
        contains may depend on what fills it first, and where: Numba #9432 was such a case, so the first compilation is
        part of the outcome. Importing the modules early only saves each cell the imports.
        """
        from numba import cuda  # noqa: F401
        from numba.cuda import compiler, dispatcher  # noqa: F401
        from numba.cuda.cudadrv import nvvm
        from numba.cuda.cudadrv.runtime import runtime
        from numba.cuda.target import CUDATargetContext

        preload(setup, "libnvrtc-builtins", "libnvrtc")  # for programs that link CUDA C++
        # Only the version is needed, and a real runtime may need a driver for it.
        if hasattr(runtime, "_initialize") and not setup.device:
            runtime._initialize()
            runtime.lib = VirtualRuntime(setup)
        nvvm.NVVM()
        CUDATargetContext.load_additional_registries(Nothing())

    def capabilities(self) -> list[tuple[int, int]]:
        """Return the targets that the library can build with this NVVM."""
        from numba.cuda.cudadrv import nvvm

        return sorted(nvvm.NVVM().supported_ccs)

    def kernel_class(self) -> type:
        """Return the class of the library's kernels and device functions."""
        from numba.cuda.dispatcher import CUDADispatcher

        return CUDADispatcher  # type: ignore[no-any-return]

    def types_of(self, signature: str) -> tuple[Any, Any]:
        """Return the types of a signature's arguments and of its result; None if it names no result."""
        from numba.core import sigutils

        arguments, result = sigutils.normalize_signature(signature)
        return arguments, result

    def arch_option(self) -> Any:
        """Return the library's function from a compute capability to NVVM's ``-arch``."""
        from numba.cuda.cudadrv import nvvm

        return nvvm.get_arch_option

    def suffixes(self) -> bool:
        """Return whether the library supports architecture-specific targets."""
        return False

    def check_target(self, setup: Setup, job: Job) -> None:
        """Raise for targets that the library does not support."""
        if job.arch != job.arch.rstrip("af") and not self.suffixes():
            raise Unsupported(f"{self.library} knows no architecture-specific features, so no {job.target}")
        if job.capability not in self.capabilities():
            try:
                instead = self.arch_option()(*job.capability).replace("compute_", "silently build sm_")
            except Exception as error:  # noqa: BLE001 (the library may refuse as it likes)
                instead = f"refuse ({first_line(error)})"
            raise Unsupported(
                f"{self.library} with CUDA {setup.release} does not know compute capability "
                f"{job.compute_capability}: it would {instead}"
            )

    def check_libraries(self, setup: Setup) -> None:
        """Raise if the process has loaded libraries of another CUDA."""
        strange = foreign(setup)
        if not strange and (libdevice := self.libdevice()):
            own = setup.home / "nvvm" / "libdevice" / "libdevice.10.bc"
            strange = [] if libdevice.resolve() == own.resolve() else [libdevice]
        if strange:
            raise Unavailable(f"parts of another CUDA than {setup.release} were loaded: {', '.join(map(str, strange))}")

    def libdevice(self) -> Path | None:
        """Return the libdevice that the library found.

        The library reads it as a file, so nothing else reveals its path.
        """
        from numba.cuda.cuda_paths import get_cuda_paths

        found = get_cuda_paths()["libdevice"].info
        return Path(found) if found else None

    def attach(self, device: VirtualDevice) -> None:
        """Attach a device to the library: its driver object is as if it had just found libcuda."""
        from numba.cuda.cudadrv.driver import driver

        self.reload_settings()
        driver.lib = VirtualDriver(device)
        driver.is_initialized = False
        driver.initialization_error = None

    def reload_settings(self) -> None:
        """Read the settings in the environment again, after the cell has set some."""
        from numba.core import config

        config.reload_config()

    def finish(self, device: VirtualDevice, watch: Watch, name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
        """Compile one signature of a kernel, unless running the program did."""
        if arguments in kernel.overloads:
            return
        if not device.job.virtual:
            self.build(device, kernel, arguments)
            return
        watch.command(name, arguments)
        device.job.keep(self.to_ptx(device, kernel, arguments), "ptx")
        device.job.complete()

    def build(self, device: VirtualDevice, kernel: Any, arguments: Any) -> None:
        """Compile and link one signature of a kernel; the result is kept during linking."""
        kernel.compile(arguments)

    def collected(self, device: VirtualDevice, kernel: Any) -> None:
        """Collect a kernel without raising an exception that the program could catch."""
        try:
            self.collect(device, kernel)
        except Ended as ended:
            device.ended = device.ended or ended
        except Exception as error:  # noqa: BLE001 (told by `NumbaBackend` when the program has ended)
            device.fault = device.fault or error

    def collect(self, device: VirtualDevice, kernel: Any) -> None:
        """Keep a kernel's code if the device's linker was not involved."""

    def to_ptx(self, device: VirtualDevice, kernel: Any, arguments: Any) -> bytes:
        """Compile a kernel's function to PTX."""
        text = compile_ptx(kernel, arguments, device.job)
        device.check(text)
        return text.encode()


backend = NumbaBackend()
