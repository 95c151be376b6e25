"""Admission by memory."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.engine.memory import Memory, available, size


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


def test_cells_that_fit_run_together_and_others_wait() -> None:
    memory, both, release = Memory(10), threading.Barrier(2), threading.Event()
    running: list[str] = []

    def hold(name: str, needed: int) -> None:
        with memory.taken(needed):
            running.append(name)
            if name != "third":
                both.wait(10)
                release.wait(10)

    threads = [threading.Thread(target=hold, args=item) for item in (("first", 5), ("second", 5))]
    for thread in threads:
        thread.start()
    third = threading.Thread(target=hold, args=("third", 1))
    while len(running) < 2:
        pass  # both are let in: the barrier in each would break otherwise
    third.start()
    third.join(0.2)
    assert sorted(running) == ["first", "second"]
    release.set()
    for thread in (*threads, third):
        thread.join(10)
    assert running[2] == "third"


def test_a_cell_larger_than_everything_runs_alone() -> None:
    memory = Memory(10)
    with memory.taken(100):
        pass
    with memory.taken(100):
        pass
