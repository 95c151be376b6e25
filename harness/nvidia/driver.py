"""CUDA's driver interface (https://docs.nvidia.com/cuda/cuda-driver-api/), as far as a launch needs it.

Called through ctypes and not through cuda-bindings: it serves environments that have nothing but the compiler, and the control
must not change with what else is installed. The calls used here have had the same form since CUDA 9.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from harness.protocol.backend import Rejected, Unavailable

_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CAPABILITY = (75, 76)
_ERROR_LOG, _ERROR_LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size
_LOG = 8192


class DriverError(Exception):
    """A call that did not succeed; the message has its code, its words and its name."""

    def __init__(self, call: str, code: int, name: str, words: str) -> None:
        super().__init__(f"{name}: {words} ({call})" if words else f"{name} ({call})")
        self.code, self.name = code, name


class Driver:
    """The driver with the first visible device.

    Parameters
    ----------
    context : bool
        Whether to make the device's primary context the current one, as loading and launching need.

    Raises
    ------
    Unavailable
        When there is no driver, or no device.
    """

    def __init__(self, context: bool = True) -> None:
        try:
            self.lib = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Unavailable(f"the driver cannot be loaded: {error}") from None
        self.device = ctypes.c_int()
        self.context = ctypes.c_void_p()
        try:
            self.call("cuInit", 0)
            self.call("cuDeviceGet", ctypes.byref(self.device), 0)
            if context:
                self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
                self.call("cuCtxSetCurrent", self.context)
        except DriverError as error:
            raise Unavailable(f"the device cannot be used: {error}") from None

    def call(self, function: str, *arguments: Any) -> None:
        """Call, and raise `DriverError` where it does not succeed."""
        code = getattr(self.lib, function)(*arguments)
        if code:
            raise DriverError(function, code, self._text("cuGetErrorName", code), self._text("cuGetErrorString", code))

    def _text(self, function: str, code: int) -> str:
        text = ctypes.c_char_p()
        if getattr(self.lib, function)(code, ctypes.byref(text)) or not text.value:
            return f"error {code}" if function == "cuGetErrorName" else ""
        return text.value.decode(errors="replace")

    def allow_shared(self, function: Any, size: int) -> None:
        """Raise a kernel's limit of dynamic shared memory."""
        self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size)

    @property
    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.device)
        return text.value.decode(errors="replace")

    @property
    def capability(self) -> str:
        """Its compute capability: ``"9.0"``."""
        return "{}.{}".format(*map(self._attribute, _CAPABILITY))

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.device)
        return value.value

    def load(self, image: bytes) -> ctypes.c_void_p:
        """Load a cubin or a PTX; where the driver has more to say than a code, it is in the error's notes."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(_LOG)
        keys = (ctypes.c_int * 2)(_ERROR_LOG, _ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), _LOG)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), image + b"\0", 2, keys, values)
        except DriverError as error:
            if log.value and hasattr(error, "add_note"):  # from Python 3.11 on
                error.add_note(log.value.decode(errors="replace"))
            raise
        return module

    def function(self, module: ctypes.c_void_p, kernel: str) -> ctypes.c_void_p:
        """A kernel of a loaded module."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        return function

    def upload(self, data: bytes) -> ctypes.c_uint64:
        """Device memory with these bytes in it."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(len(data)))
        self.call("cuMemcpyHtoD_v2", pointer, data, ctypes.c_size_t(len(data)))
        return pointer

    def download(self, pointer: ctypes.c_uint64, size: int) -> bytes:
        """The present content of device memory."""
        data = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(size))
        return data.raw

    def launch(
        self, function: ctypes.c_void_p, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any],
        *, shared: int = 0, opt_in: bool = False, cooperative: bool = False,
    ) -> None:  # fmt: skip
        """Launch a kernel and wait for its end; arguments are ctypes values."""
        if opt_in:
            self.allow_shared(function, shared)
        places = [ctypes.cast(ctypes.pointer(argument), ctypes.c_void_p) for argument in arguments]
        parameters = (ctypes.c_void_p * max(len(places), 1))(*places)
        if cooperative:
            self.call("cuLaunchCooperativeKernel", function, *grid, *block, shared, None, parameters)
        else:
            self.call("cuLaunchKernel", function, *grid, *block, shared, None, parameters, None)
        self.call("cuCtxSynchronize")


def refused(error: DriverError, stage: str, say: Any) -> Rejected:
    """The end of a cell by a call of the driver, whose words go to the log."""
    say("\n".join([f"error: {error}", *getattr(error, "__notes__", ())]))
    return Rejected(str(error), stage=stage)
