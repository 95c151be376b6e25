"""A virtual CUDA runtime and driver for CuPy's own modules: programs compile, and launches do nothing.

CuPy links the runtime statically, so no library can replace it. All of CuPy calls the runtime and the driver through
two extension modules, ``cupy_backends.cuda.api.runtime`` and ``…driver``; `install` replaces their functions
(`harness.backends.cupy.c_table`). Memory is on the host, so that a program gets past its preparations, and a launch
does nothing. Functions without a replacement (textures, graphs, cuBLAS and the like, the compiled parts of Thrust and
CUB) are CuPy's own and report that there is no device.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.backends.cupy.c_table import replace
from harness.nvidia.launch import Launch
from harness.nvidia.virtual_driver import device_attribute
from harness.protocol.backend import Ended, Job, Rejected, Setup
from harness.protocol.codec import zipped

_BYTES = 1 << 34  # reported size of the memory


class VirtualGpu:
    """The device of the cell that runs in this process.

    Attributes
    ----------
    job : Job or None
        The cell; None before it is known.
    ended : Ended or None
        The outcome that ended the cell, if CuPy receives only an address or nothing.
    fault : Exception or None
        An internal error, which cannot be raised through C code.
    launches, images : int
        Number of skipped launches, and number of loaded programs.
    """

    def __init__(self, setup: Setup) -> None:
        major, minor = setup.version
        self.version = major * 1000 + minor * 10
        self.job: Job | None = None
        self.ended: Ended | None = None
        self.fault: Exception | None = None
        self.launches = self.images = 0
        self._handles = 0x1000
        self._memory: dict[int, Any] = {}
        self._loaded: dict[int, bytes] = {}

    def install(self) -> None:
        """Replace CuPy's runtime and driver, before CuPy is imported."""
        from cupy_backends.cuda.api import driver, runtime

        for module, functions in ((driver, self._driver()), (runtime, self._runtime(runtime.PointerAttributes))):
            for name, function in functions.items():
                replace(module, name, self._guarded(function))

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            except Exception as error:  # noqa: BLE001 (told when the program has ended)
                self.fault = self.fault or error
                return None

        return call

    def _runtime(self, attributes: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
        """Return the runtime's functions by name.

        `attributes` is the runtime's own class for a pointer's attributes.
        """
        functions: dict[str, Callable[..., Any]] = dict.fromkeys(_NOTHING_TO_DO, _nothing)
        functions |= dict.fromkeys(("eventCreate", "eventCreateWithFlags", "streamCreate"), self._handle)
        functions |= dict.fromkeys(("streamCreateWithFlags", "streamCreateWithPriority"), self._handle)
        functions |= dict.fromkeys(("malloc", "mallocManaged", "mallocAsync", "hostAlloc"), self._allocate)
        functions |= dict.fromkeys(("free", "freeAsync", "freeHost"), self._free)
        functions |= dict.fromkeys(("memcpy", "memcpyAsync"), _copy)
        functions |= dict.fromkeys(("memset", "memsetAsync"), _fill)
        return {
            **functions,
            "getDevice": lambda: 0,
            "getDeviceCount": lambda: 1,
            "driverGetVersion": lambda: self.version,
            "runtimeGetVersion": lambda: self.version,
            "deviceGetAttribute": lambda number, _device: self._attribute(number),
            "deviceCanAccessPeer": lambda *_: 0,
            "memGetInfo": lambda: (_BYTES, _BYTES),
            "streamIsCapturing": lambda *_: 0,
            "eventElapsedTime": lambda *_: 0,
            "pointerGetMemoryType": self._kind,
            "pointerGetAttributes": lambda address: attributes(0, address, 0, self._kind(address)),
        }

    def _driver(self) -> dict[str, Callable[..., Any]]:
        return {
            **dict.fromkeys(("moduleUnload", "ctxSetCurrent", "funcSetAttribute"), _nothing),
            **dict.fromkeys(("launchKernel", "launchCooperativeKernel"), self._launch),
            **dict.fromkeys(("ctxGetCurrent", "streamGetCtx"), lambda *_: 0x10),
            "ctxGetDevice": lambda: 0,
            "moduleLoadData": self._load,
            "moduleLoad": lambda path: self._load(Path(path).read_bytes()),
            "moduleGetFunction": self._function,
            "moduleGetGlobal": lambda *_: self._allocate(1 << 16),
            "funcGetAttribute": lambda *_: 1,
            "occupancyMaxActiveBlocksPerMultiprocessor": lambda *_: 1,
            "occupancyMaxPotentialBlockSize": lambda *_: (16, 256),
        }

    def _attribute(self, number: int) -> int:
        return device_attribute(number, self.job.capability if self.job else (8, 0))

    def _handle(self, *_: Any) -> int:
        self._handles += 16
        return self._handles

    def _allocate(self, size: int, *_: Any) -> int:
        block = ctypes.create_string_buffer(max(size, 1))
        self._memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def _kind(self, address: int) -> int:
        """Return the cudaMemoryType: device memory, or unregistered memory."""
        return 2 if address in self._memory else 0

    def _free(self, address: int, *_: Any) -> None:
        self._memory.pop(address, None)

    def _launch(self, *_: Any) -> None:
        self.launches += 1

    def _load(self, image: bytes) -> int:
        """Keep the image that the driver would load; a CuPy program has one for each kernel that it compiles."""
        job, data = self.job, bytes(image)
        assert job is not None
        kept = Path(job.artifact.path) if job.artifact else None
        # A linked image has been kept already.
        if kept is None or kept.stem != "artifact" or kept.read_bytes() != data:
            job.keep(data, "cubin" if data[:4] == b"\x7fELF" else "ptx")
        job.complete()
        self.images += 1
        self._loaded[self._handle()] = data
        return self._handles

    def _function(self, module: int, name: str) -> int:
        """Look up a kernel by name in the image, as the driver does."""
        job = self.job
        assert job is not None
        if not _has(self._loaded.get(module, b""), name) and self.ended is None:
            words = f"CUDA_ERROR_NOT_FOUND: named symbol not found: {name}"
            job.enter("load")
            job.say(f"CUDADriverError: {words}")
            self.ended = Rejected(words, stage="load")
        return self._handle()


_NOTHING_TO_DO = (
    "setDevice", "deviceSynchronize", "_ensure_context", "streamSynchronize", "streamQuery", "streamDestroy",
    "eventRecord", "eventSynchronize", "eventDestroy", "eventQuery", "streamWaitEvent", "hostRegister", "hostUnregister",
    "profilerStart", "profilerStop", "memPrefetchAsync", "memAdvise",
)  # fmt: skip


def _has(image: bytes, kernel: str) -> bool:
    """Return whether an image has a kernel: a cubin has a section per kernel, and PTX has a directive."""
    text = re.escape(kernel.encode())
    return re.search(rb"\.text\." + text + rb"\0|\.entry\s+" + text + rb"\s*[({\s]", image) is not None


def _nothing(*_: Any) -> None:
    """Do nothing, because there is no device."""


def _copy(target: int, source: int, size: int, *_: Any) -> None:
    ctypes.memmove(target, source, size)


def _fill(target: int, value: int, size: int, *_: Any) -> None:
    ctypes.memset(target, value, size)


def launch_all(job: Job, functions: dict[str, Any]) -> None:
    """Launch the functions of a module as the case specifies, and check their results.

    Raises
    ------
    Rejected
        At the stage ``verify``; exceptions of CuPy propagate.
    """
    import cupy

    if not job.launches:
        job.notes.append("loaded; the case does not say how to launch")
    for spec in job.launches:
        launch, function = Launch(job, spec), functions[spec.kernel]
        job.enter("launch")
        job.command.append(str(launch))
        arguments = [
            cupy.asarray(value) if argument.shape is not None else value
            for value, argument in zipped(launch.values, launch.arguments)
        ]
        if launch.opt_in:
            function.max_dynamic_shared_size_bytes = launch.shared
        function(launch.grid, launch.block, tuple(arguments), shared_mem=launch.shared)
        cupy.cuda.runtime.deviceSynchronize()
        launch.verify([cupy.asnumpy(item) if isinstance(item, cupy.ndarray) else None for item in arguments])
