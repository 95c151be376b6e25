"""The virtual device as a library: what NVIDIA's own bindings (cuda.bindings, cuda.core) take for the driver."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import tempfile
from pathlib import Path

from harness import native
from harness.protocol import printed
from harness.protocol.backend import Setup, Unavailable

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
"""The driver's linker, as `virtual_configure` of the library takes it."""


def virtual_driver(setup: Setup) -> ctypes.CDLL:
    """Load the virtual driver, under the name that the bindings will ask for."""
    return ctypes.CDLL(str(stand_in_library(setup.tools)))


def stand_in_library(tools: Path) -> Path:
    """The stand-in for libcuda, compiled once for each version of its source.

    Raises
    ------
    Unavailable
        Without a C compiler.
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
        done = printed.run(argv, seconds=120)
        if done.code:
            raise Unavailable(f"{compiler} cannot build the stand-in for the driver: {done.said.strip()[-400:]}")
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was faster
                raise
    return folder / name
