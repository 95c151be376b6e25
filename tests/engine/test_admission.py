"""Admission by memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from harness.engine.machine import Memory, available, size


def test_sizes_of_case_files() -> None:
    assert [size(text) for text in ("512M", "3G", "1K")] == [512 << 20, 3 << 30, 1024]


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [(None, None, 8 << 30), ("max", "1", 8 << 30), (str(4 << 30), str(1 << 30), 3 << 30)],
)
def test_what_is_available(tmp_path: Path, limit: str | None, used: str | None, expected: int) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text(f"MemTotal: 99999999 kB\nMemAvailable: {8 << 20} kB\n")
    if limit and used:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(used)
    assert available(meminfo, tmp_path) == pytest.approx(expected * 0.9)


class Watched(threading.Condition):
    """Tells that a thread has to wait, before it does."""

    def __init__(self, events: Queue[str]) -> None:
        super().__init__()
        self.events = events

    def wait(self, timeout: float | None = None) -> bool:
        self.events.put("waits")
        return super().wait(timeout)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine of 10 bytes, whose cells end with the test."""
    made = Machine()
    yield made
    made.end_all()


class Machine:
    """Cells on threads of their own, which tell what becomes of them; nothing here looks at a clock."""

    def __init__(self) -> None:
        self.events: Queue[str] = Queue()
        self.memory = Memory(10)
        self.memory._free = Watched(self.events)
        self.ends: dict[int, threading.Event] = {}
        self.threads: dict[int, threading.Thread] = {}

    def start(self, needed: int) -> str:
        """Start a cell; tells whether it "runs" or "waits"."""
        self.ends[needed] = threading.Event()
        self.threads[needed] = threading.Thread(target=self._run, args=(needed,))
        self.threads[needed].start()
        return self.events.get()

    def end(self, needed: int) -> None:
        """End a cell that runs."""
        self.ends[needed].set()
        self.threads[needed].join()

    def end_all(self) -> None:
        """Let all cells end, in whatever order they can."""
        for event in self.ends.values():
            event.set()
        for thread in self.threads.values():
            thread.join()

    def _run(self, needed: int) -> None:
        with self.memory.taken(needed):
            self.events.put("runs")
            self.ends[needed].wait()


def test_cells_that_fit_run_together_and_others_wait(machine: Machine) -> None:
    assert [machine.start(needed) for needed in (4, 6, 1)] == ["runs", "runs", "waits"]
    machine.end(6)
    assert machine.events.get() == "runs"


def test_a_cell_larger_than_everything_runs_alone(machine: Machine) -> None:
    assert [machine.start(needed) for needed in (1, 100)] == ["runs", "waits"]
    machine.end(1)
    assert machine.events.get() == "runs"
    assert machine.start(2) == "waits"
    machine.end(100)
    assert machine.events.get() == "runs"


def test_a_cell_that_fails_gives_back_what_it_held(machine: Machine) -> None:
    with pytest.raises(ZeroDivisionError), machine.memory.taken(10):
        raise ZeroDivisionError
    assert machine.start(10) == "runs"
