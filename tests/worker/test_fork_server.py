"""Checks of a fork server before its first cell."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from harness.protocol import process_output
from harness.protocol.backend import Unavailable
from harness.protocol.messages import SLOT, Build, Ready, Setup
from harness.protocol.process_output import Printed
from harness.protocol.reads import Follower
from harness.worker import child as bytecode
from harness.worker import fork_server, sandbox
from harness.worker.fork_server import _Gate, _hold_builds, _Pulse, _watch
from harness.worker.processes import Cgroup, Peak


@pytest.mark.skipif(not sandbox.broker_available(), reason="this kernel has nothing that a child would hand over")
def test_a_child_that_is_stopped_at_its_start_is_ended_at_its_deadline(tmp_path: Path) -> None:
    decides = sandbox.Broker([str(tmp_path)])
    (reader, writer), (ours, theirs) = os.pipe(), socket.socketpair()
    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    ends = _watch(
        child, reader, ours, time.monotonic() + 0.2, Printed(), Peak(child), Follower(), _Pulse(ours), decides, Cgroup("")
    )  # fmt: skip
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    decides.close()
    for each in (reader, writer):
        os.close(each)
    for end in (ours, theirs):
        end.close()
    assert ends


@pytest.mark.parametrize(("again", "code"), [(False, 0), (True, 9)])
def test_a_cell_waits_for_a_slot_of_its_device_without_its_deadline(
    again: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(fork_server, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    (reader, writer), (ours, theirs) = os.pipe(), socket.socketpair()
    gate = _Gate(ours)
    child = os.fork()
    if child == 0:
        os.write(gate.theirs.fileno(), b"?")
        os.read(gate.theirs.fileno(), 1)
        if again:  # a cell gets one slot: any further message uses its time
            os.write(gate.theirs.fileno(), b"?")
            signal.pause()
        os._exit(0)

    def schedule() -> None:
        assert theirs.recv(100) == SLOT
        clock[0] += 500.0
        theirs.send(SLOT)
        if again:
            while not gate.waited:
                os.sched_yield()
            clock[0] += 60.0

    scheduler = threading.Thread(target=schedule)
    scheduler.start()
    ends = _watch(
        child, reader, ours, 1030.0, Printed(), Peak(child), Follower(), _Pulse(ours), None, Cgroup(""), gate
    )  # fmt: skip
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    scheduler.join()
    gate.close()
    for each in (reader, writer):
        os.close(each)
    for end in (ours, theirs):
        end.close()
    assert (ends, os.WTERMSIG(status), gate.waited) == (again, code, 500.0)


def test_a_child_of_the_fork_server_that_is_stopped_goes_on(tmp_path: Path) -> None:
    def stops(folder: Path) -> dict[str, str]:
        os.kill(os.getpid(), signal.SIGSTOP)
        return {"folder": str(folder)}

    assert process_output.answer_of_helper(tmp_path, stops, lambda: None) == {"folder": str(tmp_path)}


def test_a_module_that_is_compiled_for_ever_does_not_hold_up_the_next_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bytecode, "_SECONDS", 0.2)
    os.mkfifo(tmp_path / "module.py")
    bytecode.compile_all([str(tmp_path / "module.py")])
    assert not list(tmp_path.glob("__pycache__/*"))


@pytest.mark.parametrize(
    ("loaded", "held"), [("lib", True), ("lib/cu13", True), ("lib2", False), ("elsewhere/lib", False)]
)
def test_a_library_comes_from_where_it_was_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, loaded: str, held: bool
) -> None:
    """cuda.core gives its place to a package below its own folder."""
    module = ModuleType("cumatrix_test_library")
    module.__file__ = str(tmp_path / loaded / "__init__.py")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    build = Build(module=module.__name__, folder=str(tmp_path / "lib"), version="1.0")
    setup = Setup(tmp_path, "12.9", "12.9", [], tmp_path, builds={"library": build})
    if held:
        _hold_builds(setup, Ready())
    else:
        with pytest.raises(Unavailable, match="library was to be imported from"):
            _hold_builds(setup, Ready())
