"""Steps of the nightly workflow, run as its job does."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "nightly.py"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def program(folder: Path, name: str, text: str) -> None:
    """Write a Python program on the PATH of the steps."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
