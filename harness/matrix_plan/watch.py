"""Releases that the index has and cumatrix does not know yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from harness.answers.table import known_releases
from harness.environments.index import Index
from harness.environments.releases import published
from harness.libraries import LIBRARIES, with_releases

_WHEELS = {"cuda": "nvidia-cuda-nvrtc", "cutlass": "nvidia-cutlass"}
"""Wheels by release of CUDA and of header libraries, which are pinned by hash before they can be compiled with."""


@dataclass(frozen=True, kw_only=True)
class New:
    """A release.

    Parameters
    ----------
    name : str
        Of the library, or ``cuda``.
    version : str
        Its version.
    day : str
        Day of its upload; empty where the index does not have it.
    """

    name: str
    version: str
    day: str = ""

    @property
    def pinned(self) -> bool:
        """Return whether it compiles only after its wheels are pinned; libraries under test need no pin."""
        return self.name in _WHEELS

    def __str__(self) -> str:
        day = f" of {self.day}" if self.day else ""
        label = LIBRARIES[self.name].label or self.name if self.name in LIBRARIES else self.name.upper()
        how = "; .ci/pin_wheels.py pins its wheels" if self.pinned else ""
        return f"new on the index: {label} {self.version}{day}{how}"


def new_releases(index: Index) -> list[New]:
    """Final releases newer than the newest known one, by library, then oldest first.

    Raises
    ------
    PartUnavailable
        When the index cannot be asked.
    """
    known = {name: max(map(Version, releases)) for name, releases in known_releases().items() if releases}
    found = []
    for name in with_releases():
        for release in published(name, index):
            version = release.version
            final = not (version.is_prerelease or version.local or release.yanked)
            if final and name in known and version > known[name]:
                found.append(New(name=name, version=str(version), day=release.day))
    for name, wheel in _WHEELS.items():
        newer = {version for version in _versions(wheel, index) if version > known[name]}
        found += [New(name=name, version=str(version)) for version in sorted(newer)]
    return found


def _versions(distribution: str, index: Index) -> Iterator[Version]:
    """Versions of a wheel as releases spell them: of CUDA ``13.5``, of a header library ``4.2.1``."""
    numbers = 2 if distribution == _WHEELS["cuda"] else 3
    for file in index.files(distribution):
        try:
            version = parse_wheel_filename(file.name)[1]
        except InvalidWheelFilename:
            continue
        if not version.is_prerelease and not file.yanked:
            yield Version(".".join(map(str, version.release[:numbers])))
