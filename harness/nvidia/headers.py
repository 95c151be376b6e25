"""Versions of the headers, read from the headers themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from harness.protocol.backend import Setup

_PLACES = (
    ("cudart", "cuda_runtime_api.h", "CUDART_VERSION", 1000, 10),
    ("cccl", "cuda/std/__cccl/version.h", "CCCL_VERSION", 1000000, 1000),
    ("cub", "cub/version.cuh", "CUB_VERSION", 100000, 100),
)


def version(setup: Setup) -> dict[str, str]:
    """``{"cudart": "12.4", "cccl": "2.3"}``: what the toolkit's headers define."""
    return version_in(setup.include)


def version_in(folders: Iterable[str]) -> dict[str, str]:
    """The same of the headers that are found first in these include directories."""
    folders, found = list(folders), {}
    for name, file, macro, major, minor in _PLACES:
        for folder in folders:
            path = Path(folder, file)
            if path.is_file():
                match = re.search(rf"#\s*define\s+{macro}\s+(\d+)", path.read_text("utf-8", "replace"))
                if match:
                    number = int(match[1])
                    found[name] = f"{number // major}.{number % major // minor}"
                break
    return found
