"""Parsing the files of a control group. The folders are fakes; tests/hostile/test_memory_together.py has a real group."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.worker.processes import Cgroup

EVENTS = "low 0\nhigh 0\nmax 7\noom {ooms}\noom_kill {kills}\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n"
LIMIT = 700 << 20


@pytest.mark.parametrize(
    ("kills", "ooms", "killed", "exceeded"),
    [
        (3, 5, False, False),
        # The whole machine was out of memory.
        (4, 5, True, False),
        (4, 6, True, True),
    ],
)
def test_version_2(tmp_path: Path, kills: int, ooms: int, killed: bool, exceeded: bool) -> None:
    (tmp_path / "memory.events").write_text(EVENTS.format(kills=3, ooms=5))
    group = Cgroup(str(tmp_path))
    group.begin()
    (tmp_path / "memory.events").write_text(EVENTS.format(kills=kills, ooms=ooms))
    assert group.killed() is killed
    assert group.exceeded() is exceeded


@pytest.mark.parametrize(
    ("kills", "peak", "killed", "exceeded"),
    [
        # Files in the page cache fill a group up to its limit, without ending a process.
        (3, LIMIT, False, False),
        (4, LIMIT // 2, True, False),
        (4, LIMIT - (2 << 20), True, True),
    ],
)
def test_version_1(tmp_path: Path, kills: int, peak: int, killed: bool, exceeded: bool) -> None:
    (tmp_path / "memory.oom_control").write_text(CONTROL.format(kills=3))
    (tmp_path / "memory.limit_in_bytes").write_text(f"{LIMIT}\n")
    highest = tmp_path / "memory.max_usage_in_bytes"
    highest.write_text(f"{LIMIT}\n")
    group = Cgroup(str(tmp_path))
    group.begin()
    assert highest.read_text() == "0"
    (tmp_path / "memory.oom_control").write_text(CONTROL.format(kills=kills))
    highest.write_text(f"{peak}\n")
    assert group.killed() is killed
    assert group.exceeded() is exceeded


def test_without_a_group_nothing_is_told() -> None:
    group = Cgroup("")
    group.begin()
    assert not group.killed()
    assert not group.exceeded()
