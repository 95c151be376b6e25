"""Coverage of other processes (``tox -e coverage``): the command, pytest-xdist's processes, workers and their children.

A worker starts with an empty environment, so a variable cannot enable the measurement. A file in site-packages, which Python reads at each
start, enables it. Workers whose reads are traced are omitted: files that coverage writes would count as their inputs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_FILE = "cumatrix_coverage.pth"
_TEXT = """\
import os, sys; exec({!r}, {{"os": os, "sys": sys}})
"""
_START = """
words = " ".join(sys.orig_argv)
if any(name in words for name in ("harness/worker/", "bin/cumatrix", "sys.stdin.readline")) and "LD_PRELOAD" not in os.environ:
    import coverage
    os.environ["COVERAGE_PROCESS_CONFIG"] = {!r}
    coverage.process_startup()
    del os.environ["COVERAGE_PROCESS_CONFIG"]
"""


def requirements() -> list[str]:
    """Return the distributions that an environment needs for coverage; none if coverage does not measure."""
    coverage = sys.modules.get("coverage")
    return [f"coverage=={coverage.__version__}"] if coverage and _config() else []


def begin(python: str) -> None:
    """Measure all further processes of an interpreter if coverage measures this process."""
    if config := _config():
        _file(python).write_text(_TEXT.format(_START.format(config)))


def end(python: str) -> None:
    """Stop measuring."""
    if _config():
        _file(python).unlink(missing_ok=True)


def _config() -> str:
    """Return coverage's configuration of this process; empty if coverage does not measure."""
    coverage = sys.modules.get("coverage")
    current = coverage.Coverage.current() if coverage else None
    return current.config.serialize() if current else ""


def _file(python: str) -> Path:
    argv = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip(), _FILE)
