"""PTX: the header's target and version, and the kernels' names (https://docs.nvidia.com/cuda/parallel-thread-execution/)."""

from __future__ import annotations

import re

from harness.model import KernelResources, Target

_TARGET = re.compile(r"^\s*\.target\s+sm_(\w+)", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")


def read_ptx(text: str) -> tuple[Target, tuple[KernelResources, ...]]:
    """Target, as the virtual architecture, and kernels of a PTX text.

    Raises
    ------
    ValueError
        When it names no target.
    """
    found = _TARGET.search(text)
    if not found:
        raise ValueError("not PTX: it has no .target")
    names = dict.fromkeys(_ENTRY.findall(text))
    return Target.parse(f"compute_{found[1]}"), tuple(KernelResources(name=name) for name in names)
