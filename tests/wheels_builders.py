"""Published wheels without an index: packages whose releases have the given device code."""

from __future__ import annotations

from harness.model import Target
from harness.wheels.entries import LINKED, Entry, Kind, Library, Unit
from harness.wheels.published import Package, WheelRelease


def library(name: str, *targets: str) -> Library:
    """Return a library with one fatbin."""
    entries = [
        Entry(Kind.SASS if target.startswith("sm_") else Kind.PTX, Target.parse(target), (8, 7) if "compute" in target else (0, 0), 0, 0)
        for target in targets
    ]  # fmt: skip
    return Library(name, 1, (Unit(tuple(entries), LINKED),))


def package(name: str, label: str = "", **releases: tuple[Library, ...]) -> Package:
    """Write a package: libraries by release, as ``v1_0=(library(…),)``."""
    found = [
        WheelRelease(
            version=key[1:].replace("_", "."),
            file=f"{name}.whl",
            sha256="0" * 64,
            size=1,
            uploaded="2026-11-01",
            libraries=of,
        )
        for key, of in releases.items()
    ]
    return Package(name=name, label=label or name, releases=tuple(found), source="" if found else "9.0")


PACKAGES = (
    package(
        "vllm",
        v0_1_0=(library("a.so", "sm_80", "sm_90"), library("b.so", "sm_90a")),
        v0_2_0=(library("a.so", "sm_80", "sm_90", "sm_120"), library("b.so", "sm_90a")),
    ),
    package("cupy-cuda12x", "cupy", v14_0_0=(library("c.so", "sm_70", "compute_90"),)),
    package("cupy-cuda13x", "cupy", v14_0_0=(library("c.so", "sm_75"),)),
    package("flash-attn"),
    package("triton", v3_0=()),
)
