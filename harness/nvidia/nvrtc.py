"""NVRTC by its C interface (https://docs.nvidia.com/cuda/nvrtc/), loaded from a toolkit by path."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from harness.protocol.backend import Setup, Unavailable

SUCCESS = 0
COMPILATION = 6


class Nvrtc:
    """The one NVRTC of this process; a second one cannot be loaded.

    Raises
    ------
    Unavailable
        When the toolkit has none, or it is of another release than the toolkit.
    """

    def __init__(self, setup: Setup) -> None:
        self.lib = load(setup)
        self.lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.lib.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        if self.version != setup.release:
            raise Unavailable(f"asked for NVRTC {setup.release}, the one that was loaded says {self.version}")

    @property
    def precompiles(self) -> bool:
        """Return whether it has precompiled headers, as from CUDA 12.8 on."""
        return hasattr(self.lib, "nvrtcGetPCHHeapSize")

    def architectures(self) -> list[int]:
        """Compute capabilities that `nvrtcGetSupportedArchs` lists: ``[50, 52, …]``."""
        count = ctypes.c_int()
        self.lib.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.lib.nvrtcGetSupportedArchs(numbers)
        return list(numbers)

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[int, str, ctypes.c_void_p]:
        """Compile; returns NVRTC's result code, its log, and the program to ask for output."""
        program = ctypes.c_void_p()
        code = self.lib.nvrtcCreateProgram(ctypes.byref(program), source, os.fsencode(name), 0, None, None)
        if code != SUCCESS:
            return code, self.text(code), program
        argv = (ctypes.c_char_p * len(options))(*(os.fsencode(option) for option in options))
        code = self.lib.nvrtcCompileProgram(program, len(options), argv)
        return code, self._output(program, "ProgramLog").decode(errors="replace"), program

    def get(self, program: ctypes.c_void_p, kind: str) -> bytes:
        """The ``PTX``, ``CUBIN`` or ``LTOIR`` of a program; empty where it has none."""
        data = self._output(program, kind)
        return data.rstrip(b"\0") if kind == "PTX" else data

    def text(self, code: int) -> str:
        """Name of a result code."""
        name: bytes = self.lib.nvrtcGetErrorString(code)
        return name.decode()

    def _output(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        ask = getattr(self.lib, f"nvrtcGet{kind}Size", None)  # LTOIR came with 12.0
        if ask is None or ask(program, ctypes.byref(size)) != SUCCESS or not size.value:
            return b""
        data = ctypes.create_string_buffer(size.value)
        getattr(self.lib, f"nvrtcGet{kind}")(program, data)
        return data.raw.rstrip(b"\0") if kind == "ProgramLog" else data.raw


def load(setup: Setup) -> ctypes.CDLL:
    """Load the toolkit's NVRTC for everybody in this process, its builtins first."""
    builtins, library = setup.library("libnvrtc-builtins"), setup.library("libnvrtc")
    if builtins is None or library is None:
        raise Unavailable(f"{setup.home} has no NVRTC")
    ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
