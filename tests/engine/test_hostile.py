"""Programs that die, hang, flood, hide and hoard: each has its own status, and neighbours are unaffected.

A Numba program is a Python module, whose compilation can execute any code.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from cells import Place, lasting, make_case, run_all
from traces import processes

from harness.engine.context import RunContext, RunRequest
from harness.model import Cell
from harness.protocol.messages import Limits
from harness.records import Record
from harness.toolkits import Installed, ToolkitStore

pytestmark = pytest.mark.compilers

RELEASE = "12.9"
KERNEL = """
from numba import cuda

@cuda.jit
def scale(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2
"""
LEAVES_CHILDREN = """
import os, signal, time
ready, told = os.pipe()
def stay():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.write(told, b"x")
    os.execv("/bin/sh", ["{mark}", "-c", "trap '' TERM HUP INT; while :; do sleep 1000; done"])
for number in range(3):
    if os.fork() == 0:
        if number:
            os.setsid()
        if number == 2 and os.fork():
            os._exit(0)  # its child belongs to nobody
        stay()
for number in range(3):
    os.read(ready, 1)
"""
PROGRAMS = {
    "plain": "",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "aborts": "import os; os.abort()",
    "stops": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "loops": "while True: pass",
    "sleeps": "import signal, time\nfor n in set(range(1, 65)) - {9, 19, 32, 33}: signal.signal(n, signal.SIG_IGN)\ntime.sleep(1000)",
    "floods": "import os\nfor _ in range(100): os.write(1, b'x' * 999_999 + b'\\n')",
    "children": LEAVES_CHILDREN,
    "hoards": "hoard = []\nwhile True: hoard.append(bytearray(64 << 20))",
    "exits": "import os; os._exit(3)",
    "leaves": "raise SystemExit(3)",
    "forges": "import json, os\nopen('../reply.json', 'w').write(json.dumps(dict(status='built')))\nopen('reply.json', 'w').write('[')\nos._exit(0)",
    "recurses": "def f(): f()\nf()",
}


@pytest.fixture(scope="module")
def place(places: Callable[[str], Place], toolkit: Callable[[str], Installed]) -> Place:
    toolkit(RELEASE)
    return places("numba==0.59.1")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    root = tmp_path_factory.mktemp("programs")

    def write(name: str, text: str) -> Path:
        folder = root / name
        folder.mkdir(exist_ok=True)
        (folder / "kernel.py").write_text(text)
        return folder / "kernel.py"

    return write


def deadline(seconds: float) -> float:
    """Return a deadline that a program with an end cannot miss: a multiple of the time that a similar program has just taken on this machine."""
    return 3 + 20 * seconds


@pytest.fixture
def patience(perform: Perform) -> float:
    """Return a deadline for a Numba program."""
    record = perform("plain")
    assert record["status"] == "built"
    return deadline(record["seconds"])


Perform = Callable[..., Record]


@pytest.fixture
def perform(place: Place, programs: Callable[[str, str], Path]) -> Perform:
    """Run a hostile program; return its record."""

    def run(name: str, *, seconds: float = 60, memory: int = 0, output: int = 256 << 10, **words: str) -> Record:
        text = PROGRAMS[name]
        for key, value in words.items():
            text = text.replace("{" + key + "}", value)
        case = make_case(programs(name, text + "\n" + KERNEL), f"hostile/{name}", entries={"scale": "void(float32[:])"})
        context = RunContext(
            place.environment,
            place.store,
            None,
            RunRequest(limits=Limits(seconds=seconds, memory=memory or 16 << 30, output=output)),
        )
        (record,) = run_all([place.cell(case, "numba", RELEASE, "sm_80")], context).values()
        return record

    return run


@pytest.mark.parametrize(("name", "signal"), [("segfault", 11), ("killed", 9), ("aborts", 6)])
def test_a_signal_is_a_crash(perform: Perform, name: str, signal: int) -> None:
    record = perform(name)
    assert (record["status"], record["stage"], record["signal"]) == ("crashed", "compile", signal)
    assert record["diagnostics"][0]["severity"] == "fatal"
    assert f"signal {signal}" in record["diagnostics"][0]["message"]
    assert record["verdict"] == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loops", "sleeps", "stops"])
def test_what_does_not_end_is_ended_at_the_deadline(perform: Perform, patience: float, name: str) -> None:
    record = perform(name, seconds=patience)
    assert (record["status"], record["stage"], record["signal"]) == ("timed_out", "compile", None)
    assert patience <= record["seconds"]
    assert any("ended at the deadline" in note for note in record["notes"])


def test_a_flood_of_output_is_cut_and_noted(perform: Perform) -> None:
    record = perform("floods", output=20_000)
    assert record["status"] == "built"
    assert any(note.startswith("printed 100000000 bytes") for note in record["notes"])
    assert 19_000 < len(record["log"]) < 40_000
    assert "bytes left out" in record["log"]


def test_a_flood_never_makes_a_record_of_that_size(perform: Perform) -> None:
    record = perform("floods")
    assert record["status"] == "built"
    assert len(record["log"]) < 70_000
    assert "left out" in record["log"]


def test_children_end_with_their_cell(perform: Perform) -> None:
    mark = f"left-behind-{os.getpid()}-{uuid4().hex}"
    record = perform("children", mark=mark)
    assert processes(mark) == []
    assert record["status"] == "built"
    assert any(note.startswith("ended ") and "left behind" in note for note in record["notes"])
    assert next(int(note.split()[1]) for note in record["notes"] if "left behind" in note) >= 3


@pytest.mark.slow
def test_children_of_a_cell_that_hangs_end_too(
    perform: Perform, patience: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"left-hanging-{os.getpid()}-{uuid4().hex}"
    monkeypatch.setitem(PROGRAMS, "children", LEAVES_CHILDREN + "while True: time.sleep(1)\n")
    assert perform("children", seconds=patience, mark=mark)["status"] == "timed_out"
    assert processes(mark) == []


@pytest.mark.slow
def test_memory_ends_at_the_limit(perform: Perform) -> None:
    record = perform("hoards", memory=3 << 29)
    assert record["status"] in ("crashed", "rejected")
    assert "memory" in record["diagnostics"][0]["message"].lower()


def test_an_exit_without_an_answer_is_a_crash_without_a_signal(perform: Perform) -> None:
    record = perform("exits")
    assert (record["status"], record["signal"]) == ("crashed", None)
    assert "ended with exit code 3 and without an answer" in record["reason"]


def test_a_program_that_ends_itself_is_refused(perform: Perform) -> None:
    record = perform("leaves")
    assert (record["status"], record["stage"]) == ("rejected", "compile")
    assert record["diagnostics"][0]["message"].startswith("SystemExit")


def test_a_recursion_without_end_is_refused(perform: Perform) -> None:
    record = perform("recurses")
    assert record["status"] == "rejected"
    assert "RecursionError" in record["diagnostics"][0]["message"]


def test_a_forged_answer_is_not_believed(perform: Perform) -> None:
    """A case is code and can lie about itself, but a contradictory lie never gives a built cell."""
    record = perform("forges")
    assert record["status"] != "built"
    assert record["artifact"] is None


@pytest.mark.slow
def test_the_neighbours_do_not_notice(place: Place, programs: Callable[[str, str], Path]) -> None:
    memory = 3 << 29

    def plain(name: str) -> Cell:
        text = KERNEL.replace("a.size", f"a.size - {sum(name.encode())}")
        case = make_case(programs(name, text), f"plain/{name}", entries={"scale": "void(float32[:])"})
        return place.cell(case, "numba", RELEASE, "sm_80")

    def hostile(name: str) -> Cell:
        case = make_case(
            programs(name, PROGRAMS[name] + "\n" + KERNEL), f"hostile/{name}", entries={"scale": "void(float32[:])"}
        )
        return place.cell(case, "numba", RELEASE, "sm_80")

    names = [name for name in PROGRAMS if name not in ("plain", "sleeps", "stops", "floods")]
    neighbours = [plain(f"beside-{name}") for name in names] + [plain("last")]
    mixed = [cell for pair in zip(neighbours, map(hostile, names), strict=False) for cell in pair] + neighbours[-1:]
    alone = run_all(
        neighbours,
        RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=600, memory=memory))),
    )
    # The test waits for the program that never ends.
    limits = Limits(seconds=deadline(max(record["seconds"] for record in alone.values())), memory=memory)
    among = run_all(mixed, RunContext(place.environment, place.store, None, RunRequest(limits=limits)), jobs=2)
    assert len(among) == len(mixed)
    assert {record["status"] for record in alone.values()} == {"built"}
    for name, record in alone.items():
        assert lasting(among[name]) == lasting(record)


@pytest.fixture
def control(
    store: ToolkitStore, places: Callable[[str], Place], toolkit: Callable[[str], Installed]
) -> Callable[..., Record]:
    toolkit("12.4")
    place = places("")

    def run(source: Path) -> Record:
        neighbour = source.parent.parent / "neighbour" / "kernel.cu"
        neighbour.parent.mkdir(exist_ok=True)
        neighbour.write_text("__global__ void k(int *a) { *a = 1; }")
        cells = [place.cell(make_case(path), "nvrtc", "12.4", "sm_80") for path in (source, neighbour)]
        (alone,) = run_all(
            cells[1:], RunContext(place.environment, place.store, None, RunRequest(limits=Limits(seconds=600)))
        ).values()
        limits = Limits(seconds=deadline(alone["seconds"]))
        records = run_all(cells, RunContext(place.environment, place.store, None, RunRequest(limits=limits)))
        first, second = (records[cell.id] for cell in cells)
        assert second["status"] == "built"
        return first

    return run


@pytest.mark.slow
def test_a_compiler_that_takes_too_long_is_ended(control: Callable[..., Record], tmp_path: Path) -> None:
    source = tmp_path / "slow" / "kernel.cu"
    source.parent.mkdir()
    source.write_text("__global__ void k(int *a) { *a = " + " + ".join(f"a[{n}]" for n in range(100_000)) + "; }")
    record = control(source)
    assert (record["status"], record["stage"]) == ("timed_out", "compile")


@pytest.mark.slow
def test_a_compiler_that_waits_for_a_pipe_is_ended(control: Callable[..., Record], tmp_path: Path) -> None:
    source = tmp_path / "pipe" / "kernel.cu"
    source.parent.mkdir()
    pipe = source.parent / "never"
    os.mkfifo(pipe)
    source.write_text(f'#include "{pipe}"\n__global__ void k() {{}}')
    record = control(source)
    assert (record["status"], record["stage"]) == ("timed_out", "compile")
