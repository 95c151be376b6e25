"""A virtual libcuda and libcudart for libraries that call them through `ctypes`.

`VirtualDevice` is the device and its linker, the toolkit's own ptxas and nvJitLink. `VirtualDriver` offers it to
libraries that call libcuda through ctypes from Python, ``native/libcuda.c`` to all others.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from harness import native
from harness.nvidia import nvjitlink, tools
from harness.protocol import process_output
from harness.protocol.backend import Ended, Job, Rejected, Setup, Unavailable, Unsupported
from harness.protocol.messages import Options

# Kinds of the driver's linker inputs (CUjitInputType) that matter here, and their names in nvJitLink.
PTX, LIBRARY = 1, 4
_KINDS = {
    0: nvjitlink.INPUT_CUBIN,
    PTX: nvjitlink.INPUT_PTX,
    2: nvjitlink.INPUT_FATBIN,
    3: nvjitlink.INPUT_OBJECT,
    LIBRARY: nvjitlink.INPUT_LIBRARY,
}
# Options of the driver's linker (CUjit_option) that ptxas and nvJitLink also have.
MAX_REGISTERS, LINE_INFO = 0, 13

# PTX ISA by CUDA release, from the release notes of the "PTX ISA" document; NVVM writes it as `.version`.
_ISA = {"11.8": "7.8", "12.5": "8.5", "12.6": "8.5", "12.7": "8.6", "12.8": "8.7", "12.9": "8.8"}


def isa_of(release: str) -> str:
    """Return the PTX ISA of a CUDA release: ``"8.4"`` for 12.4."""
    major, minor = release.split(".")
    return _ISA.get(release, f"{int(major) - 4}.{minor}")


def release_of(isa: str, requested: str) -> str:
    """Return the CUDA release with this PTX ISA; `requested` if it is one of several."""
    if isa_of(requested) == isa:
        return requested
    major, minor = isa.split(".")
    known = {value: release for release, value in reversed(_ISA.items())}
    return known.get(isa, f"{int(major) + 4}.{minor}")


def directives(ptx: str) -> tuple[str, str]:
    """Return ``.version`` and ``.target`` of a PTX, such as ``("8.4", "sm_80")``; empty if missing."""
    version = re.search(r"^\.version\s+([\d.]+)", ptx, re.MULTILINE)
    target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
    return (version[1] if version else ""), (target[1] if target else "")


def read_back(setup: Setup, job: Job, library: str, ptx: str) -> None:
    """Read the target of the artifact and the release of its NVVM back from its PTX.

    Raises
    ------
    Unavailable, Unsupported
        If one differs from the request.
    """
    isa, target = directives(ptx)
    job.observed["ptx"] = isa
    job.observed["nvvm"] = release_of(isa, setup.release)
    if isa != isa_of(setup.release):
        used = ", ".join(str(path) for path in loaded("libnvvm")) or "no library that can be seen"
        raise Unavailable(
            f"asked for the NVVM of CUDA {setup.release}, whose PTX is {isa_of(setup.release)}, "
            f"and got PTX {isa}: another NVVM was loaded ({used})"
        )
    if target != f"sm_{job.arch}":
        if target.rstrip("af") == f"sm_{job.arch}".rstrip("af"):
            raise Unsupported(f"{library} builds {target} for this device, not sm_{job.arch}")
        raise Unavailable(f"asked for sm_{job.arch}, {library} built {target}")


class VirtualDevice:
    """The device of one cell: its target's compute capability, and the toolkit's own linking.

    Parameters
    ----------
    setup, job
        The toolkit and the cell.
    library : str
        The compiling library, for messages: ``"numba 0.59.1"``.

    Attributes
    ----------
    ended : Ended or None
        The reason if linking ended the cell; the library only receives an error code of the driver.
    fault : Exception or None
        A bug in the stand-in, which a library may have wrapped in its own exception.
    launched : callable
        Returns the number of omitted launches.
    images : int
        Number of programs that were linked here.
    """

    def __init__(self, setup: Setup, job: Job, library: str) -> None:
        self.setup, self.job, self.library = setup, job, library
        self.ended: Ended | None = None
        self.fault: Exception | None = None
        self.launches = 0
        self.launched: Callable[[], int] = lambda: self.launches
        self.images = 0

    def check(self, ptx: str) -> None:
        """Check what was built; see `read_back`."""
        read_back(self.setup, self.job, self.library, ptx)

    def link(self, inputs: list[tuple[int, bytes | Path]], options: dict[int, int]) -> bytes | None:
        """Link as the driver does, with the toolkit's tools; return None if linking ends the cell."""
        try:
            self.images += 1
            image = self._link(inputs, options)
            self.job.complete()
            return image
        except Ended as end:
            self.ended = end
            return None

    def _link(self, inputs: list[tuple[int, bytes | Path]], options: dict[int, int]) -> bytes:
        """Assemble a single PTX, as for other backends; link anything more with nvJitLink."""
        flags = [f"-maxrregcount={options[MAX_REGISTERS]}"] if options.get(MAX_REGISTERS) else []
        flags += ["-lineinfo"] if options.get(LINE_INFO) else []
        programs = [data for kind, data in inputs if kind == PTX and isinstance(data, bytes)]
        for program in programs[:1]:
            self.check(program.decode(errors="replace"))
        # Libraries find libcudadevrt in various places; it must come from nvJitLink's release.
        others = [(k, d) for k, d in inputs if not (isinstance(d, Path) and d.name == "libcudadevrt.a")]
        if self.job.virtual:
            self.job.keep(programs[0], "ptx")
            return programs[0]
        if len(programs) == len(others) == 1:
            relocatable = len(inputs) > 1
            ptx = self.job.keep(programs[0].rstrip(b"\0"), "ptx")
            # The lists are shared with the real job; only the options differ.
            link_options: Options = {**self.job.options, "ptxas": [*flags, *self.job.options.get("ptxas", [])]}
            job = replace(self.job, options=link_options)
            tools.assemble(self.setup, job, ptx, relocatable=relocatable)
            if relocatable:
                nvjitlink.link_with_runtime(self.setup, job)
            self.job.artifact = job.artifact
            assert job.artifact is not None
            return Path(job.artifact.path).read_bytes()
        return self._link_all(others, len(others) < len(inputs), flags)

    def _link_all(self, inputs: list[tuple[int, bytes | Path]], runtime: bool, flags: list[str]) -> bytes:
        library = self.setup.library("libnvJitLink")
        if library is None:
            raise Unavailable(f"CUDA {self.setup.release} has no nvJitLink (it came with 12.0): the program needs it")
        parts = nvjitlink.parts(self.setup)
        items = [(_KINDS[kind], data) for kind, data in inputs]
        if runtime and isinstance(parts, str):
            raise Unavailable(f"{parts}: the program needs it")
        if runtime and not isinstance(parts, str):
            items.append((nvjitlink.INPUT_LIBRARY, parts[1]))
        linker = nvjitlink.Linker(library)
        self.job.enter("link")
        self.job.observed["nvjitlink"] = linker.version
        argv = [f"-arch=sm_{self.job.arch}", *flags]
        names = [str(data) if isinstance(data, Path) else "PTX" for _, data in items]
        self.job.command.append(" ".join(["nvJitLink", *argv, *names]))
        try:
            with nvjitlink.heard(self.job):
                cubin, remarks = linker.link(argv, items)
        except nvjitlink.LinkError as error:
            self.job.say(str(error))
            raise Rejected("nvJitLink refused", stage="link") from None
        self.job.say(remarks)
        self.job.keep(cubin, "cubin")
        return cubin

    def attribute(self, number: int) -> int:
        """Return a device attribute (CUdevice_attribute)."""
        return device_attribute(number, self.job.capability)


def device_attribute(number: int, capability: tuple[int, int]) -> int:
    """Return a device attribute by number (CUdevice_attribute), for a compute capability."""
    return {75: capability[0], 76: capability[1], **_ATTRIBUTES}.get(number, 0)


# Threads, dimensions, shared and constant memory, warp, registers, multiprocessors; unified addressing; cooperative
# launch.
_ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 9: 65536}
_ATTRIBUTES |= {10: 32, 12: 65536, 16: 16, 39: 2048, 41: 1, 81: 49152, 82: 65536, 95: 1, 97: 49152}


def loaded(*stems: str) -> list[Path]:
    """Return the real paths of this process's libraries whose names begin with one of `stems`."""
    with open("/proc/self/maps") as file:
        paths = {Path(line.split(None, 5)[5].rstrip("\n")) for line in file if line.count("/")}
    return sorted(path for path in paths if path.name.startswith(stems))


def foreign(setup: Setup) -> list[Path]:
    """Return loaded parts of another CUDA than the toolkit's."""
    own = _libraries(setup.home)
    return [path for path in loaded("libnvvm", "libnvrtc", "libnvJitLink", "libcudart") if path not in own]


@cache
def _libraries(home: Path) -> frozenset[Path]:
    """Return the real paths of a toolkit's libraries; cached before cells are forked."""
    return frozenset(path.resolve() for folder in ("lib64", "nvvm/lib64") for path in (home / folder).glob("*.so*"))


SUCCESS, INVALID_PTX, NOT_SUPPORTED = 0, 218, 801
# Options of the driver's linker (CUjit_option) for its log buffers.
INFO_LOG, INFO_SIZE, ERROR_LOG, ERROR_SIZE = 3, 4, 5, 6


class VirtualRuntime:
    """Replaces the runtime library if only its version is needed: 11.8's needs a driver even for that."""

    def __init__(self, setup: Setup) -> None:
        major, minor = setup.version

        def get_version(reference: Any) -> int:
            _put(reference, major * 1000 + minor * 10)
            return SUCCESS

        self.cudaRuntimeGetVersion = get_version


class VirtualDriver:
    """Replaces libcuda as `ctypes` loads it: its functions take ctypes' arguments.

    A missing function raises AttributeError, as with a library.
    """

    def __init__(self, device: VirtualDevice) -> None:
        self._calls = _Calls(device)
        self._device = device
        # A library may store this function as a C pointer without calling it.
        self.cuIpcOpenMemHandle = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: NOT_SUPPORTED)

    def __getattr__(self, name: str) -> Callable[..., int]:
        method = getattr(self._calls, name.removesuffix("_v2"), None) if name.startswith("cu") else None
        if method is None:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            try:
                return method(*arguments) or SUCCESS
            except Exception as error:
                self._device.fault = self._device.fault or error
                raise

        call.__name__ = name
        return call


def _put(reference: Any, value: Any) -> None:
    getattr(reference, "_obj", reference).value = value


def _number(value: Any) -> int:
    return getattr(value, "value", value) or 0


class _Calls:
    """The driver's functions; each returns None for success."""

    def __init__(self, device: VirtualDevice) -> None:
        self.device = device
        self.context: int | None = None
        self.handles = 0x1000
        self.links: dict[int, tuple[list[tuple[int, bytes | Path]], dict[int, int]]] = {}
        self.memory: dict[int, Any] = {}
        self.kept: list[Any] = []

    def _handle(self, reference: Any) -> None:
        # Handles are never reused: libraries keep tables by handle.
        self.handles += 16
        _put(reference, self.handles)

    def _accept(self, *_: Any) -> None:
        """Do nothing: there is no device."""

    cuInit = cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxReset = cuCtxSynchronize = cuModuleUnload = _accept
    cuFuncSetCacheConfig = cuFuncSetAttribute = cuStreamSynchronize = cuStreamDestroy = cuEventRecord = _accept
    cuEventSynchronize = cuEventDestroy = cuEventQuery = cuStreamWaitEvent = cuLinkDestroy = _accept
    cuMemHostRegister = cuMemHostUnregister = _accept

    def cuDriverGetVersion(self, version: Any) -> None:
        major, minor = self.device.setup.version
        _put(version, major * 1000 + minor * 10)

    def cuDeviceGetCount(self, count: Any) -> None:
        _put(count, 1)

    def cuDeviceGet(self, device: Any, number: Any) -> None:
        _put(device, _number(number))

    def cuDeviceGetName(self, name: Any, size: Any, device: Any) -> None:
        name.value = b"virtual device"

    def cuDeviceGetUuid(self, uuid: Any, device: Any) -> None:
        ctypes.memset(ctypes.addressof(uuid._obj), 0, 16)

    def cuDeviceGetAttribute(self, value: Any, attribute: Any, device: Any) -> None:
        _put(value, self.device.attribute(_number(attribute)))

    def cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> None:
        _put(context, 0x10)

    def cuCtxGetCurrent(self, context: Any) -> None:
        _put(context, self.context)

    def cuCtxGetDevice(self, device: Any) -> None:
        _put(device, 0)

    def cuCtxPushCurrent(self, context: Any) -> None:
        self.context = _number(context)

    def cuCtxPopCurrent(self, context: Any) -> None:
        _put(context, self.context)
        self.context = None

    def cuLinkCreate(self, count: int, names: Any, values: Any, state: Any) -> None:
        self._handle(state)
        self.links[self.handles] = ([], {int(names[i]): values[i] or 0 for i in range(count)})

    def cuLinkAddData(self, state: Any, kind: Any, data: Any, size: int, *_: Any) -> None:
        self.links[_number(state)][0].append((_number(kind), ctypes.string_at(data, _number(size))))

    def cuLinkAddFile(self, state: Any, kind: Any, path: Any, *_: Any) -> None:
        self.links[_number(state)][0].append((_number(kind), Path(getattr(path, "value", path).decode())))

    def cuLinkComplete(self, state: Any, cubin: Any, size: Any) -> int | None:
        inputs, options = self.links[_number(state)]
        log_length = len(self.device.job.logs)
        image = self.device.link(inputs, options)
        failed = image is None
        buffer, room = (ERROR_LOG, ERROR_SIZE) if failed else (INFO_LOG, INFO_SIZE)
        log = "\n".join(self.device.job.logs[log_length:]).encode()[: max(options.get(room, 0) - 1, 0)] + b"\0"
        if options.get(buffer) and options.get(room):
            ctypes.memmove(options[buffer], log, len(log))
        if image is None:
            return INVALID_PTX
        self.kept.append(ctypes.create_string_buffer(image, len(image)))
        _put(cubin, ctypes.addressof(self.kept[-1]))
        _put(size, len(image))
        return None

    def cuModuleLoadDataEx(self, module: Any, *_: Any) -> None:
        self._handle(module)

    def cuModuleGetFunction(self, function: Any, *_: Any) -> None:
        self._handle(function)

    def cuModuleGetGlobal(self, pointer: Any, size: Any, *_: Any) -> None:
        self.cuMemAlloc(pointer, 4096)
        _put(size, 4)

    def cuFuncGetAttribute(self, value: Any, *_: Any) -> None:
        _put(value, 1)

    def cuLaunchKernel(self, *_: Any) -> None:
        self.device.launches += 1

    cuLaunchCooperativeKernel = cuLaunchKernel

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, blocks: Any, *_: Any) -> None:
        _put(blocks, 1)

    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = cuOccupancyMaxActiveBlocksPerMultiprocessor

    def cuOccupancyMaxPotentialBlockSize(self, grid: Any, block: Any, *_: Any) -> None:
        _put(grid, 16)
        _put(block, 256)

    def cuStreamCreate(self, stream: Any, *_: Any) -> None:
        self._handle(stream)

    cuEventCreate = cuStreamCreate

    def cuEventElapsedTime(self, milliseconds: Any, *_: Any) -> None:
        _put(milliseconds, 0.0)

    # Memory is the host's, so that a program gets past its preparations to the launch.

    def cuMemGetInfo(self, free: Any, total: Any) -> None:
        _put(free, 2**34)
        _put(total, 2**34)

    def cuMemAlloc(self, pointer: Any, size: Any) -> None:
        block = ctypes.create_string_buffer(max(_number(size), 1))
        self.memory[ctypes.addressof(block)] = block
        _put(pointer, ctypes.addressof(block))

    def cuMemHostAlloc(self, pointer: Any, size: Any, flags: Any) -> None:
        self.cuMemAlloc(pointer, size)

    cuMemAllocManaged = cuMemHostAlloc

    def cuMemHostGetDevicePointer(self, pointer: Any, host: Any, flags: Any) -> None:
        _put(pointer, _number(host))

    def cuMemFree(self, pointer: Any) -> None:
        self.memory.pop(_number(pointer), None)

    cuMemFreeHost = cuMemFree

    def cuMemcpyHtoD(self, target: Any, source: Any, size: Any, *_: Any) -> None:
        ctypes.memmove(target, source, _number(size))

    cuMemcpyDtoH = cuMemcpyDtoD = cuMemcpyHtoDAsync = cuMemcpyDtoHAsync = cuMemcpyDtoDAsync = cuMemcpyHtoD

    def cuMemsetD8(self, target: Any, value: Any, size: Any, *_: Any) -> None:
        ctypes.memset(target, _number(value), _number(size))

    cuMemsetD8Async = cuMemsetD8

    def cuPointerGetAttribute(self, value: Any, attribute: Any, pointer: Any) -> None:
        _put(value, _number(pointer))


_SOURCE = Path(native.__file__).with_name("libcuda.c")


class _Input(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]


LINKER = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_int,
    ctypes.POINTER(_Input),
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t),
)
"""The driver's linker, as the library's `virtual_configure` takes it."""


def virtual_driver(setup: Setup) -> ctypes.CDLL:
    """Load the virtual driver under the name that the bindings look up."""
    return ctypes.CDLL(str(stand_in_library(setup.tools)))


def stand_in_library(tools: Path) -> Path:
    """Return the stand-in for libcuda, built once for each version of its source.

    Raises
    ------
    Unavailable
        If there is no C compiler, or it fails.
    """
    name = "libcuda.so.1"
    folder = tools / f"libcuda-{hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder / name
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Unavailable("a stand-in for the driver is needed, and to build it a C compiler: install gcc")
    tools.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tools) as temporary:
        built = Path(temporary) / "built"
        built.mkdir()
        argv = [compiler, "-shared", "-fPIC", "-O1", f"-Wl,-soname,{name}", "-o", str(built / name), str(_SOURCE)]
        done = process_output.run(argv, seconds=120)
        if done.code:
            raise Unavailable(f"{compiler} cannot build the stand-in for the driver: {done.output.strip()[-400:]}")
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was faster
                raise
    return folder / name
