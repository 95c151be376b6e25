"""What to write in the place of a spelling that will go."""

from __future__ import annotations

import sys
from functools import cache


@cache
def hint(text: str) -> None:
    """Tell users on stderr, once in a process, what to write from now on."""
    print(f"cumatrix: {text}", file=sys.stderr)
