"""A virtual GPU for CuPy: CuPy compiles normally, and `images` collects the code that CuPy would load.

This module replaces CuPy's query of the device's compute capability, `cupy.cuda.function.Module`, which loads compiled
code, and `cupy.cuda.function.LinkState`, the driver's linker; nvJitLink links instead (link.py). CuPy's options,
include directories and preprocessing, Jitify and NVRTC are the real ones. If this machine has a GPU of that compute
capability, nothing is replaced.

A program that uses CuPy's API (cupy_program.py) allocates arrays and launches kernels, so CUDA's runtime and driver are
replaced too (cupy_runtime.py). CuPy's own `Module` then passes the images to the replacement.
"""

import ctypes
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import link
from cuda_home import load
from gpu import has_device

HERE = Path(__file__).resolve().parent
images = []
loaded, lacking = {}, []  # the objects of cupy_runtime.py, if it is active
JITIFY_CAP = 75  # the newest capability that the Jitify of CuPy up to 13.0 supports


def use(capability, home, release, ptx=False):
    """Give CuPy a device and NVRTC from the folder `home`, of a release such as "12.4", before CuPy is imported.

    With `ptx`, CuPy stops at PTX, as it does for devices newer than its NVRTC.
    """
    os.environ["CUPY_CACHE_DIR"] = tempfile.mkdtemp()
    if HERE.joinpath("nvrtc_log.c").exists():
        _tell_what_nvrtc_says()
    load(home, "libnvrtc-builtins", "libnvrtc")
    if has_device(capability):
        print(f"on this machine's GPU of compute capability {capability}")
        return
    print(f"with a stand-in for a GPU of compute capability {capability}")
    names = [d.metadata["Name"] for d in importlib.metadata.distributions()]
    name = next(name for name in names if name and name.startswith("cupy"))
    version = tuple(int(part) for part in importlib.metadata.version(name).split(".")[:2])
    if version < (13, 0):  # cannot even be imported without CUDA's libraries
        import stand_ins

        stand_ins.load(name, capability, release)
    if HERE.joinpath("cupy_runtime.py").exists():
        import cupy_runtime

        global loaded, lacking
        loaded, lacking = cupy_runtime.loaded, cupy_runtime.lacking
        cupy_runtime.install(capability, release)
    _replace(capability.replace(".", ""), home, version, ptx)


def _tell_what_nvrtc_says():
    """Print NVRTC's log before an exception that ends the script (nvrtc_log.c)."""
    library = Path(tempfile.mkdtemp(), "libnvrtc_log.so")
    argv = [
        shutil.which("cc") or "gcc",
        "-shared",
        "-fPIC",
        "-w",
        "-o",
        str(library),
        str(HERE / "nvrtc_log.c"),
        "-ldl",
    ]
    subprocess.run(argv, check=True)
    log = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)

    def report(*error):
        log.nvrtc_print_last_failure()
        sys.__excepthook__(*error)

    sys.excepthook = report


def _replace(arch, home, version, ptx):
    from cupy._core import raw
    from cupy.cuda import compiler, function, jitify

    class Module(function.Module):
        def load(self, image):
            images.append(bytes(image))

        def get_global_var(self, name):
            raise RuntimeError("a stand-in for a GPU has no memory")

    class LinkState:
        def add_ptr_data(self, data, name):
            data = data.encode() if isinstance(data, str) else bytes(data)
            # CuPy cuts off a cubin's last byte, a zero that nvJitLink needs.
            self.image = data + b"\0" if data[:4] == b"\x7fELF" else data

        def add_ptr_file(self, path):
            """Ignore libcudadevrt.a: nvJitLink uses its own CUDA's."""

        def complete(self):
            elf = self.image[:4] == b"\x7fELF"
            return link.with_runtime(home, [self.image], f"sm_{arch}") if elf else self.image

    compiler.device = SimpleNamespace(Device=lambda: SimpleNamespace(compute_capability=arch))
    for part, name in (
        (compiler, "_get_arch"),
        (compiler, "_get_arch_for_options_for_nvrtc"),
        (raw, "_get_raw_module"),
    ):  # cached per device number, which the runtime would provide
        setattr(part, name, getattr(getattr(part, name), "__wrapped__", getattr(part, name)))
    whole = HERE.joinpath("cupy_runtime.py").exists()
    compiler.function = SimpleNamespace(Module=function.Module if whole else Module, LinkState=LinkState)
    compiler._use_ptx = ptx
    runtime = link.runtime_of(home)
    compiler._get_cudadevrt_path = lambda: str(runtime or "")
    if version >= (13, 0):
        jitify._init_module = lambda: None  # a warm-up that loads its result
    if version == (13, 0):
        jitify.jitify = _with_detected(jitify.jitify, arch)


def _with_detected(original, arch):
    """Add the option that CuPy 13.0's Jitify adds to its own compilations after it queries the device: ``-arch``, capped."""

    def jitify(source, options, *rest):
        if any(option.startswith(("-arch", "--gpu-architecture")) for option in options):
            return original(source, options, *rest)
        detected = f"-arch=compute_{min(int(arch), JITIFY_CAP)}"
        name, used, headers, names = original(source, (*options, detected), *rest)
        return name, tuple(option for option in used if option != detected), headers, names

    return jitify
