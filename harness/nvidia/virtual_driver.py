"""libcuda and libcudart for libraries that call them through `ctypes`: Python functions that take what ctypes would."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.nvidia.virtual_device import VirtualDevice
from harness.protocol.backend import Setup

SUCCESS, INVALID_PTX, NOT_SUPPORTED = 0, 218, 801
# Options of the driver's linker (CUjit_option): where it writes what it has to say.
INFO_LOG, INFO_SIZE, ERROR_LOG, ERROR_SIZE = 3, 4, 5, 6


class VirtualRuntime:
    """Replaces the runtime library where only its version is needed: 11.8's needs a driver even for that."""

    def __init__(self, setup: Setup) -> None:
        major, minor = setup.version

        def get_version(reference: Any) -> int:
            _put(reference, major * 1000 + minor * 10)
            return SUCCESS

        self.cudaRuntimeGetVersion = get_version


class VirtualDriver:
    """Replaces libcuda as `ctypes` would load it: functions that take ctypes' arguments.

    A function that it lacks is an AttributeError, as with a library.
    """

    def __init__(self, device: VirtualDevice) -> None:
        self._calls = _Calls(device)
        self._device = device
        # A library may store this one as a C pointer without calling it.
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
        # Never the same twice: libraries keep tables by handle.
        self.handles += 16
        _put(reference, self.handles)

    def _accept(self, *_: Any) -> None:
        """Nothing to be done without a device."""

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
        said = len(self.device.job.logs)
        image = self.device.link(inputs, options)
        failed = image is None
        buffer, room = (ERROR_LOG, ERROR_SIZE) if failed else (INFO_LOG, INFO_SIZE)
        log = "\n".join(self.device.job.logs[said:]).encode()[: max(options.get(room, 0) - 1, 0)] + b"\0"
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
