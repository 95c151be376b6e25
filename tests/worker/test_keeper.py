"""The parent process of a fork server: it removes the fork server's folders, however the fork server ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# A scheduler, which starts a keeper with a fork server.
STARTER = """
import subprocess, sys
subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True).wait()
"""
SERVER = """
import os, time
from harness.worker.processes import keep
keep()
from harness.protocol import process_output as own_folder
folder = own_folder.helper_folder()
(folder / "header.pch").write_bytes(bytes(1 << 20))
print(os.getpid(), os.getppid(), folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("killed", ["fork server", "keeper is asked to end", "run"])
def test_its_folders_go_however_it_ends(killed: str, tmp_path: Path) -> None:
    (tmp_path / "fork-server-1-others").mkdir()
    (tmp_path / "home").mkdir()
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, SERVER], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert starter.stdout
    server, keeper, folder = starter.stdout.readline().split()
    assert (Path(folder) / "header.pch").is_file()
    assert Path(folder).parent == tmp_path
    if killed == "fork server":
        os.kill(int(server), signal.SIGKILL)
    elif killed == "run":
        starter.kill()
    else:
        os.kill(int(keeper), signal.SIGTERM)
    with starter.stdout as printed:
        printed.read()  # until no process is left that could print
    starter.wait(60)
    end = time.monotonic() + 60
    while Path(f"/proc/{keeper}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{server}").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fork-server-1-others", "home"]


WAITING = """
import os, time
from harness.worker.processes import keep
keep()
print(os.getpid(), os.getppid(), flush=True)
time.sleep(600)
"""
# The second request arrives during the reply to the first, at a place where Python holds a lock.
TWICE = """
import os, signal, tempfile

def asked_again():
    os.kill(os.getpid(), signal.SIGTERM)
    return found()

found, tempfile._get_default_tempdir = tempfile._get_default_tempdir, asked_again
"""


@pytest.mark.parametrize("ended", ["keeper", "server"])
def test_a_second_request_to_end_does_not_hold_it_up(ended: str, tmp_path: Path) -> None:
    """Each thread of a killed scheduler sends one; a keeper must not wait for itself."""
    running = subprocess.Popen(
        [sys.executable, "-c", TWICE + WAITING], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )  # fmt: skip
    assert running.stdout
    server, keeper = map(int, running.stdout.readline().split())
    assert keeper == running.pid
    os.kill(keeper if ended == "keeper" else server, signal.SIGTERM if ended == "keeper" else signal.SIGKILL)
    try:
        assert running.wait(60) == (0 if ended == "keeper" else -signal.SIGKILL)
    finally:
        running.kill()
        running.stdout.close()
