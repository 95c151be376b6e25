"""Links PTX and relocatable code to a cubin with ptxas and nvJitLink, as the driver's linker does."""

import ctypes
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from cuda_home import find

CUBIN, PTX, LTOIR, LIBRARY = 1, 2, 3, 6  # nvJitLinkInputType


class Refused(Exception):
    """The assembler or the linker refused its input; its messages have been printed."""


def runtime_of(home):
    """Return the path of libcudadevrt.a or None; NVIDIA's wheels include it from CUDA 12.9 on."""
    path = Path(home, "lib64", "libcudadevrt.a")
    return path if path.exists() and find(home, "libnvJitLink") else None


def assemble(home, ptx, arch, *options):
    """Assemble PTX."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(ptx.rstrip(b"\0"))
        argv = [f"{home}/bin/ptxas", f"-arch={arch}", "-v", *options, str(source), "-o", str(cubin)]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        sys.stderr.write(done.stdout)
        if done.returncode:
            raise Refused("ptxas refused the PTX")
        return cubin.read_bytes()


def link(home, inputs, arch, *options):
    """Link inputs with nvJitLink; each input is a kind, and bytes or a path."""
    path = find(home, "libnvJitLink")
    if path is None:
        raise Refused(f"{home} has no nvJitLink, which came with CUDA 12.0")
    library, handle, size = ctypes.CDLL(str(path.resolve())), ctypes.c_void_p(), ctypes.c_size_t()
    # Entry points have the suffix of the release that introduced them.
    names = re.findall(rb"__nvJitLinkCreate_(\d+)_(\d+)\0", path.read_bytes())
    suffix = "_{}_{}".format(*max((int(a), int(b)) for a, b in names)) if names else ""

    def function(name):
        return getattr(library, f"__nvJitLink{name}{suffix}", None) or getattr(library, f"nvJitLink{name}")

    def call(name, *arguments):
        if function(name)(*arguments):
            if handle and not function("GetErrorLogSize")(handle, ctypes.byref(size)):
                log = ctypes.create_string_buffer(size.value + 1)
                function("GetErrorLog")(handle, log)
                sys.stderr.write(log.value.decode(errors="replace").rstrip() + "\n")
            raise Refused("nvJitLink refused")

    words = [f"-arch={arch}".encode(), *(option.encode() for option in options)]
    call("Create", ctypes.byref(handle), len(words), (ctypes.c_char_p * len(words))(*words))
    try:
        for kind, item in inputs:
            if isinstance(item, Path):
                call("AddFile", handle, kind, str(item).encode())
            else:
                data = item.rstrip(b"\0") + b"\0" if kind == PTX else item
                call("AddData", handle, kind, data, ctypes.c_size_t(len(data)), b"input")
        call("Complete", handle)
        call("GetLinkedCubinSize", handle, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        call("GetLinkedCubin", handle, cubin)
        return cubin.raw
    finally:
        function("Destroy")(ctypes.byref(handle))


def with_runtime(home, images, arch, *options):
    """Link relocatable code or LTO IR, with libcudadevrt if it exists; return linked code unchanged."""
    whole = b"".join(images)
    elf = whole[:4] == b"\x7fELF"
    if elf and whole[16:18] != b"\x01\x00":  # ET_REL
        return whole
    runtime = runtime_of(home)
    if runtime is None and elf and re.search(rb"\0_*cuda[A-Z]\w*\0", whole):
        sys.stderr.write("not linked: these wheels of CUDA have no libcudadevrt.a, which the program calls\n")
        return whole
    if elf and find(home, "libnvJitLink") is None:
        sys.stderr.write("not linked: this CUDA has no nvJitLink\n")
        return whole
    more = [(LIBRARY, runtime)] if runtime else []
    return link(home, [*((CUBIN if elf else LTOIR, image) for image in images), *more], arch, *options)
