"""A virtual CUDA runtime and driver for CuPy without a GPU: memory is on the host, and a launch does nothing.

CuPy links the runtime statically, so no library can replace it. All of CuPy calls the runtime and the driver through
two extension modules, and c_table.py replaces their functions. Functions without a replacement (textures, graphs,
cuBLAS and the like) report that there is no device.
"""

import atexit
import ctypes
import os
import re
import sys
from pathlib import Path

import c_table

BYTES = 1 << 34  # reported size of the memory
# Threads, dimensions, shared and constant memory, warp, registers, processors; unified addressing; cooperative launch (CUdevice_attribute).
ATTRIBUTES = {1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 9: 65536, 10: 32, 12: 65536}
ATTRIBUTES.update({16: 16, 39: 2048, 41: 1, 81: 49152, 82: 65536, 95: 1, 97: 49152})
NOTHING_TO_DO = (
    "setDevice", "deviceSynchronize", "_ensure_context", "streamSynchronize", "streamQuery", "streamDestroy",
    "eventRecord", "eventSynchronize", "eventDestroy", "eventQuery", "streamWaitEvent", "hostRegister", "hostUnregister",
    "profilerStart", "profilerStop", "memPrefetchAsync", "memAdvise",
)  # fmt: skip

loaded = {}
"""Compiled images by CuPy's handle."""
memory = {}
lacking = []
"""Kernels that CuPy looked up but that its compiled code lacks."""
_handles = [0x1000]


def install(capability, release):
    """Replace the runtime and the driver, before CuPy is imported."""
    from cupy_backends.cuda.api import driver, runtime

    atexit.register(_leave)
    numbers = [int(part) for part in release.split(".")]
    version = numbers[0] * 1000 + numbers[1] * 10
    attributes = dict(ATTRIBUTES)
    attributes[75], attributes[76] = map(int, capability.split("."))

    def known_of(address):
        return runtime.PointerAttributes(0, address, 0, _kind(address))

    _replace(runtime, NOTHING_TO_DO, _nothing)
    _replace(runtime, ("eventCreate", "eventCreateWithFlags", "streamCreate"), _handle)
    _replace(runtime, ("streamCreateWithFlags", "streamCreateWithPriority"), _handle)
    _replace(runtime, ("malloc", "mallocManaged", "mallocAsync", "hostAlloc"), _allocate)
    _replace(runtime, ("free", "freeAsync", "freeHost"), _free)
    _replace(runtime, ("memcpy", "memcpyAsync"), _copy)
    _replace(runtime, ("memset", "memsetAsync"), _fill)
    _replace(runtime, ("getDevice", "deviceCanAccessPeer", "streamIsCapturing", "eventElapsedTime"), _nothing)
    _replace(runtime, ("getDeviceCount",), lambda: 1)
    _replace(runtime, ("driverGetVersion", "runtimeGetVersion"), lambda: version)
    _replace(runtime, ("deviceGetAttribute",), lambda number, _: attributes.get(number, 0))
    _replace(runtime, ("memGetInfo",), lambda: (BYTES, BYTES))
    _replace(runtime, ("pointerGetMemoryType",), _kind)
    _replace(runtime, ("pointerGetAttributes",), known_of)
    _replace(driver, ("moduleUnload", "ctxSetCurrent", "funcSetAttribute", "ctxGetDevice"), _nothing)
    _replace(driver, ("launchKernel", "launchCooperativeKernel"), _nothing)
    _replace(driver, ("ctxGetCurrent", "streamGetCtx"), lambda *_: 0x10)
    _replace(driver, ("moduleLoadData",), _load)
    _replace(driver, ("moduleLoad",), lambda path: _load(Path(path).read_bytes()))
    _replace(driver, ("moduleGetFunction",), _function)
    _replace(driver, ("moduleGetGlobal",), lambda *_: _allocate(1 << 16))
    _replace(driver, ("funcGetAttribute", "occupancyMaxActiveBlocksPerMultiprocessor"), lambda *_: 1)
    _replace(driver, ("occupancyMaxPotentialBlockSize",), lambda *_: (16, 256))


def _leave():
    """Exit immediately: at a normal exit, CuPy's destructors would call Python functions that no longer exist."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if hasattr(sys, "last_type") else 0)


def _replace(module, names, function):
    for name in names:
        c_table.replace(module, name, function)


def _nothing(*_):
    return None


def _handle(*_):
    _handles[0] += 16
    return _handles[0]


def _allocate(size, *_):
    block = ctypes.create_string_buffer(max(size, 1))
    memory[ctypes.addressof(block)] = block
    return ctypes.addressof(block)


def _free(address, *_):
    memory.pop(address, None)


def _kind(address):
    return 2 if address in memory else 0  # cudaMemoryTypeDevice, cudaMemoryTypeUnregistered


def _copy(target, source, size, *_):
    ctypes.memmove(target, source, size)


def _fill(target, value, size, *_):
    ctypes.memset(target, value, size)


def _load(image):
    handle = _handle()
    loaded[handle] = bytes(image)
    return handle


def _function(module, name):
    """Look up a kernel by name, as the driver does: a cubin has a section per kernel, and PTX has a directive."""
    text = re.escape(name.encode())
    if not re.search(rb"\.text\." + text + rb"\0|\.entry\s+" + text + rb"\s*[({\s]", loaded.get(module, b"")):
        lacking.append(name)
    return _handle()
