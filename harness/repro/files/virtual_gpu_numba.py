"""A virtual GPU for Numba: Numba compiles and links normally, and a launch does nothing.

virtual_gpu.c, built with this machine's C compiler, replaces libcuda; it has one device of the requested compute
capability. ptxas and nvJitLink replace the driver's linker (link.py). Numba itself, NVVM, libdevice, ptxas and
nvJitLink are the real ones. If this machine has a GPU of that compute capability, nothing is replaced.
"""

import ctypes
import importlib.util
import os
import tempfile
import types
from pathlib import Path

import link
from cuda_home import find, load
from gpu import has_device
from virtual_driver import LINKER, build

KINDS = {0: 1, 1: 2, 2: 4, 3: 5, 4: 6}  # CUjitInputType -> nvJitLinkInputType
kept = []


def use(capability, home, release):
    """Give Numba a device and the CUDA in the folder `home`, of a release such as "12.4", before Numba is imported."""
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    os.environ.update(CUDA_HOME=home, NUMBA_CUDA_INCLUDE_PATH=f"{home}/include", NUMBA_CACHE_DIR=tempfile.mkdtemp())
    bindings_only = _bindings_only()
    if bindings_only:  # compiled code, which uses libraries that are already loaded
        load(home, "libnvrtc-builtins", "libnvrtc", "libnvJitLink", "libcudart")
        ctypes.CDLL(f"{home}/nvvm/lib64/libnvvm.so.4")
    if has_device(capability):
        print(f"on this machine's GPU of compute capability {capability}")
        return
    print(f"with a stand-in for a GPU of compute capability {capability}")
    os.environ.update(NUMBA_CUDA_DRIVER="0", NUMBA_CUDA_USE_NVIDIA_BINDING="0")
    driver = build()
    major, minor = (int(part) for part in capability.split("."))
    cuda = [int(part) for part in release.split(".")]
    newest = (
        1000 * _bindings_major() if bindings_only else 0
    )  # the bindings complain about a driver older than themselves
    kept.append(LINKER(lambda *arguments: _link(home, f"sm_{major}{minor}", *arguments)))
    driver.virtual_configure(max(1000 * cuda[0] + 10 * cuda[1], newest), major, minor, kept[-1])
    if bindings_only:
        _without_other_driver()
    else:
        _hand_to_numba(driver, cuda, home)


def _bindings_only():
    """Return whether this numba-cuda reaches the driver only through NVIDIA's bindings."""
    spec = importlib.util.find_spec("numba_cuda")
    source = Path(spec.origin).parent / "numba/cuda/cudadrv/driver.py" if spec else None
    return bool(source) and "USE_NV_BINDING" not in source.read_text()


def _bindings_major():
    from importlib.metadata import version

    return int(version("cuda-bindings").split(".")[0])


def _without_other_driver():
    """Keep numba-cuda from finding a real libcuda.so, which it tries before libcuda.so.1."""
    real = ctypes.CDLL

    class Guarded(real):
        def __init__(self, name, *arguments, **options):
            if str(name).rpartition("/")[2] == "libcuda.so":
                raise OSError(f"{name}: not looked for")
            super().__init__(name, *arguments, **options)

    ctypes.CDLL = Guarded
    import numba.cuda  # noqa: F401

    ctypes.CDLL = real


def _hand_to_numba(library, cuda, home):
    """Install the stand-in as the libcuda that Numba has found."""
    from numba.cuda.cuda_paths import get_cuda_paths
    from numba.cuda.cudadrv.driver import driver
    from numba.cuda.cudadrv.runtime import runtime

    class Driver:
        def __getattr__(self, name):
            address = ctypes.c_void_p()
            if library.cuGetProcAddress_v2(name.replace("_v2", "").encode(), ctypes.byref(address), 0, 0, None):
                raise AttributeError(name)
            function = library._FuncPtr(address.value)
            function.__name__ = name
            return function

    def runtime_version(reference):
        getattr(reference, "_obj", reference).value = 1000 * cuda[0] + 10 * cuda[1]
        return 0

    driver.lib, driver.is_initialized, driver.initialization_error = Driver(), False, None
    if hasattr(runtime, "_initialize"):  # only its version is needed, and some releases need a driver for it
        runtime._initialize()
        runtime.lib = types.SimpleNamespace(cudaRuntimeGetVersion=runtime_version)
    paths = get_cuda_paths()
    if "nvrtc" in paths:  # some releases of numba-cuda search the whole machine for it
        paths["nvrtc"] = type(paths["nvrtc"])("CUDA_HOME", str(find(home, "libnvrtc")))


def _link(home, arch, count, inputs, options, names, values, cubin, size):
    """Act as the driver's linker, called from C; return 0 or CUDA_ERROR_INVALID_PTX."""
    items = []
    for item in inputs[:count]:
        data = ctypes.string_at(item.data, item.size) if item.size else ctypes.string_at(item.data)
        items.append((KINDS[item.kind], data if item.size else Path(os.fsdecode(data))))
    given = {names[i]: values[i] or 0 for i in range(options)}
    flags = [f"-maxrregcount={given[0]}"] if given.get(0) else []  # CU_JIT_MAX_REGISTERS
    flags += ["-lineinfo"] if given.get(13) else []  # CU_JIT_GENERATE_LINE_INFO
    others = [(kind, item) for kind, item in items if not (isinstance(item, Path) and item.name == "libcudadevrt.a")]
    runtime = len(others) < len(items)
    try:
        if len(others) == 1 and others[0][0] == link.PTX:
            image = link.assemble(home, others[0][1], arch, *flags, *(["-c"] if runtime else []))
            image = link.with_runtime(home, [image], arch) if runtime else image
        else:
            others += [(link.LIBRARY, link.runtime_of(home))] if runtime else []
            image = link.link(home, others, arch, *flags)
    except link.Refused:
        return 218
    kept.append(ctypes.create_string_buffer(image, len(image)))
    cubin[0], size[0] = ctypes.addressof(kept[-1]), len(image)
    return 0
