"""Cells without a device find no driver, also on a machine with one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.toolkits import Installed


@pytest.mark.compilers
@pytest.mark.parametrize(
    "name", ["libcuda.so", "libcuda.so.1"]
)  # library that nvJitLink of CUDA 12.1 to 12.6 opens, and the one that later releases open
def test_cells_find_no_driver(name: str, workers: Any, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    """With the variables of a fork server, the loader does not find a fake of the machine's driver."""
    source, driver = tmp_path / "driver.c", tmp_path / name
    source.write_text("int cuInit(unsigned flags) { return 304; }\n")
    subprocess.run(["cc", "-shared", "-o", driver, source], check=True)
    fork_server = workers.get("", "nvrtc", toolkit("12.4"))
    assert not fork_server.ready.status
    variables = dict(
        item.split("=", 1)
        for item in Path(f"/proc/{fork_server.process.pid}/environ").read_text().split("\0")
        if "=" in item
    )
    hidden = variables.get("LD_LIBRARY_PATH", "")

    def load(path: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "LD_LIBRARY_PATH": path}
        return subprocess.run(
            [sys.executable, "-c", f"import ctypes; ctypes.CDLL('{name}').cuInit"],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    assert load(str(tmp_path)).returncode == 0
    assert f"{name}: file too short" in load(f"{hidden}:{tmp_path}").stderr
