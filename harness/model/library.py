"""Header libraries that a case depends on, by version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class HeaderLibrary:
    """Headers that come in a wheel.

    Parameters
    ----------
    name : str
        What conditions, variants and records call it: ``cutlass``.
    packages : Mapping[str, str]
        The wheel on PyPI by the first number of the version; the key ``""`` stands for every other.
    include : tuple of str
        Folders of the wheel that hold headers; the first that a release has counts.
    header : str
        Header, below the include folder, that defines the version; empty where none does.
    macros : tuple of str
        Macros in it, one for each part of the version; a single one holds all in one number.
    """

    name: str
    packages: Mapping[str, str]
    include: tuple[str, ...]
    header: str = ""
    macros: tuple[str, ...] = field(default=())

    def problem(self, version: str) -> str | None:
        """Why no wheel can have this version, or None where one may."""
        if "" in self.packages or version.split(".")[0] in self.packages:
            return None
        newest = self.packages[max(self.packages, key=int)]
        return (
            f"{self.name} has no version {version}: those of its wheels begin with {' or '.join(self.packages)} "
            f"(`pip index versions {newest}` lists them)"
        )

    def package(self, version: str) -> str:
        """Name of the wheel that has a version."""
        return self.packages.get(version.split(".")[0]) or self.packages[""]
