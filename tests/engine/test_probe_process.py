"""A probe that starts before its answer is needed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.engine import environment
from harness.engine.environment import begin_own, finished, libraries, look


@pytest.fixture(autouse=True)
def nothing_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget running probes: an earlier test of this process can have left one."""
    monkeypatch.setattr(environment, "_begun", {})


def fake(folder: Path, text: str) -> str:
    """Write a fake interpreter."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_what_was_begun_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = fake(tmp_path, f"echo asked >> {tmp_path}/times; echo answer")
    monkeypatch.setattr(sys, "executable", python)
    begin_own(None)
    asked = (python, "probe.py", libraries())
    assert finished(*asked, without="PYTHONPATH").output == "answer\n"
    assert (tmp_path / "times").read_text() == "asked\n"
    assert finished(*asked, without="PYTHONPATH").output == "answer\n"
    assert (tmp_path / "times").read_text() == "asked\nasked\n"


def test_another_interpreter_is_not_asked_before_it_is_known(tmp_path: Path) -> None:
    begin_own(str(tmp_path / "python"))
    assert environment._begun == {}


def test_other_questions_do_not_get_its_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = fake(tmp_path, 'echo "$@"')
    monkeypatch.setattr(sys, "executable", python)
    begin_own(None)
    assert finished(python, "devices.py", ["one"], without="PYTHONPATH").output.endswith("worker/devices.py one\n")
    assert "probe.py cupy" in finished(python, "probe.py", libraries(), without="PYTHONPATH").output


def test_one_that_cannot_start_says_so_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "none"))
    begin_own(None)
    with pytest.raises(FileNotFoundError):
        finished(str(tmp_path / "none"), "probe.py", libraries(), without="PYTHONPATH")


def test_the_environment_is_looked_at_as_ever() -> None:
    alone = look()
    begin_own(None)
    assert look() == alone
    assert environment._begun == {}
