"""A virtual GPU for cuda.core, which queries the driver's version before it compiles or links.

virtual_gpu.c, built with this machine's C compiler, replaces libcuda. cuda.core, NVIDIA's bindings, NVRTC and nvJitLink
are the real ones. If this machine has a GPU of the compute capability, nothing is replaced.
"""

from importlib.metadata import version

from cuda_home import find, load
from gpu import has_device
from virtual_driver import LINKER, build


def use(capability, home, release):
    """Give cuda.core a device and the CUDA in the folder `home`, of a release such as "12.4", before it is imported."""
    # The bindings use libraries that are already loaded.
    load(home, "libnvrtc-builtins", "libnvrtc", *(["libnvJitLink"] if find(home, "libnvJitLink") else []))
    if has_device(capability):
        print(f"on this machine's GPU of compute capability {capability}")
        return
    print(f"with a stand-in for a GPU of compute capability {capability}")
    cuda = [int(part) for part in release.split(".")]
    # The bindings complain about a driver older than themselves.
    newest = max(1000 * cuda[0] + 10 * cuda[1], 1000 * int(version("cuda-bindings").split(".")[0]))
    build().virtual_configure(newest, *(int(part) for part in capability.split(".")), LINKER())
