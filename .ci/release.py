#!/usr/bin/env python3
"""Whether a tag may be released: `.ci/release.py v0.1.0`. The version in the code is the tag's, the changelog has it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def problem(tag: str, root: Path = ROOT) -> str:
    """Why not, in one sentence; empty where nothing is in the way."""
    found = re.search(r'^__version__ = "([^"]+)"', (root / "harness" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    version = found[1] if found else ""
    if tag != f"v{version}":
        return f"the tag is {tag}, the version in harness/__init__.py is {version}: tag v{version}, or change it"
    if not re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    ):
        return f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'"
    return ""


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: .ci/release.py TAG")
    if message := problem(sys.argv[1]):
        sys.exit(f"release.py: {message}")
