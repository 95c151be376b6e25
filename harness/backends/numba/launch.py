"""Numba on a real device: its dispatcher launches as a program's own line would, and is listened to."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from harness.nvidia.driver import Driver, DriverError, refused
from harness.nvidia.verify import Launch
from harness.nvidia.virtual_device import read_back
from harness.protocol.backend import Ended, Job, Setup
from harness.protocol.job import LaunchSpec
from harness.protocol.python39 import zipped


class RealDevice:
    """A real device with the interface of `harness.nvidia.virtual_device.VirtualDevice`; it replaces nothing.

    Parameters
    ----------
    setup, job, library
        As there.
    """

    ended: Ended | None = None
    fault: Exception | None = None

    def __init__(self, setup: Setup, job: Job, library: str) -> None:
        self.setup, self.job, self.library = setup, job, library

    @staticmethod
    def launched() -> int:
        """Launches that were left out: none."""
        return 0


@contextmanager
def watched(device: RealDevice) -> Iterator[None]:
    """Say which stage begins when Numba links, loads and launches, and keep the cubin it loads."""
    from numba.cuda.dispatcher import _Kernel

    job, bind, launch = device.job, _Kernel.bind, _Kernel.launch

    def watched_bind(kernel: Any) -> Any:
        library = kernel._codelibrary
        ptxs = library.get_asm_strs() if hasattr(library, "get_asm_strs") else [library.get_asm_str()]
        for ptx in ptxs:
            read_back(device.setup, job, device.library, ptx)
        job.enter("assemble")
        if getattr(library, "needs_cudadevrt", False) or getattr(library, "_linking_files", ()):
            job.enter("link")
        cubin = library.get_cubin()
        job.keep(bytes(getattr(cubin, "code", cubin)), "cubin")
        job.leave_to_driver()
        job.complete()
        job.enter("load")
        return bind(kernel)

    def watched_launch(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        job.enter("launch")
        return launch(kernel, *arguments, **keywords)

    _Kernel.bind, _Kernel.launch = watched_bind, watched_launch
    try:
        yield
    finally:
        _Kernel.bind, _Kernel.launch = bind, launch


def launch_kernel(job: Job, spec: LaunchSpec, kernel: Any) -> None:
    """Launch a dispatcher as ``kernel[grid, block, stream, shared](…)``, and check what it computed."""
    from numba import cuda

    launch = Launch(job, spec)
    job.command.append(str(launch))
    arguments = [
        cuda.to_device(value) if argument.shape is not None else value
        for value, argument in zipped(launch.values, launch.arguments)
    ]
    configured = kernel[launch.grid, launch.block, 0, launch.shared]
    with _allowed(job, launch) if launch.opt_in else _as_it_is():
        configured(*arguments)
    cuda.synchronize()
    launch.verify([item.copy_to_host() if hasattr(item, "copy_to_host") else None for item in arguments])


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def _allowed(job: Job, launch: Launch) -> Iterator[None]:
    """Raise the limit of shared memory between loading and launching; Numba has no call for it."""
    from numba.cuda.dispatcher import _Kernel

    original: Callable[..., Any] = _Kernel.launch

    def raised(kernel: Any, *arguments: Any, **keywords: Any) -> Any:
        handle: Any = kernel._codelibrary.get_cufunc().handle
        try:
            _allow(_pointer(handle), launch.shared)
        except DriverError as error:
            job.enter("launch")
            raise refused(error, "launch", job.say) from None
        return original(kernel, *arguments, **keywords)

    job.notes.append("the kernel's limit of shared memory was raised through the driver: Numba has no call for it")
    _Kernel.launch = raised
    try:
        yield
    finally:
        _Kernel.launch = original


def _allow(kernel: ctypes.c_void_p, size: int) -> None:
    driver = Driver(context=False)
    try:
        driver.allow_shared(kernel, size)
    except DriverError as error:
        if error.name != "CUDA_ERROR_INVALID_HANDLE":
            raise
        # cuda.core loads libraries, whose kernels are of no context: this is the one of the current context.
        function = ctypes.c_void_p()
        driver.call("cuKernelGetFunction", ctypes.byref(function), kernel)
        driver.allow_shared(function, size)


def _pointer(handle: Any) -> Any:
    value = getattr(handle, "value", None)
    return ctypes.c_void_p(value if isinstance(value, int) else int(handle))
