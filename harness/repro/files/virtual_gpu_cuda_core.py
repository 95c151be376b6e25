"""A virtual GPU for cuda.core, which asks the driver for its version before it compiles or links.

In the place of libcuda there is virtual_gpu.c, which is built with this machine's C compiler. cuda.core, NVIDIA's bindings, NVRTC and
nvJitLink are the real ones. Where this machine has a GPU of the compute capability, nothing is replaced.
"""

from importlib.metadata import version

from cuda_home import find, load
from gpu import there_is
from virtual_driver import LINKER, build


def use(capability, home, release):
    """Give cuda.core the CUDA in the folder `home`, of a release such as "12.4", and a device; before it is imported."""
    # The bindings take libraries that are loaded already.
    load(home, "libnvrtc-builtins", "libnvrtc", *(["libnvJitLink"] if find(home, "libnvJitLink") else []))
    if there_is(capability):
        print(f"on this machine's GPU of compute capability {capability}")
        return
    print(f"with a stand-in for a GPU of compute capability {capability}")
    cuda = [int(part) for part in release.split(".")]
    # The bindings complain of a driver that is older than they are.
    newest = max(1000 * cuda[0] + 10 * cuda[1], 1000 * int(version("cuda-bindings").split(".")[0]))
    build().virtual_configure(newest, *(int(part) for part in capability.split(".")), LINKER())
