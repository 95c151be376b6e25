"""A fork server that is killed or stopped costs only the running cell; the next cells get another fork server, and nothing of the first is left."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from cells import Place, make_case, make_order, run_all
from traces import processes

from harness.engine import fork_server
from harness.engine.context import RunContext, RunRequest
from harness.engine.executor import Run, ThreadExecutor
from harness.engine.fork_server import ForkServer, ForkServerDied
from harness.model import Cell
from harness.protocol.messages import Limits, Setup
from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

RELEASE = "12.4"
# Opening a pipe without a writer blocks until the deadline, which is far away.
WAITS = '#include "never"\n__global__ void k() {}'
PLAIN = "__global__ void k(int *a) { *a = 1; }"


KERNEL = "from numba import cuda\n@cuda.jit\ndef scale(a):\n    a[0] *= 2\n"
LEAVES_A_DAEMON = """
import os, time
ready, told = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(told, b"x")
        os.execv("/bin/sh", [{!r}, "-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"])
    os._exit(0)
os.read(ready, 1)
open(os.environ["TMPDIR"] + "/ready", "w").close()
while True: time.sleep(1)
"""


@dataclass(frozen=True)
class Program:
    """Programs for a backend: one that creates a file of this name in its folder and waits, and one that builds."""

    backend: str
    requirement: str
    file: str
    waits: str
    plain: str
    ready: str


NVRTC = Program("nvrtc", "", "kernel.cu", WAITS, PLAIN, "stages")


def cell(place: Place, folder: Path, program: Program, text: str) -> Cell:
    folder.mkdir()
    (folder / program.file).write_text(text)
    entries = {"scale": "void(float32[:])"} if program.file.endswith(".py") else None
    return place.cell(make_case(folder / program.file, folder.name, entries=entries), program.backend, RELEASE, "sm_80")


def below(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(what: Callable[[], Any]) -> Any:
    """Wait until a function returns a true value; pytest-timeout ends the test if it never does."""
    while not (found := what()):
        time.sleep(0.02)
    return found


@pytest.fixture
def lost(
    places: Callable[[str], Place], toolkit: Callable[[str], Installed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[dict[str, Any]]]:
    """Run a cell that waits and one that does not, and act on the fork server while the first runs."""
    toolkit(RELEASE)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    started: list[ForkServer] = []
    original = ForkServer.__init__

    def note(self: ForkServer, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords)
        started.append(self)

    monkeypatch.setattr(ForkServer, "__init__", note)

    def lost(program: Program, number: int, of_keeper: bool = False) -> list[dict[str, Any]]:
        place = places(program.requirement)
        waits = cell(place, tmp_path / "waits", program, program.waits)
        os.mkfifo(tmp_path / "waits" / "never")
        cells = [waits, cell(place, tmp_path / "plain", program, program.plain)]
        records: dict[str, Any] = {}
        context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=100_000)))
        thread = threading.Thread(target=lambda: records.update(run_all(cells, context)), daemon=True)
        thread.start()
        wait_for(lambda: list(temporary.glob(f"cumatrix-*/cell-*/{program.ready}")))
        keeper = started[0].process.pid
        (server,) = below(keeper)
        everything = [keeper, server, *below(server)]
        os.kill(keeper if of_keeper else server, number)
        thread.join()
        wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everything))
        assert list(temporary.iterdir()) == []
        assert len(started) == 2
        return [records[each.id] for each in cells]

    return lost


@pytest.mark.parametrize(
    ("number", "of_keeper", "words"),
    [
        (signal.SIGKILL, False, "ended by signal 9"),
        (signal.SIGSEGV, False, "ended by signal 11"),
        (signal.SIGSTOP, False, "stopped"),
        (signal.SIGKILL, True, "ended by signal 9"),
    ],
    ids=["killed", "crashed", "stopped", "its keeper killed"],
)
def test_a_lost_worker_costs_one_cell(
    number: int, of_keeper: bool, words: str, lost: Callable[..., list[dict[str, Any]]]
) -> None:
    first, second = lost(NVRTC, number, of_keeper)
    assert (first["status"], first["stage"], first["verdict"]) == ("crashed", "compile", "fail")
    assert first["reason"].startswith("the worker process was lost while this cell ran: ")
    assert words in first["reason"]
    assert first["diagnostics"][0]["message"] == first["reason"]
    assert second["status"] == "built"


def test_a_daemon_does_not_outlive_its_worker(lost: Callable[..., list[dict[str, Any]]]) -> None:
    mark = f"outlives-{os.getpid()}-{uuid4().hex}"
    program = Program("numba", "numba==0.59.1", "kernel.py", LEAVES_A_DAEMON.format(mark) + KERNEL, KERNEL, "ready")
    first, second = lost(program, signal.SIGKILL)
    assert processes(mark) == []
    assert (first["status"], second["status"]) == ("crashed", "built")


def test_one_that_was_lost_between_cells_is_replaced(
    places: Callable[[str], Place], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """No cell gets the blame."""
    toolkit(RELEASE)
    place = places("")
    context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=600)))
    with Run(context) as run:
        assert run.result(cell(place, tmp_path / "one", NVRTC, PLAIN)).outcome.status == "built"
        assert isinstance(run.executor, ThreadExecutor)
        (server,) = run.executor.runners[0].fork_servers.running.values()
        (worker,) = below(server.process.pid)
        os.kill(worker, signal.SIGKILL)
        server.process.wait()
        assert run.result(cell(place, tmp_path / "two", NVRTC, PLAIN)).outcome.status == "built"


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("number", "of_keeper"), [(signal.SIGKILL, False), (signal.SIGSTOP, False), (signal.SIGSTOP, True)]
)
def test_one_that_is_lost_while_it_loads_is_started_once_more(
    number: int, of_keeper: bool, times: int,
    places: Callable[[str], Place], toolkit: Callable[[str], Installed], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    toolkit(RELEASE)
    place = places("")
    started: list[ForkServer] = []
    original = ForkServer.__init__

    def hit(self: ForkServer, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords)
        started.append(self)
        if len(started) <= times:
            keeper = self.process.pid
            # The fork server has not received its setup yet.
            os.kill(keeper if of_keeper else wait_for(lambda: below(keeper))[0], number)

    monkeypatch.setattr(ForkServer, "__init__", hit)
    cells = [cell(place, tmp_path / name, NVRTC, PLAIN) for name in ("one", "two", "three")]
    context = RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=600)))
    records = run_all(cells, context).values()
    assert len(started) == 2
    assert {record["status"] for record in records} == ({"built"} if times == 1 else {"unavailable"})
    assert times == 1 or {record["reason"].partition(":")[0] for record in records} == {"nvrtc cannot be loaded"}


def test_one_that_says_nothing_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork server that runs and sends nothing. It is a fake, since no known action makes a real one do so."""
    monkeypatch.setattr(fork_server, "_SILENCE", 0.5)
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexec sleep 1000\n")
    fake.chmod(0o755)
    order = make_order(tmp_path / "kernel.cu", "sm_80", tmp_path)
    server = ForkServer(str(fake), "nvrtc", Setup(tmp_path, "12.4", "12.4", [], tmp_path), dict(os.environ))
    try:
        assert server.loads(0)
        with pytest.raises(ForkServerDied, match="no heartbeat"):
            server.run(order)
    finally:
        server.close()
    assert server.process.poll() is not None
    assert not server.loads(0)  # closed: there is nothing to wait for
