"""Resources over all kernels of an artifact together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def largest(kernels: Sequence[Mapping[str, Any]], resource: str) -> int | None:
    """The largest number that any kernel has of a resource (``num_regs``, ``shared_bytes``, …); None where none is known."""
    known = [number for kernel in kernels if (number := kernel.get(resource)) is not None]
    return max(known, default=None)
