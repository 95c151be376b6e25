"""A control group limits the memory of all processes of a cell, if this user can create one, and is removed afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import Place, lasting, make_case, run_all

from harness.engine import fork_server
from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.process_locks import TEMPORARY
from harness.protocol.messages import Limits
from harness.toolkits import Installed

from .programs import ENTRIES, KERNEL
from .runs import RELEASE

ABOVE = fork_server.parent()
pytestmark = [pytest.mark.compilers, pytest.mark.skipif(ABOVE.path is None, reason=ABOVE.problem)]

MEMORY = 700 << 20
# Each process stays within the limit; all together exceed it.
EATS_TOGETHER = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        kept = bytearray(b"x") * (150 << 20)
        time.sleep(1000)
time.sleep(1000)
"""
# The cell continues after the end of a process: the kernel ends one process, not the cell.
GOES_ON = """
import os, time
if os.fork() == 0:
    for _ in range(8):
        if os.fork() == 0:
            kept = bytearray(b"x") * (150 << 20)
            time.sleep(1000)
    os.wait()
os.wait()
"""


def groups() -> list[str]:
    assert ABOVE.path
    return [path.name for path in ABOVE.path.iterdir() if path.name.startswith(TEMPORARY)]


@pytest.fixture(scope="module")
def place(places: Callable[[str], Place], toolkit: Callable[[str], Installed]) -> Place:
    toolkit(RELEASE)
    return places("numba==0.59.1")


@pytest.mark.slow
def test_all_of_a_cell_together(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cell(name: str, text: str) -> Cell:
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.py").write_text(text)
        return place.cell(make_case(tmp_path / name / "kernel.py", name, entries=ENTRIES), "numba", RELEASE, "sm_80")

    made: list[Path] = []
    real = fork_server.group_for

    def group_for(memory: int) -> fork_server.HeldGroup | None:
        group = real(memory)
        assert group
        made.append(group.path)
        return group

    monkeypatch.setattr(fork_server, "group_for", group_for)
    innocent = [cell(f"innocent-{number}", KERNEL.format(number)) for number in range(3)]
    hungry = [cell("eats-together", EATS_TOGETHER), cell("goes-on", GOES_ON)]
    context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=300, memory=MEMORY)))
    alone = run_all(innocent, context)
    mixed: Any = run_all([innocent[0], hungry[0], innocent[1], hungry[1], innocent[2]], context)
    for each in hungry:
        record = mixed[each.id]
        assert record["status"] == "crashed", record
        assert "together took more memory" in record["reason"]
    for each in innocent:
        assert alone[each.id]["status"] == "built"
        assert lasting(mixed[each.id]) == lasting(alone[each.id])
    assert made
    assert not any(path.exists() for path in made)


def test_what_a_killed_run_leaves_is_removed() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        group = fork_server.group_for(MEMORY)
        os.write(write, group.path.name.encode() if group else b"none")
        signal.pause()
        os._exit(0)
    name = os.read(read, 100).decode()
    assert name in groups()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert fork_server._look(Path("/proc/self")) == ABOVE
    assert name not in groups()
