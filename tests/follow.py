"""Programs in real processes, and the files that the preloaded library reports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from harness.engine.reads import Reads, reads_of
from harness.protocol.reads import VARIABLE, unique


class Follow:
    """Runner of programs that returns the files that they read."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder, self.records = library, folder, folder / "records"

    def __call__(self, *argv: str | Path, **variables: str) -> Reads:
        # A file written within the last 20 ms counts as changed, because the clock of its file system may be coarse.
        while any(time.time_ns() - path.lstat().st_ctime_ns < 30_000_000 for path in self.folder.iterdir()):
            pass
        self.records.write_bytes(b"X 0 0 0 0 0 the program itself\0")
        env = {**os.environ, "LD_PRELOAD": str(self.library), VARIABLE: str(self.records), **variables}
        self.done = subprocess.run(
            list(map(str, argv)), env=env, cwd=self.folder, capture_output=True, text=True, timeout=800
        )
        return reads_of(unique(self.records.read_bytes()), [str(self.library.parent)])


def python(code: str) -> list[str]:
    """Return the arguments of a Python that runs code."""
    return [sys.executable, "-I", "-c", code]
