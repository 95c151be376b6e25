"""What users should know, and nothing depends on: a spelling that will go, a cache without room."""

from __future__ import annotations

import sys
from functools import cache

from harness.diagnostics import no_command, one_line


@cache
def hint(text: str) -> None:
    """Tell users on stderr, once in a process."""
    print(no_command(f"cumatrix: {one_line(text, 2000)}"), file=sys.stderr)
