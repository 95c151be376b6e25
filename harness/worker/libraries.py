"""What of NVIDIA's a process has loaded."""

from __future__ import annotations

import os
from collections.abc import Iterable

_STEMS = ("libnvrtc", "libnvvm", "libnvJitLink", "libcudart", "libcuda.so", "libnvptxcompiler")


def cuda_libraries(paths: Iterable[str]) -> list[str]:
    """Files of NVIDIA's compilers and runtimes among those that are mapped into a process (`harness.protocol.reads.mapped`)."""
    return sorted(path for path in paths if os.path.basename(path).startswith(_STEMS))
