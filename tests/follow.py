"""Programs in real processes, and what the library that follows reads tells of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.engine.reads import Reads, reads_of
from harness.protocol.reads import VARIABLE, unique


class Follow:
    """Runs a program and tells what it read."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder, self.records = library, folder, folder / "records"

    def __call__(self, *argv: str | Path, **variables: str) -> Reads:
        self.records.write_bytes(b"X 0 0 0 0 0 the program itself\0")
        env = {**os.environ, "LD_PRELOAD": str(self.library), VARIABLE: str(self.records), **variables}
        self.done = subprocess.run(
            list(map(str, argv)), env=env, cwd=self.folder, capture_output=True, text=True, timeout=800
        )
        return reads_of(unique(self.records.read_bytes()), [str(self.library.parent)])


def python(code: str) -> list[str]:
    """The words of a Python that runs some code."""
    return [sys.executable, "-I", "-c", code]
