"""The numba-cuda-mlir package, which compiles Numba's kernels through MLIR (0.3 to 0.6).

The package contains numba-cuda's modules, and another compiler: MLIR, the toolkit's NVVM, and nvJitLink in this
process. The virtual device is the library that replaces libcuda for later releases of numba-cuda too
(`harness.backends.numba.numba_cuda`).

A program may import ``numba``: in the cell, this name is ``numba_cuda_mlir``, as the package's README changes imports.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.backends.numba.backend import NumbaBackend, package_version
from harness.backends.numba.numba_cuda import (
    attach_library,
    check_bindings,
    hide_real_driver,
    note_wheels,
    nvjitlink_version,
    pass_over_wheels,
    preload_for_bindings,
)
from harness.backends.numba.program import Watch
from harness.backends.numba.renamed import PACKAGE, renamed
from harness.libraries import LIBRARIES
from harness.nvidia.virtual_driver import VirtualDevice, virtual_driver
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported

_VENDORED = f"{PACKAGE}.numba_cuda"  # numba-cuda's modules


class MlirBackend(NumbaBackend):
    """`harness.protocol.backend.Backend` for numba-cuda-mlir."""

    package = "numba-cuda-mlir"
    modules = LIBRARIES["numba-cuda-mlir"].modules

    def isolate(self, setup: Setup) -> None:
        super().isolate(setup)
        os.environ["NUMBA_CUDA_DRIVER"] = "0"  # nothing is launched on a real device either
        os.environ["NUMBA_CUDA_MLIR_ICE_FULL_TB"] = "1"  # or the message is in a file with a different name each time

    def check_packages(self, setup: Setup) -> None:
        if package_version(self.package) is None:
            raise Unavailable(f"this environment has no {self.package}: install it there")
        check_bindings(setup, self.package)

    def load(self, setup: Setup) -> None:
        """Import the modules of a compilation, and load NVVM; a cell queries the device and fills the registries."""
        preload_for_bindings(setup)
        self.driver = virtual_driver(setup)
        with hide_real_driver():
            pass_over_wheels(f"{_VENDORED}.cuda_paths")
            for name in (
                "cuda",
                "types",
                "descriptor",
                "mlir_compiler",
                "mlir_optimization",
                "memory_management.config",
            ):
                importlib.import_module(f"{PACKAGE}.{name}")
        _vendored("cudadrv.nvvm").NVVM()

    def capabilities(self) -> list[tuple[int, int]]:
        return sorted(_vendored("cudadrv.nvrtc").get_supported_ccs())

    def kernel_class(self) -> type:
        return importlib.import_module(f"{PACKAGE}.descriptor").MLIRDispatcher  # type: ignore[no-any-return]

    def types_of(self, signature: str) -> tuple[Any, Any]:
        arguments, result = _vendored("core.sigutils").normalize_signature(signature)
        return arguments, result

    def check_target(self, setup: Setup, job: Job) -> None:
        if job.capability not in self.capabilities():
            raise Unsupported(f"CUDA {setup.release} does not know compute capability {job.compute_capability}")

    def libdevice(self) -> Path | None:
        found = _vendored("cuda_paths").get_cuda_paths()["libdevice"].info
        return Path(found) if found else None

    def attach(self, device: VirtualDevice) -> None:
        self.reload_settings()
        attach_library(self.driver, device)

    def reload_settings(self) -> None:
        _vendored("core.config").reload_config()

    def watch(self, job: Job, collect: Callable[[Any], None]) -> Watch:
        return MlirWatch(job, collect)

    def compile(self, setup: Setup, job: Job) -> None:
        os.environ["NUMBA_CUDA_MLIR_CACHE_DIR"] = str(job.scratch / "numba-cache")
        with renamed() as numba:
            super().compile(setup, job)
        if numba.imported:
            job.notes.append(f"in this program's imports, numba is {PACKAGE}")
        note_wheels(setup, job)

    def execute(self, setup: Setup, job: Job) -> None:
        """Compile as without a device."""
        self.compile(setup, job)
        job.notes.append(f"not launched: cumatrix compiles kernels of {self.package} only")

    def finish(self, device: VirtualDevice, watch: Watch, name: str, kernel: Any, arguments: tuple[Any, ...]) -> None:
        if arguments not in kernel.overloads:
            kernel.compile(arguments)

    def collect(self, device: VirtualDevice, kernel: Any) -> None:
        """Keep the PTX and cubin of a compilation; below nvJitLink 12.3, the driver would have linked it."""
        if device.images:
            return
        job, made = device.job, kernel.metadata
        if ptx := made["ptx"]:  # none if LTO IR is linked
            device.check(ptx)
            job.keep(ptx.encode(), "ptx")
        elif job.virtual:
            raise Unsupported(f"{self.library} links LTO IR here, and makes no PTX")
        if not job.virtual:
            job.enter("assemble")
            if made["linker"]._object_codes:
                job.enter("link")
            job.observed["nvjitlink"] = nvjitlink_version()
            job.keep(bytes(made["cubin"]), "cubin")
        job.complete()


class MlirWatch(Watch):
    """Watches the dispatchers of numba-cuda-mlir, and the function that generates code from their MLIR."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        descriptor: Any = importlib.import_module(f"{PACKAGE}.descriptor")
        optimization: Any = importlib.import_module(f"{PACKAGE}.mlir_optimization")
        dispatcher: Any = descriptor.MLIRDispatcher
        compile_, launch, optimize = dispatcher.compile, dispatcher._compile, optimization.optimize

        def heard_compile(kernel: Any, signature: Any, *rest: Any, **options: Any) -> Any:
            with self.trying(kernel, signature):
                return compile_(kernel, signature, *rest, **options)

        def heard_launch(kernel: Any, arguments: Any) -> Any:
            with self.trying(kernel, tuple(descriptor._compile_arg_types.types or ())):
                return launch(kernel, arguments)

        def heard_optimize(result: Any) -> Any:
            made = optimize(result)
            if not result.metadata["targetoptions"].get("device"):
                self.made(result, result.fndesc.qualname)
            return made

        dispatcher.compile, dispatcher._compile, optimization.optimize = heard_compile, heard_launch, heard_optimize
        try:
            yield
        finally:
            dispatcher.compile, dispatcher._compile, optimization.optimize = compile_, launch, optimize

    @contextmanager
    def trying(self, dispatcher: Any, arguments: Any) -> Iterator[None]:
        """Record a compilation as for Numba, with options of ``cuda.jit`` for what the device cannot express."""
        options, job = dispatcher.targetoptions, self.job
        if options.get("device"):  # up to 0.3.0, device functions are compiled one by one
            yield
            return
        if not job.arch.isdigit() and not options.get("chip"):
            options["chip"] = f"sm_{job.arch}"
        if job.virtual:
            options["lto"] = False  # up to 0.4.0 it is on, and there is no PTX
        with super().trying(dispatcher, arguments):
            yield


def _vendored(name: str) -> Any:
    return importlib.import_module(f"{_VENDORED}.{name}")


backend = MlirBackend()
