"""Stand-ins for the CUDA libraries that CuPy up to 12 must find before it can be imported.

Those releases link libcuda, cudart and the mathematical libraries; none of them plays a part in compiling, except that cudart
tells Jitify the device's compute capability. Only NVRTC is real. From 13 on CuPy needs none of this.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import distribution

from harness import native
from harness.protocol import printed
from harness.protocol.backend import Setup, Unavailable

# What CuPy's compiler asks cudart: the version, the device and its compute capability (attributes 75 and 76).
_CUDART = """
#include <stdlib.h>
static int number(const char *name, int otherwise) { const char *text = getenv(name); return text ? atoi(text) : otherwise; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaGetDeviceCount(int *count) { *count = 1; return 0; }
int cudaRuntimeGetVersion(int *version) { *version = number("CUMATRIX_CUDA_VERSION", 0); return 0; }
int cudaDriverGetVersion(int *version) { *version = number("CUMATRIX_CUDA_VERSION", 0); return 0; }
int cudaDeviceGetAttribute(int *value, int attribute, int device) {
    int capability = number("CUMATRIX_COMPUTE_CAPABILITY", 0);
    *value = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : attribute == 10 ? 32 : attribute == 1 ? 1024 : 1;
    return 0;
}
const char *cudaGetErrorString(int error) { return "no device: a stand-in for cudart"; }
const char *cudaGetErrorName(int error) { return "cudaErrorNoDevice"; }
"""
_OURS = set(re.findall(r"\b(cuda\w+)\(", _CUDART))
_MOST_SYMBOLS = 64 << 20  # bytes
_PREFIXES = {
    "libcudart": ("cuda", "__cuda"),
    "libcublas": ("cublas",),
    "libcufft": ("cufft",),
    "libcurand": ("curand",),
    "libcusparse": ("cusparse",),
    "libcusolver": ("cusolver",),
    "libnccl": ("nccl",),
}
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def load(setup: Setup, name: str) -> None:
    """Load stand-ins for everything that the extension modules of distribution `name` link, except NVRTC.

    Raises
    ------
    Unavailable
        When binutils or a C compiler are missing.
    """
    needed, undefined = _look(name)
    for soname in sorted(needed):
        symbols = undefined[soname] or set().union(*undefined.values())
        flags = []
        if undefined[soname]:  # the references carry the library's own name as their version
            script = setup.tools / f"{soname}.map"
            setup.tools.mkdir(parents=True, exist_ok=True)
            script.write_text(f"{soname} {{ global: *; }};\n")
            flags = [f"-Wl,--version-script={script}"]
        library = native.build(setup.tools, soname, _source(soname, symbols), flags)
        ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def pretend(setup: Setup, capability: str) -> None:
    """Set what the stand-in for cudart answers; ``"80"`` is compute capability 8.0."""
    major, minor = setup.version
    os.environ["CUMATRIX_CUDA_VERSION"] = str(major * 1000 + minor * 10)
    os.environ["CUMATRIX_COMPUTE_CAPABILITY"] = capability


def _source(soname: str, symbols: Iterable[str]) -> str:
    stem = soname.split(".so")[0]
    if stem == "libcuda":
        wanted = sorted(symbol for symbol in symbols if re.match(r"cu[A-Z]", symbol))
        return "".join(f"int {symbol}() {{ return {_NO_DEVICE}; }}\n" for symbol in wanted)
    wanted = sorted(symbol for symbol in symbols if symbol.startswith(_PREFIXES[stem]) and symbol not in _OURS)
    return (_CUDART if stem == "libcudart" else "") + "".join(
        f"int {symbol}() {{ return {_NO_DEVICE}; }}\n" for symbol in wanted
    )


def _look(name: str) -> tuple[set[str], dict[str, set[str]]]:
    """Sonames that the extension modules need, and the undefined symbols by the version they ask for."""
    dist = distribution(name)
    modules = [str(dist.locate_file(file)) for file in dist.files or () if str(file).endswith(".so")]
    needed, undefined = set(), defaultdict(set)
    for module in modules:
        needed |= set(re.findall(r"\(NEEDED\).*\[(lib(?:cu|nccl)[^\]]*)\]", _run("readelf", "-dW", module)))
        for symbol, version in re.findall(
            r"^\s*[Uw] (\w+)(?:@+(\S+))?$", _run("nm", "-D", "--undefined-only", module), re.MULTILINE
        ):
            undefined[version].add(symbol)
    known = {soname for soname in needed if soname.split(".so")[0] in (*_PREFIXES, "libcuda")}
    return known, undefined


def _run(*argv: str) -> str:
    try:
        done = printed.run(argv, seconds=120, errors=printed.Errors.DROPPED, keep=_MOST_SYMBOLS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"CuPy up to 12 without a device needs {argv[0]} (binutils): {error}") from None
    if not done.whole:
        raise Unavailable(f"{argv[0]} printed {done.total} bytes about {argv[-1]}")
    return done.said
