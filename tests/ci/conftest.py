"""An empty folder for the steps of the nightly workflow, with fake programs."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .steps import SCRIPT, Run


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path: Path, tools: Path) -> Run:
    """Run a step in an empty folder, as a job does."""
    work = tmp_path / "work"
    work.mkdir()

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tools), sysconfig.get_path("scripts"), os.environ["PATH"]])
        env = {**os.environ, "PATH": path, "GITHUB_OUTPUT": str(tmp_path / "output"), "ASKED": str(tmp_path / "asked")}
        return subprocess.run(
            [sys.executable, str(SCRIPT), *argv], cwd=work, env=env, capture_output=True, text=True, timeout=800
        )

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"
