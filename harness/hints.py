"""What users should know, and nothing depends on: a spelling that will go, a cache without room."""

from __future__ import annotations

import sys
from functools import cache

from harness.diagnostics import clean


@cache
def hint(text: str) -> None:
    """Tell users on stderr, once in a process."""
    print(f"cumatrix: {clean(text)}", file=sys.stderr)
