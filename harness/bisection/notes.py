"""Addresses of release notes."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

_TAGS = {
    "cupy": "https://github.com/cupy/cupy/releases/tag/v{}",
    "numba": "https://github.com/numba/numba/releases/tag/{}",
    "numba-cuda": "https://github.com/NVIDIA/numba-cuda/releases/tag/v{}",
    "torch": "https://github.com/pytorch/pytorch/releases/tag/v{}",
    "cutlass": "https://github.com/NVIDIA/cutlass/releases/tag/v{}",
}
"""Pages by the tag that each project gives its releases."""
_CUDA = "https://docs.nvidia.com/cuda/archive/{}.0/cuda-toolkit-release-notes/index.html"


def release_notes(over: str, version: str) -> str:
    """Address of the release notes; empty where none is known.

    Parameters
    ----------
    over : str
        What is searched: ``numba``, ``cuda``, ``headers``, …
    version : str
        The release.
    """
    if over in ("cuda", "headers"):
        return _CUDA.format(version)
    try:
        public = Version(version).public
    except InvalidVersion:
        return ""
    return _TAGS[over].format(public) if over in _TAGS else ""
