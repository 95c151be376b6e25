"""Marketing names of GPUs and generations, with their targets.

NVIDIA's table: https://developer.nvidia.com/cuda-gpus, and https://developer.nvidia.com/cuda-legacy-gpus for older
GPUs. AMD's table: https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html and
https://llvm.org/docs/AMDGPUUsage.html#processors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import did_you_mean
from harness.model.target import NVIDIA, VENDORS, Target, TargetError, check_known, parse_targets

_NAMED: Mapping[str, tuple[str, ...]] = {
    "kepler": ("sm_30", "sm_32", "sm_35", "sm_37"),
    "maxwell": ("sm_50", "sm_52", "sm_53"),
    "pascal": ("sm_60", "sm_61", "sm_62"),
    "volta": ("sm_70", "sm_72"),
    "turing": ("sm_75",),
    "ampere": ("sm_80", "sm_86", "sm_87"),
    "ada": ("sm_89",),
    "ada lovelace": ("sm_89",),
    "hopper": ("sm_90", "sm_90a"),
    "blackwell": ("sm_100", "sm_120", "sm_103", "sm_121", "sm_100a", "sm_120a", "sm_103a", "sm_121a"),
    "k80": ("sm_37",),
    **dict.fromkeys(("gtx 750", "gtx 750 ti"), ("sm_50",)),
    **dict.fromkeys(
        ("gtx 960", "gtx 970", "gtx 980", "gtx 980 ti", "titan x maxwell", "tesla m40", "m60", "quadro m2000"),
        ("sm_52",),
    ),
    **dict.fromkeys(("jetson nano", "jetson tx1"), ("sm_53",)),
    **dict.fromkeys(("p100", "tesla p100", "gp100"), ("sm_60",)),
    **dict.fromkeys(
        ("p1000", "p2000", "p4000", "p5000", "p6000", "mx150", "gtx 1050", "gtx 1050 ti", "gtx 1060", "gtx 1070", "gtx 1070 ti", "gtx 1080", "gtx 1080 ti", "titan xp", "p4", "tesla p4", "p40"),
        ("sm_61",),
    ),
    "jetson tx2": ("sm_62",),
    "jetson": ("sm_87", "sm_110", "sm_72", "sm_62", "sm_53"),
    "tegra": ("sm_87", "sm_110", "sm_72", "sm_62", "sm_53"),
    **dict.fromkeys(("v100", "tesla v100", "titan v", "gv100"), ("sm_70",)),
    **dict.fromkeys(("xavier", "jetson xavier", "agx xavier", "jetson agx xavier"), ("sm_72",)),
    **dict.fromkeys(
        ("t4", "tesla t4", "gtx 1650", "gtx 1660", "gtx 1660 ti", "rtx 2060", "rtx 2070", "rtx 2080", "rtx 2080 ti", "titan rtx", "rtx 8000", "t400", "t600", "t1000", "t2000", "quadro rtx 3000", "quadro rtx 4000", "quadro rtx 5000", "quadro rtx 6000", "gtx 1630"),
        ("sm_75",),
    ),
    **dict.fromkeys(("a100", "a30"), ("sm_80",)),
    **dict.fromkeys(
        (
            *("rtx 3050", "rtx 3060", "rtx 3060 ti", "rtx 3070", "rtx 3070 ti", "rtx 3080", "rtx 3080 ti", "rtx 3090", "rtx 3090 ti"),
            *("rtx a2000", "rtx a3000", "rtx a4500", "rtx a5500", "rtx a4000", "rtx a5000", "rtx a6000", "a4000", "a5000", "a6000", "a40", "a10", "a10g", "a16", "a2"),
        ),
        ("sm_86",),
    ),
    **dict.fromkeys(("orin", "jetson orin", "agx orin", "orin nano", "jetson agx orin", "jetson orin nano"), ("sm_87",)),
    **dict.fromkeys(
        ("rtx 4050", "rtx 4060", "rtx 4060 ti", "rtx 4070", "rtx 4070 ti", "rtx 4080", "rtx 4090", "l4", "l40", "l40s", "rtx 6000 ada", "rtx 5000 ada", "rtx 4500 ada", "rtx 4000 ada", "rtx 2000 ada"),
        ("sm_89",),
    ),
    **dict.fromkeys(("h100", "h200", "h20", "h800", "gh200", "grace hopper"), ("sm_90", "sm_90a")),
    **dict.fromkeys(("b100", "b200", "gb200"), ("sm_100", "sm_100a")),
    **dict.fromkeys(("b300", "gb300"), ("sm_103", "sm_103a")),
    **dict.fromkeys(("thor", "jetson thor", "agx thor", "jetson agx thor"), ("sm_110", "sm_101")),
    **dict.fromkeys(
        ("rtx 5050", "rtx 5060", "rtx 5060 ti", "rtx 5070", "rtx 5070 ti", "rtx 5080", "rtx 5090", "rtx pro 2000", "rtx pro 4000", "rtx pro 4500", "rtx pro 5000", "rtx pro 6000"),
        ("sm_120", "sm_120a"),
    ),
    **dict.fromkeys(("rtx 20", "rtx 20 series"), ("sm_75",)),
    **dict.fromkeys(("rtx 30", "rtx 30 series"), ("sm_86",)),
    **dict.fromkeys(("rtx 40", "rtx 40 series"), ("sm_89",)),
    **dict.fromkeys(("rtx 50", "rtx 50 series"), ("sm_120", "sm_120a")),
    **dict.fromkeys(("gb10", "dgx spark"), ("sm_121", "sm_121a")),
    "cdna": ("gfx908", "gfx90a", "gfx942", "gfx950"),
    "cdna2": ("gfx90a",),
    "cdna3": ("gfx942",),
    "cdna4": ("gfx950",),
    "rdna2": ("gfx1030", "gfx1031", "gfx1032", "gfx1034", "gfx1035", "gfx1036"),
    "rdna3": ("gfx1100", "gfx1101", "gfx1102", "gfx1103"),
    "rdna4": ("gfx1200", "gfx1201"),
    **dict.fromkeys(("mi50", "mi60", "radeon vii"), ("gfx906",)),
    "mi100": ("gfx908",),
    **dict.fromkeys(("mi210", "mi250", "mi250x"), ("gfx90a",)),
    **dict.fromkeys(("mi300", "mi300a", "mi300x", "mi325x"), ("gfx942",)),
    **dict.fromkeys(("mi350", "mi350x", "mi355x"), ("gfx950",)),
    **dict.fromkeys(("rx 6800", "rx 6800 xt", "rx 6900 xt", "rx 6950 xt"), ("gfx1030",)),
    **dict.fromkeys(("rx 7900", "rx 7900 gre", "rx 7900 xt", "rx 7900 xtx"), ("gfx1100",)),
    **dict.fromkeys(("rx 7700 xt", "rx 7800 xt"), ("gfx1101",)),
    "rx 7600": ("gfx1102",),
    **dict.fromkeys(("rx 9060", "rx 9060 xt"), ("gfx1200",)),
    **dict.fromkeys(("rx 9070", "rx 9070 gre", "rx 9070 xt"), ("gfx1201",)),
}  # fmt: skip

ARCHITECTURES: Mapping[str, tuple[str, ...]] = {
    **_NAMED,
    # Users also name a GeForce card by its number alone: 4090, 1080 ti.
    **{
        name.partition(" ")[2]: targets for name, targets in _NAMED.items() if re.fullmatch(r"[gr]tx \d{4}( ti)?", name)
    },
}
"""Targets by the marketing name of an architecture or a product, the most likely target first."""


_SOLD = {
    target.cc for targets in _NAMED.values() for target in map(Target.parse, targets) if target.vendor is NVIDIA
} - {101}  # the former number of 110


@dataclass(frozen=True, order=True)
class Gpu:
    """NVIDIA's GPUs of one compute capability.

    Parameters
    ----------
    cc : int
        Compute capability as in targets: 120 for 12.0.
    name : str
        Product, as the user named it; empty if the user named the compute capability.
    """

    cc: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name} (sm_{self.cc})" if self.name else f"sm_{self.cc}"


DEFAULT_GPUS = "sm_70,sm_75,sm_80,sm_86,sm_87,sm_89,sm_90,sm_100,sm_103,sm_110,sm_120,sm_121"
"""Default GPUs: those from Volta on with a product name."""


def parse_gpus(text: str) -> list[Gpu]:
    """Read GPUs of NVIDIA, ``sm_75..sm_121``, ``RTX 5090,H100``, ``90`` or ``all``, and sort them by compute capability.

    A range selects the compute capabilities of products in NVIDIA's table.

    Raises
    ------
    TargetError
        If a name is unknown, or a GPU is of another vendor.
    """
    found: dict[int, Gpu] = {}
    for word in filter(None, (item.strip() for item in text.split(","))):
        named = ARCHITECTURES.get(_plain(word))
        if named:
            _check_nvidia(word, Target.parse(named[0]))
            name = " ".join(word.split())
            found |= {
                cc: Gpu(cc, name) for cc in dict.fromkeys(Target.parse(target).cc for target in named) if cc in _SOLD
            }
            continue
        try:
            targets = list(NVIDIA.targets) if word == "all" else parse_targets(word)
            for target in targets:
                check_known(target)
        except TargetError as error:
            if re.match(rf"({'|'.join(kind for vendor in VENDORS.values() for kind in vendor.kinds)}|\d)", word):
                raise
            raise TargetError(f"no GPU is called {word!r}{did_you_mean(_plain(word), ARCHITECTURES)}") from error
        _check_nvidia(word, targets[0])
        several = ".." in word or word == "all"
        for target in targets:
            if not several or target.cc in _SOLD:
                found.setdefault(target.cc, Gpu(target.cc))
    if not found:
        raise TargetError("no GPU is named: write sm_75..sm_121, RTX 5090 or H100")
    return sorted(found.values())


def _check_nvidia(word: str, target: Target) -> None:
    if target.vendor is not NVIDIA:
        raise TargetError(f"{word} is no GPU of NVIDIA: only code for NVIDIA's GPUs is known here")


def _plain(word: str) -> str:
    return re.sub(r"^(nvidia|geforce)\s+|\s+(?=\s)", "", word.lower().replace("geforce ", "").replace("-", " ")).strip()
