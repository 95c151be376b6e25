"""Peak memory of a function."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def peak_of(call: Callable[[], object]) -> int:
    """Return the peak number of bytes that Python used during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
