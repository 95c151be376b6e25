"""Builds and loads virtual_gpu.c, a replacement for libcuda with one device of a chosen compute capability."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Input(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p)]


LINKER = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int, ctypes.POINTER(Input), ctypes.c_int, ctypes.POINTER(ctypes.c_int),
    ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
)  # fmt: skip


def build():
    """Build and load the library under the driver's name."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise SystemExit("a C compiler is needed for the stand-in for the driver: install gcc")
    library = Path(tempfile.mkdtemp(), "libcuda.so.1")
    argv = [compiler, "-shared", "-fPIC", "-O1", "-w", "-Wl,-soname,libcuda.so.1", "-o", str(library)]
    subprocess.run([*argv, str(HERE / "virtual_gpu.c")], check=True)
    return ctypes.CDLL(str(library))
