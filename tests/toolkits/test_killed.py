"""An installation that is killed, by the real uv: nothing of it goes on, and nothing stays."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any


def _processes(folder: Path) -> list[int]:
    """Processes whose command line or environment names a folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if str(folder).encode() in Path("/proc", pid, "environ").read_bytes():
                found.append(int(pid))
        except OSError:
            continue
    return found


def test_a_killed_installation(cumatrix: Any, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as index:  # one that never answers
        env = {**os.environ, "CUMATRIX_HOME": str(home), "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_DEFAULT_INDEX": f"http://127.0.0.1:{index.getsockname()[1]}/simple"}  # fmt: skip
        argv = cumatrix.argv("toolkits", "install", "12.4")
        process = subprocess.Popen(argv, env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        asked, _ = index.accept()  # uv is at work
        assert len(_processes(home)) > 1
        process.send_signal(signal.SIGKILL)
        process.communicate()
        while _processes(home):  # pytest's limit says where it waited
            time.sleep(0.05)
        asked.close()
    assert list((home / "toolkits").glob(".new-*"))
    done = cumatrix(*argv[1:], env=env)
    assert done.returncode == 4
    assert "cannot be installed from PyPI" in done.stderr
    assert [path.name for path in (home / "toolkits").iterdir() if path.is_dir()] == []
