"""Parts of CUDA beside the compilers, which are installed with a toolkit where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.errors import PartUnavailable, UsageError, did_you_mean
from harness.tables import read_table


@dataclass(frozen=True, kw_only=True)
class Component:
    """A library or an interface of CUDA that comes in a wheel of its own.

    Parameters
    ----------
    name : str
        What users call it: ``cufft``.
    headers : tuple of str
        Headers by which programs ask for it, as they are included, or patterns of them; none for a tool.
    wheels : Mapping[str, tuple of str]
        Full name of the wheel on PyPI and its exact version, by CUDA release; not all releases have one.
    """

    name: str
    headers: tuple[str, ...]
    wheels: Mapping[str, tuple[str, str]]


def _read() -> dict[str, Component]:
    table = read_table("toolkits/parts.toml")["part"]
    versions = read_table("toolkits/part_versions.toml")
    releases = [name for name in versions if "." in name]
    parts = {}
    for name, item in table.items():
        wheels = {}
        for release in releases:
            major = release.split(".")[0]
            apart = item.get("apart", False)
            version = versions[major if apart else release].get(name)
            if version:
                suffix = f"-cu{major}" if apart or int(major) < 13 else ""
                wheels[release] = (f"nvidia-{item['wheel']}{suffix}", version)
        parts[name] = Component(name=name, headers=tuple(item["headers"]), wheels=wheels)
    return parts


PARTS: Mapping[str, Component] = _read()
"""Every part by name."""


def parse_parts(text: str, releases: Iterable[str]) -> list[str]:
    """Read ``cufft,curand``, or ``all`` for what every one of these releases has.

    Raises
    ------
    UsageError
        On a part that is not known.
    PartUnavailable
        On one that is not on PyPI for one of the releases.
    """
    names = list(dict.fromkeys(filter(None, (item.strip() for item in text.split(",")))))
    if not names:
        raise UsageError(f"--with names no part; known are {', '.join(PARTS)}, and all")
    if names == ["all"]:
        return [name for name, part in PARTS.items() if all(release in part.wheels for release in releases)]
    for name in names:
        if name not in PARTS:
            raise UsageError(f"unknown part {name!r} of CUDA{did_you_mean(name, [*PARTS, 'all'])}")
        for release in releases:
            if release not in PARTS[name].wheels:
                raise PartUnavailable(
                    f"{name} is not on PyPI for CUDA {release}; it is for {', '.join(PARTS[name].wheels)}"
                )
    return names


def wheels_of(parts: Iterable[str], release: str) -> dict[str, str]:
    """Exact version by full name of the wheels of some parts."""
    return dict(PARTS[name].wheels[release] for name in parts)


def parts_among(packages: Mapping[str, str], release: str) -> list[str]:
    """Parts that a toolkit made of these wheels has."""
    return [name for name, part in PARTS.items() if part.wheels.get(release, ("",))[0] in packages]
