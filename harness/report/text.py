"""Text that came out of compilers and files, made harmless to look at."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from harness.backends import BACKENDS, library_of
from harness.environments.releases import NAMES
from harness.protocol.text import clean, one_line
from harness.toolkits.header_libraries import LIBRARIES

__all__ = ["clean", "one_line", "safe_link"]


def safe_link(address: str) -> str:
    """Return the address when a browser may follow it (http and https), and the empty text otherwise."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    plain = not re.search(r"[\s\x00-\x20\x7f<>\"'\\]", address)
    return address if plain and parts.scheme in ("http", "https") and parts.netloc else ""


_GITHUB = {
    "cupy": "cupy/cupy",
    "numba": "numba/numba",
    "numba-cuda": "NVIDIA/numba-cuda",
    "torch": "pytorch/pytorch",
    "cuda-core": "NVIDIA/cuda-python",
    "cutlass": "NVIDIA/cutlass",
    "cccl": "NVIDIA/cccl",
}
"""Repositories by library; GitHub documents the address of the form: https://docs.github.com/en/issues/tracking-your-work-with-issues/using-issues/creating-an-issue"""


def trackers() -> dict[str, dict[str, str]]:
    """The form's address by name of what is reported to: of each backend's library, and of each header library.

    Returns
    -------
    dict
        ``backends`` by backend, ``libraries`` by header library. NVRTC and nvcc have no public tracker, and are not there. By backend also
        ``searched``, the library whose releases ``cumatrix bisect`` can search, and ``languages``, the one that it looks for first.
    """
    of_backends = {name: library_of(name) for name in BACKENDS}
    return {
        "backends": {name: _form(library) for name, library in of_backends.items() if library in _GITHUB},
        "libraries": {name: _form(name) for name in LIBRARIES if name in _GITHUB},
        "searched": {name: library for name, library in of_backends.items() if library in NAMES},
        "languages": {name: BACKENDS[name].languages[0] for name in BACKENDS},
    }


def _form(library: str) -> str:
    return f"https://github.com/{_GITHUB[library]}/issues/new"
