"""The parts of a ROCm installation that HIP's compilers need, in AMD's packages and in Debian's."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

from harness.backends.nvrtc import macros
from harness.protocol.backend import Job, Setup, Unavailable, Unsupported

BITCODE = (
    "amdgcn/bitcode", "lib/*/amdgcn/bitcode", "lib/llvm*/lib/clang/*/lib/amdgcn/bitcode", "lib/llvm*/lib/clang/*/amdgcn/bitcode",
)  # fmt: skip
"""Places of AMD's device libraries."""
# Debian's Comgr is linked with the same LLVM as the clang of Debian's hipcc.
_LLVM = re.compile(rb"libLLVM-(\d+)\.so|libLLVM\.so\.(\d+)")
_ISA = "amdgcn-amd-amdhsa--"


def version(setup: Setup) -> str:
    """Return HIP's version from its header: ``"5.2.21153"``."""
    text = (setup.home / "include" / "hip" / "hip_version.h").read_text("utf-8", "replace")
    return ".".join(re.findall(r"#define HIP_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))


def library(setup: Setup, *names: str) -> Path:
    """Return the file of the first library found in the installation, with the full version in its name.

    Raises
    ------
    Unavailable
        If the installation has none of them.
    """
    for name in names:
        found = [path for folder in ("lib", "lib/*") for path in setup.home.glob(f"{folder}/{name}.so*")]
        if found:
            return max(found, key=lambda path: len(path.name))
    raise Unavailable(f"ROCm {setup.release} in {setup.home} has no {names[-1]}.so")


def device_libraries(setup: Setup) -> Path:
    """Return the folder of AMD's device libraries.

    Raises
    ------
    Unavailable
        If the installation has none.
    """
    found = [path for pattern in BITCODE for path in sorted(setup.home.glob(pattern)) if (path / "ockl.bc").is_file()]
    if not found:
        raise Unavailable(
            f"ROCm {setup.release} in {setup.home} has no device libraries (ockl.bc): install rocm-device-libs"
        )
    return found[0]


def clang(setup: Setup) -> Path:
    """Return the installation's clang: AMD's own, or Debian's clang of the LLVM that Comgr is linked with.

    Raises
    ------
    Unavailable
        If the installation has none.
    """
    for place in ("llvm/bin/clang", "lib/llvm/bin/clang"):
        if (setup.home / place).is_file():
            return setup.home / place
    linked = _LLVM.search(library(setup, "libamd_comgr").read_bytes())
    number = next(filter(None, linked.groups())).decode() if linked else ""
    path = setup.home / "bin" / f"clang-{number}"
    if not number or not path.is_file():
        what = f"clang-{number} lld-{number}" if number else "hipcc"
        raise Unavailable(f"ROCm {setup.release} in {setup.home} has no clang: `apt-get install {what}`")
    return path


class Comgr:
    """AMD's code object manager, the compiler behind hipRTC (``amd_comgr.h``)."""

    def __init__(self, setup: Setup) -> None:
        self.lib = ctypes.CDLL(str(library(setup, "libamd_comgr")))
        major, minor = ctypes.c_size_t(), ctypes.c_size_t()
        self.lib.amd_comgr_get_version(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def targets(self) -> list[str]:
        """Return the processors that Comgr supports: ``["gfx600", …]``."""
        count = ctypes.c_size_t()
        self.lib.amd_comgr_get_isa_count(ctypes.byref(count))
        names = []
        for number in range(count.value):
            name = ctypes.c_char_p()
            self.lib.amd_comgr_get_isa_name(ctypes.c_size_t(number), ctypes.byref(name))
            names.append((name.value or b"").decode().removeprefix(_ISA))
        return names


def check(job: Job, compiler: str) -> None:
    """Raise `Unsupported` for options that cumatrix passes to no HIP compiler.

    Parameters
    ----------
    job : Job
        The cell.
    compiler : str
        The compiler's name.
    """
    if job.options.get("arch", "given") != "given":
        raise Unsupported(f"without an architecture {compiler} builds for the machine's own device")
    if job.options.get("rdc") or job.lto:
        raise Unsupported(f"relocatable code of {compiler} is not linked")
    if job.options.get("ptxas"):
        raise Unsupported("ptxas has no part in code for AMD GPUs")


def options_of(job: Job) -> list[str]:
    """Return the options for a job that clang and hipRTC share, without the target and the optimization."""
    options = job.options
    return [
        *([f"-std={options['std']}"] if "std" in options else []),
        *(["-g"] if options.get("debug") else []),
        *(["-gline-tables-only"] if options.get("lineinfo") else []),
        *(["-ffast-math"] if options.get("fastmath") else []),
        *options.get("flags", []),
        *macros(job.definitions),
        *(f"-I{folder}" for folder in job.include),
    ]
