"""Stand-ins for the CUDA libraries that CuPy up to 12 imports; only NVRTC is real.

CuPy links libcuda, cudart and the mathematical libraries. Compiling uses none of them, except that cudart reports the
device's compute capability to Jitify. The stand-ins' symbols are read from CuPy (readelf, nm), and this machine's C
compiler builds the stand-ins.
"""

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path

CUDART = """
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = VERSION; return 0; }
int cudaDriverGetVersion(int *version) { *version = VERSION; return 0; }
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? MAJOR : attribute == 76 ? MINOR : attribute == 10 ? 32 : attribute == 1 ? 1024 : 1;
    return 0;
}
const char *cudaGetErrorString(int error) { return "no device: a stand-in for cudart"; }
const char *cudaGetErrorName(int error) { return "cudaErrorNoDevice"; }
"""
PREFIXES = {
    "libcuda": ("cu",),
    "libcudart": ("cuda", "__cuda"),
    "libcublas": ("cublas",),
    "libcufft": ("cufft",),
    "libcurand": ("curand",),
    "libcusparse": ("cusparse",),
    "libcusolver": ("cusolver",),
    "libnccl": ("nccl",),
}


def load(name, capability, release):
    """Build and load stand-ins for all libraries that the distribution `name` links, except NVRTC."""
    needed, undefined = set(), defaultdict(set)
    cupy = distribution(name)
    for module in [str(cupy.locate_file(file)) for file in cupy.files if str(file).endswith(".so")]:
        needed |= set(re.findall(r"\(NEEDED\).*\[(lib(?:cu|nccl)[^\]]*)\]", _output_of("readelf", "-dW", module)))
        symbols = re.findall(
            r"^\s*[Uw] (\w+)(?:@+(\S+))?$", _output_of("nm", "-D", "--undefined-only", module), re.MULTILINE
        )
        for symbol, version in symbols:
            undefined[version].add(symbol)
    numbers = dict(zip(("MAJOR", "MINOR"), capability.split(".")))
    cuda = [int(part) for part in release.split(".")]
    numbers["VERSION"] = str(1000 * cuda[0] + 10 * cuda[1])
    ours = set(re.findall(r"\b(cuda\w+)\(", CUDART))
    for soname in sorted(each for each in needed if each.split(".so")[0] in PREFIXES):
        stem, folder = soname.split(".so")[0], Path(tempfile.mkdtemp())
        every = undefined[soname] or set().union(*undefined.values())
        wanted = {each for each in every if each.startswith(PREFIXES[stem])}
        if stem == "libcuda":
            wanted = {each for each in wanted if re.match(r"cu[A-Z]", each)}
        text = CUDART if stem == "libcudart" else ""
        text += "".join(f"int {each}() {{ return 100; }}\n" for each in sorted(wanted - (ours if text else set())))
        (folder / "unit.c").write_text(text)
        (folder / "map").write_text(
            f"{soname} {{ global: *; }};\n"
        )  # references use the library's name as their version
        argv = [shutil.which("cc") or "gcc", "-w", "-shared", "-fPIC", "-fno-builtin", f"-Wl,-soname,{soname}"]
        argv += [f"-Wl,--version-script={folder}/map"] if undefined[soname] else []
        argv += [f"-D{macro}={value}" for macro, value in numbers.items()]
        subprocess.run([*argv, str(folder / "unit.c"), "-o", str(folder / soname)], check=True)
        ctypes.CDLL(str(folder / soname), ctypes.RTLD_GLOBAL)


def _output_of(*argv):
    return subprocess.run(argv, stdout=subprocess.PIPE, universal_newlines=True, check=True).stdout
