"""Rules of compatibility between device code and GPUs, and between PTX and drivers, each with its source.

The wheel command, the planner and the page share this table. ``tests/model/test_compatibility.py`` compares the PTX
rules with the code that ptxas assembles for each pair of targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from harness.model.target import Target

_GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html"
_CAPABILITIES = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html"
_DRIVERS = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html"
_PTX_RELEASES = "https://docs.nvidia.com/cuda/parallel-thread-execution/index.html#release-notes"
_HOST_COMPILERS = "https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#host-compiler-support-policy"
_MINOR = "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"


class Way(StrEnum):
    """Ways in which device code runs on a GPU, from best to worst."""

    NATIVE = "native"
    JIT = "jit"
    UNKNOWN = "unknown"
    NONE = "none"


_RANKS = tuple(Way)


def best(ways: list[Way]) -> Way:
    """Return the best of several ways; `Way.NONE` for an empty list."""
    return min(ways, key=_RANKS.index, default=Way.NONE)


@dataclass(frozen=True)
class Rule:
    """A rule of compatibility.

    Parameters
    ----------
    text : str
        The rule, in one sentence.
    source : str
        A document, or the measurement behind the rule.
    """

    text: str
    source: str


RULES = {
    "binary": Rule(
        "SASS runs on GPUs of the same major compute capability with the same or a higher minor one.", f"{_GUIDE}#binary-compatibility"
    ),
    "architecture": Rule("Code for an architecture-specific target (a) runs on that compute capability alone.", _CAPABILITIES),
    "family": Rule(
        "Code for a family-specific target (f) runs on its compute capability and higher minor ones of the same major one.", _CAPABILITIES
    ),
    "ptx": Rule("PTX without a suffix is compiled by the driver for any GPU of the same or a higher compute capability.", f"{_GUIDE}#ptx-compatibility"),
    "tegra": Rule(
        "SASS of desktop GPUs on Tegra, and the reverse, is not supported by NVIDIA's guide; reports disagree.",
        f"{_GUIDE}#binary-compatibility https://github.com/jax-ml/jax/pull/40492 "
        "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1939",
    ),
    "thor": Rule(
        "sm_101 is the former number of sm_110 (Jetson Thor); whether a driver that reports 11.0 loads its code is not documented.",
        "https://docs.nvidia.com/cuda/archive/13.0.0/cuda-toolkit-release-notes/index.html",
    ),
    "link": Rule(
        "Where linked SASS does not fit, the driver links the relocatable code again, if each of its fatbins has PTX or SASS for the GPU.",
        "https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#jit-linking",
    ),
    "none": Rule("No rule lets this code run there.", f"{_GUIDE}#binary-compatibility"),
}  # fmt: skip
"""Every rule by name."""

TEGRA = frozenset({32, 53, 62, 72, 87, 88, 101, 110})
"""Compute capabilities of Tegra (Jetson and other systems on a chip).

NVIDIA separates their binaries from those of desktop GPUs. DGX Spark (12.1) is not among them.
"""


@dataclass(frozen=True)
class Answer:
    """The relation of one piece of device code to one GPU.

    Parameters
    ----------
    way : Way
        How the code runs on the GPU.
    rule : str
        Name of the rule in `RULES`.
    """

    way: Way
    rule: str


def answer(code: Target, cc: int) -> Answer:
    """Apply the rules to device code and a GPU's compute capability.

    Parameters
    ----------
    code : Target
        A real target for SASS, a virtual one for PTX.
    cc : int
        Compute capability of the GPU: 120 for 12.0.
    """
    if {code.cc, cc} == {101, 110} and not code.suffix and not code.virtual:
        return Answer(Way.UNKNOWN, "thor")
    runs = Way.JIT if code.virtual else Way.NATIVE
    if code.suffix == "a":
        return Answer(runs, "architecture") if code.cc == cc else Answer(Way.NONE, "architecture")
    if code.suffix == "f" and not _same_major(code.cc, cc):
        return Answer(Way.NONE, "family")
    if code.virtual:
        return Answer(Way.JIT, "family" if code.suffix else "ptx") if code.cc <= cc else Answer(Way.NONE, "ptx")
    rule = "family" if code.suffix else "binary"
    if not _same_major(code.cc, cc):
        return Answer(Way.NONE, rule)
    if code.cc != cc and (code.cc in TEGRA or cc in TEGRA):
        return Answer(Way.UNKNOWN, "tegra")
    return Answer(runs, rule)


def _same_major(code: int, cc: int) -> bool:
    return code // 10 == cc // 10 and code <= cc


@dataclass(frozen=True)
class Release:
    """A CUDA release and its driver.

    Parameters
    ----------
    cuda : str
        ``12.8``.
    driver : str
        Minimum Linux driver with all features of the release; empty if this table has no entry.
    """

    cuda: str
    driver: str = ""

    def __str__(self) -> str:
        return f"the driver of CUDA {self.cuda}" + (f" ({self.driver})" if self.driver else "")


# Minimum Linux driver of each release, from Table 3 of the release notes. The driver of 13.2 is that of NVIDIA's
# installer (cuda_13.2.0_595.45.04_linux.run). Drivers of later releases are unknown here.
_RELEASES = {
    "9.0": "384.81", "9.1": "390.46", "9.2": "396.26", "10.0": "410.48", "10.1": "418.39", "10.2": "440.33",
    "11.0": "450.36.06", "11.1": "455.23", "11.2": "460.27.03", "11.3": "465.19.01", "11.4": "470.42.01", "11.5": "495.29.05",
    "11.6": "510.39.01", "11.7": "515.43.04", "11.8": "520.61.05", "12.0": "525.60.13", "12.1": "530.30.02", "12.2": "535.54.03",
    "12.3": "545.23.06", "12.4": "550.54.14", "12.5": "555.42.02", "12.6": "560.28.03", "12.7": "", "12.8": "570.26",
    "12.9": "575.51.03", "13.0": "580.65.06", "13.1": "590.44.01", "13.2": "595.45.04", "13.3": "", "13.4": "", "13.5": "",
}  # fmt: skip
RELEASES = {cuda: Release(cuda, driver) for cuda, driver in _RELEASES.items()}
"""CUDA releases with their minimum driver, from the release notes (https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html)."""

MINOR_DRIVERS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
"""Minimum Linux driver that runs programs of every minor release, by major release of CUDA (minor version compatibility)."""

# First release with each PTX version, from the release history of the PTX ISA. CUDA 12.6 has the PTX version of 12.5.
_PTX = {
    (6, 0): "9.0", (6, 1): "9.1", (6, 2): "9.2", (6, 3): "10.0", (6, 4): "10.1", (6, 5): "10.2", (7, 0): "11.0", (7, 1): "11.1",
    (7, 2): "11.2", (7, 3): "11.3", (7, 4): "11.4", (7, 5): "11.5", (7, 6): "11.6", (7, 7): "11.7", (7, 8): "11.8", (8, 0): "12.0",
    (8, 1): "12.1", (8, 2): "12.2", (8, 3): "12.3", (8, 4): "12.4", (8, 5): "12.5", (8, 6): "12.7", (8, 7): "12.8", (8, 8): "12.9",
    (9, 0): "13.0", (9, 1): "13.1", (9, 2): "13.2", (9, 3): "13.3", (9, 4): "13.4", (9, 5): "13.5",
}  # fmt: skip


def release_of_ptx(isa: tuple[int, int]) -> Release | None:
    """Return the first CUDA release with a driver that compiles this PTX version; None for an unknown version."""
    return RELEASES.get(_PTX.get(isa, ""))


def ptx_of_release(cuda: str) -> tuple[int, int] | None:
    """Return the PTX version that a CUDA release writes; None for an unknown release."""
    order = list(RELEASES)
    known = [isa for isa, first in _PTX.items() if cuda in order and order.index(first) <= order.index(cuda)]
    return max(known, default=None)


# From `ptxas --help` of CUDA 11.8 to 13.5, and from the release notes for earlier releases.
_FIRST = {
    50: "9.0", 52: "9.0", 53: "9.0", 60: "9.0", 61: "9.0", 62: "9.0", 70: "9.0", 72: "9.2", 75: "10.0", 80: "11.0", 86: "11.1", 87: "11.4",
    88: "13.0", 89: "11.8", 90: "11.8", 100: "12.8", 101: "12.8", 103: "12.9", 107: "13.4", 110: "13.0", 120: "12.8", 121: "12.9",
}  # fmt: skip

FIRST_OF_FAMILIES = "12.9"
"""The first CUDA release with family-specific targets, which PTX ISA 8.8 introduced."""


def release_of_gpu(cc: int) -> Release | None:
    """Return the first CUDA release that supports a compute capability (9.0 before Volta); None if unknown."""
    return RELEASES.get(_FIRST.get(cc, ""))


# CUDA 11.0 dropped the first Kepler GPUs, 12.0 the others, 13.0 every GPU before Turing. 13.0 also renamed sm_101 to
# sm_110.
_LAST = {
    30: "10.2",
    32: "10.2",
    35: "11.8",
    37: "11.8",
    50: "12.9",
    52: "12.9",
    53: "12.9",
    60: "12.9",
    61: "12.9",
    62: "12.9",
    70: "12.9",
    72: "12.9",
    101: "12.9",
}


def last_release_of_gpu(cc: int) -> Release | None:
    """Return the last CUDA release that compiles for a compute capability; None if the newest release does."""
    return RELEASES.get(_LAST.get(cc, ""))


def newer(one: Release, other: Release | None) -> Release:
    """Return the newer of two releases."""
    order = list(RELEASES)
    return max(one, other or one, key=lambda release: order.index(release.cuda))


# From the version checks in crt/host_config.h of each release.
_HOSTS = {
    "11.7": (11, 13), "11.8": (11, 14), "12.0": (12, 14), "12.1": (12, 15), "12.2": (12, 16), "12.3": (12, 16), "12.4": (13, 17), "12.5": (13, 17),
    "12.6": (13, 18), "12.8": (14, 19), "12.9": (14, 19), "13.0": (15, 20), "13.1": (15, 21), "13.2": (15, 21), "13.3": (15, 21), "13.4": (16, 22),
    "13.5": (16, 22),
}  # fmt: skip


def newest_hosts(cuda: str) -> dict[str, int]:
    """Return the newest major version of each host compiler that nvcc of a CUDA release accepts; empty for an unknown release.

    nvcc accepts newer ones only with ``-allow-unsupported-compiler``.
    """
    return dict(zip(("gcc", "clang"), _HOSTS.get(cuda, ()), strict=False))


SOURCES = {
    "drivers": _DRIVERS,
    "PTX versions": _PTX_RELEASES,
    "minor versions": _MINOR,
    "host compilers": _HOST_COMPILERS,
}
"""Documents with the tables of releases."""
