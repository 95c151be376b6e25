"""Hints for users without consequences: an outdated spelling, a cache without space."""

from __future__ import annotations

import sys
from functools import cache

from harness.diagnostics import no_command, one_line


@cache
def hint(text: str) -> None:
    """Tell users on stderr, once in a process."""
    print(no_command(f"cumatrix: {one_line(text, 2000)}"), file=sys.stderr)
