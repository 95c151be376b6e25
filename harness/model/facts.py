"""Facts: the values of the names that conditions may use (`harness.model.condition.NAMES`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from packaging.version import InvalidVersion

from harness.model.condition import NAMES, Version
from harness.model.target import Target


def facts_of(
    *,
    backend: str,
    library: str,
    release: str,
    headers: str,
    target: Target,
    device: bool,
    packages: Mapping[str, str],
    libraries: Mapping[str, str],
    labels: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Facts of a cell, asked for or told by its record.

    Parameters
    ----------
    backend, library : str
        Name of the backend and version of the library behind it, empty without one.
    release, headers : str
        The CUDA release, and the one that the headers come from.
    target : Target
        What is compiled for.
    device : bool
        Whether a real device was asked for.
    packages, libraries : Mapping[str, str]
        Versions of distributions, of which conditions know some, and of header libraries.
    labels : Mapping, optional
        The case's own parameters.

    Returns
    -------
    dict
        By name; a version that is not there, or is none by PEP 440, is None.
    """
    named = {name.replace("-", "_"): version for name, version in packages.items()}
    return {
        **{name: _version(version) for name, version in named.items() if NAMES.get(name) is Version},
        "backend": backend,
        "target": str(target),
        "virtual": target.virtual,
        "device": device,
        "wheels": library.endswith("+wheels"),
        "suffix": target.suffix,
        "cc": Version(target.capability),
        "toolkit": _version(release),
        "headers": _version(headers),
        "library": _version(library),
        **(labels or {}),
        **{name: _version(version) for name, version in libraries.items()},
    }


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None
