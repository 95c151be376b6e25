"""A virtual GPU for numba-cuda-mlir: it compiles and links normally, and a launch does nothing.

virtual_gpu.c, built with this machine's C compiler, replaces libcuda. numba-cuda-mlir, NVIDIA's bindings, NVVM and
nvJitLink are the real ones. If this machine has a GPU of the compute capability, nothing is replaced.
"""

import ctypes
import os
import tempfile
from importlib.metadata import version

from cuda_home import load
from gpu import has_device
from renamed import renamed
from virtual_driver import LINKER, build

kept = []


def use(capability, home, release, target):
    """Give numba-cuda-mlir a device and the CUDA in the folder `home`, of a release such as "12.4", before it is imported."""
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    os.environ.update(CUDA_HOME=home, NUMBA_CUDA_INCLUDE_PATH=f"{home}/include", NUMBA_CUDA_MLIR_ICE_FULL_TB="1")
    os.environ.update(dict.fromkeys(("NUMBA_CACHE_DIR", "NUMBA_CUDA_MLIR_CACHE_DIR"), tempfile.mkdtemp()))
    load(home, "libnvrtc-builtins", "libnvrtc", "libnvJitLink", "libcudart")  # the bindings use loaded libraries
    ctypes.CDLL(f"{home}/nvvm/lib64/libnvvm.so.4")
    if has_device(capability):
        print(f"on this machine's GPU of compute capability {capability}")
    else:
        print(f"with a stand-in for a GPU of compute capability {capability}")
        cuda = [int(part) for part in release.split(".")]
        # The bindings complain about a driver older than themselves.
        newest = max(1000 * cuda[0] + 10 * cuda[1], 1000 * int(version("cuda-bindings").split(".")[0]))
        kept.append(build())
        kept[0].virtual_configure(newest, *(int(part) for part in capability.split(".")), LINKER())
    kept.append(renamed())
    kept[-1].__enter__()  # a program may import numba
    _build_for(target)


def _build_for(target):
    """Build kernels for "sm_90a" on a device of 9.0, or as PTX, by options of cuda.jit that the program need not set."""
    from numba_cuda_mlir.descriptor import MLIRDispatcher

    prepare = MLIRDispatcher._resolve_target_options

    def resolve(kernel):
        options = kernel.targetoptions
        if not options.get("device"):
            if not target.rpartition("_")[2].isdigit() and not options.get("chip"):
                options["chip"] = target.replace("compute", "sm")
            if target.startswith("compute"):
                options["lto"] = False
        prepare(kernel)

    MLIRDispatcher._resolve_target_options = resolve
