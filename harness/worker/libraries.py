"""What of NVIDIA's a process has loaded."""

from __future__ import annotations

import os

_STEMS = ("libnvrtc", "libnvvm", "libnvJitLink", "libcudart", "libcuda.so", "libnvptxcompiler")


def cuda_libraries() -> list[str]:
    """Files of NVIDIA's compilers and runtimes that this process has loaded."""
    found: dict[str, None] = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if path and os.path.basename(path).startswith(_STEMS):
                found["/" + path] = None
    return sorted(found)
