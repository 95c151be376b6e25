"""Children of a process, with the kernel's list and without."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.worker import processes

STARTS = """
import subprocess, sys, threading
children = []
thread = threading.Thread(target=lambda: children.append(subprocess.Popen(["sleep", "1000"])))
thread.start()
thread.join()
children.append(subprocess.Popen(["sleep", "1000"]))
print(*(child.pid for child in children), flush=True)
sys.stdin.read()
for child in children:
    child.kill()
"""


@pytest.mark.parametrize("listed", [True, False])
def test_children_of_every_thread(monkeypatch: pytest.MonkeyPatch, listed: bool) -> None:
    """A kernel without a list (CONFIG_PROC_CHILDREN), as a fake: all processes are checked."""
    monkeypatch.setattr(processes, "_LISTED", listed)
    with subprocess.Popen([sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        started = sorted(map(int, process.stdout.readline().split()))
        assert sorted(processes.children_of(process.pid)) == started
        assert process.pid in processes.children_of(os.getpid())
        process.stdin.close()
    assert processes.children_of(process.pid) == []
