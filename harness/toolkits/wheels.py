"""The wheels that cumatrix knows: the SHA-256 of each is pinned in ``wheels.toml``, which ``.ci/pin_wheels.py`` writes."""

from __future__ import annotations

import platform
from functools import cache

from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.tables import read_table


@cache
def _pins() -> dict[str, dict[Version, dict[str, list[str]]]]:
    table = read_table("toolkits/wheels.toml")
    return {
        canonicalize_name(name): {Version(version): wheels for version, wheels in versions.items()}
        for name, versions in table.items()
    }


def pinned(name: str, version: str) -> frozenset[str] | None:
    """SHA-256 (hexadecimal) of the wheels of a version that this machine may take; None for a version that is not pinned at all.

    Parameters
    ----------
    name : str
        Full name of the wheel on PyPI: ``nvidia-cutlass``.
    version : str
        Its version; 3.5.1 is the same as 3.5.1.0.
    """
    wheels = _pins().get(canonicalize_name(name), {}).get(Version(version))
    if wheels is None:
        return None
    return frozenset([*wheels.get(platform.machine(), ()), *wheels.get("any", ())])


def pinned_versions(name: str) -> list[str]:
    """Every version of a wheel that is pinned, oldest first, pre-releases among them."""
    return list(map(str, sorted(_pins().get(canonicalize_name(name), {}))))
