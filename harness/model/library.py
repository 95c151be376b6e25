"""Header libraries that a case depends on, by version."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Headers:
    """Headers that come in no wheel: those of a folder, or of a commit that was checked out.

    Parameters
    ----------
    include : tuple of Path
        Their include directories.
    told : Mapping[str, str]
        What records say of them: ``headers``, the version in the headers themselves; ``commit``; ``path`` or ``url``.
    problem : str
        Why they are not there; empty where they are.
    """

    include: tuple[Path, ...] = ()
    told: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def fingerprint(self) -> str:
        """Hash over where they lie and which they are. What the files say comes in when a compiler reads them."""
        asked = json.dumps([list(map(str, self.include)), dict(self.told)], sort_keys=True)
        return hashlib.sha256(asked.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class HeaderLibrary:
    """Headers from a wheel or a repository.

    Parameters
    ----------
    name : str
        What conditions, variants and records call it: ``cutlass``.
    packages : Mapping[str, str]
        The wheel on PyPI by the first number of the version; the key ``""`` covers every other.
    include : tuple of str
        Folders of the wheel that hold headers; the first that a release has counts.
    header : str
        Header, below the include folder, that defines the version; empty where none does.
    macros : tuple of str
        Macros in it, one for each part of the version; a single one holds all in one number.
    digits : tuple of int
        For a single one, the digits of each part but the first: ``(3, 2)`` reads 300104 as 3.1.4. Empty: the number as it is.
    releases : Mapping[str, str]
        For a library whose wheels are numbered otherwise, the wheel by version: ``{"3.1.4": "nvidia-cuda-cccl==13.1.115"}``.
    checkout : tuple of str
        Include directories of a checkout, all that it has.
    built : Mapping[str, Headers]
        By their numbers, those of no release: what ``[libraries]`` or ``--library`` named by folder or revision.
    """

    name: str
    packages: Mapping[str, str]
    include: tuple[str, ...]
    header: str = ""
    macros: tuple[str, ...] = field(default=())
    digits: tuple[int, ...] = ()
    releases: Mapping[str, str] = field(default_factory=dict)
    checkout: tuple[str, ...] = ()
    built: Mapping[str, Headers] = field(default_factory=dict)

    def problem(self, version: str) -> str | None:
        """The reason why no wheel can have this version, or None if one can."""
        if self.releases:
            return None if version in self.releases else self._not_among(version)
        if "" in self.packages or version.split(".")[0] in self.packages:
            return None
        if not self.packages:
            return f"{self.name} is in no wheel: it is named by folder or revision"
        newest = self.packages[max(self.packages, key=int)]
        return (
            f"{self.name} has no version {version}: those of its wheels begin with {' or '.join(self.packages)} "
            f"(`pip index versions {newest}` lists them)"
        )

    def _not_among(self, version: str) -> str:
        wheels = {wheel.partition("==")[2]: own for own, wheel in self.releases.items()}
        if version in wheels:
            return f"{version} is the number of a wheel: the {self.name} in it is {wheels[version]}"
        known = list(self.releases)
        near = [each for each in known if each.split(".")[:2] == version.split(".")[:2]] or known
        shown = near if len(near) < 8 else [*near[:3], "…", *near[-4:]]
        return f"{self.name} has no version {version} that is in a wheel; it has {', '.join(shown)}"

    def wheel(self, version: str) -> tuple[str, str]:
        """Name and version of the wheel that has a version."""
        if version in self.releases:
            name, _, number = self.releases[version].partition("==")
            return name, number
        return self.packages.get(version.split(".")[0]) or self.packages[""], version
