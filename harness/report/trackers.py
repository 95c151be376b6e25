"""Upstream trackers: the new-issue form of each library whose tracker takes a title and a text in its address."""

from __future__ import annotations

from harness.backends import BACKENDS, library_of
from harness.environments.releases import NAMES
from harness.toolkits.libraries import LIBRARIES

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
