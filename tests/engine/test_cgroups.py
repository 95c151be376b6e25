"""The control group that limits memory, read from fake kernel files; `tests/hostile/test_memory_together.py` uses a real group."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.engine.fork_server import HeldGroup, Parent, _look

Laid = Callable[..., Path]


@pytest.fixture
def laid(tmp_path: Path) -> Laid:
    """Write a folder like /proc/self, and a hierarchy with one group."""

    def lay(groups: str, mount: str = "cgroup2", options: str = "rw", root: str = "/", **files: str) -> Path:
        process, group = tmp_path / "proc", tmp_path / "mounted" / "user" / "mine"
        process.mkdir()
        group.mkdir(parents=True)
        (process / "cgroup").write_text(groups)
        (process / "mountinfo").write_text(
            "22 1 0:5 / /proc rw - proc proc rw\n"
            f"30 1 0:26 {root} {tmp_path}/mounted rw,nosuid shared:4 - {mount} cgroup {options}\n"
        )
        for name, text in {"cgroup.procs": f"{os.getpid()}\n", **files}.items():
            (group / name.replace("__", ".")).write_text(text)
        return process

    return lay


V2 = {"cgroup__controllers": "cpu memory pids\n", "cgroup__subtree_control": "cpu memory\n"}


def test_version_2(laid: Laid, tmp_path: Path) -> None:
    assert _look(laid("0::/user/mine\n", **V2)) == Parent(tmp_path / "mounted/user/mine", 2)


def test_version_1_where_the_memory_controller_is_there(laid: Laid, tmp_path: Path) -> None:
    groups = "4:cpu,memory:/user/mine\n3:memory_of_others:/\n0::/\n"
    assert _look(laid(groups, "cgroup", "rw,cpu,memory")) == Parent(tmp_path / "mounted/user/mine", 1)


def test_a_part_of_the_hierarchy_is_mounted(laid: Laid, tmp_path: Path) -> None:
    process = laid("0::/outer/user/mine\n", root="/outer", **V2)
    assert _look(process).path == tmp_path / "mounted/user/mine"


@pytest.mark.parametrize(
    ("groups", "files", "why"),
    [
        ("", V2, "no control groups"),
        ("0::/../elsewhere\n", V2, "no control groups"),
        ("4:memory:/user/mine\n", V2, "no control groups"),
        ("0::/user/mine\n", {"cgroup__controllers": "cpu pids\n"}, "no memory controller: `systemd-run"),
        ("0::/user/none\n", V2, "no memory controller"),
    ],
)
def test_where_none_can_be_made(laid: Laid, groups: str, files: dict[str, str], why: str) -> None:
    found = _look(laid(groups, **files))
    assert found.path is None
    assert why in found.problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_group_that_is_not_delegated(laid: Laid, tmp_path: Path) -> None:
    process = laid("0::/user/mine\n", **V2)
    (tmp_path / "mounted/user/mine/cgroup.procs").chmod(0o444)
    assert "may make no control group" in _look(process).problem


def test_what_killed_runs_left_is_removed(laid: Laid, tmp_path: Path) -> None:
    process = laid("0::/user/mine\n", **V2)
    left = tmp_path / "mounted/user/mine/cumatrix-run-left"
    left.mkdir()
    with HeldGroup(Parent(left.parent, 2), 1) as used:
        assert _look(process).path
        assert used.exists()
        assert not left.exists()
    assert not used.exists()
