"""The memory of a cell is that of all of its processes together."""

from __future__ import annotations

import subprocess
import sys

from harness.worker.processes import Peak

SIZE = 64 << 20
TAKES = f"room = bytearray({SIZE})\nfor place in range(0, len(room), 4096): room[place] = 1\n"
LEAF = TAKES + "print('ready', flush=True)\nimport sys\nsys.stdin.read()\n"
FAMILY = f"""{TAKES}
import subprocess, sys, threading
def start():
    child = subprocess.Popen([sys.executable, "-c", {LEAF!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    children.append(child)
children = []
start()
thread = threading.Thread(target=start)
thread.start()
thread.join()
print('ready', flush=True)
sys.stdin.read()
for child in children:
    child.communicate()
"""


def test_processes_that_live_side_by_side_are_added_up() -> None:
    """A child that a thread started counts, too; the kernel lists it with the thread."""
    with subprocess.Popen([sys.executable, "-c", FAMILY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        peak = Peak(process.pid)
        while not peak.bytes:
            peak.look()
        process.stdin.close()
    assert 3 * SIZE < peak.bytes < 6 * SIZE


def test_one_process_is_the_kernels_to_count() -> None:
    with subprocess.Popen([sys.executable, "-c", LEAF], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        peak = Peak(process.pid)
        for _ in range(3):
            peak._next = 0.0
            peak.look()
        process.stdin.close()
    assert peak.bytes == 0


def test_a_process_that_has_ended_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    peak = Peak(process.pid)
    peak.look()
    assert peak.bytes == 0
