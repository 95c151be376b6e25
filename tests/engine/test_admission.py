"""Admission by memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest
from cells import make_case, make_cell

from harness.backends import BACKENDS
from harness.engine.cache import ResultCache
from harness.engine.machine import Memory, Need, Needs, available, deadline, size
from harness.model import Outcome, Status


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


@pytest.mark.parametrize(
    ("took", "load", "limit"), [(0.0, 0.5, 300.0), (100.0, 4.0, 1000.0), (0.0, 8.0, 600.0), (100.0, 400.0, 10_000.0)]
)
def test_the_default_time_limit(took: float, load: float, limit: float) -> None:
    assert deadline(300.0, Need(1, took), load, 4) == limit


def test_time_of_a_program_is_guessed_from_its_folder(tmp_path: Path) -> None:
    cells = [
        make_cell(make_case(tmp_path / name / "kernel.cu", f"{name}/{number}"))
        for name, number in (("a", 0), ("a", 1), ("b", 0))
    ]
    cache = ResultCache(tmp_path / "cache")
    Needs(cache).learn(cells[0], Outcome(status=Status.BUILT, peak_bytes=1, seconds=32.0))
    needs = Needs(cache)
    assert [needs.seconds(cell) for cell in cells] == [32.0, 32.0, BACKENDS["nvrtc"].seconds]


class Watched(threading.Condition):
    """A lock that reports that a thread has to wait, before it waits."""

    def __init__(self, events: Queue[str]) -> None:
        super().__init__()
        self.events = events

    def wait(self, timeout: float | None = None) -> bool:
        self.events.put("waits")
        return super().wait(timeout)


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine of 10 bytes; its cells end with the test."""
    made = Machine()
    yield made
    made.end_all()


class Machine:
    """Cells on threads that report their progress; nothing here uses a clock."""

    def __init__(self) -> None:
        self.events: Queue[str] = Queue()
        self.memory = Memory(10)
        self.memory._free = Watched(self.events)
        self.ends: dict[int, threading.Event] = {}
        self.threads: dict[int, threading.Thread] = {}

    def start(self, needed: int) -> str:
        """Start a cell; return "runs" or "waits"."""
        self.ends[needed] = threading.Event()
        self.threads[needed] = threading.Thread(target=self._run, args=(needed,))
        self.threads[needed].start()
        return self.events.get()

    def end(self, needed: int) -> None:
        """End a running cell."""
        self.ends[needed].set()
        self.threads[needed].join()

    def end_all(self) -> None:
        """End all cells, in any possible order."""
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
