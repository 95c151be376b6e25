"""Runs that create the same environment at once, and a run that is killed meanwhile: a real uv, and real kills."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command
from toolkits.gate import Gate, free, left, unpacked, until
from toolkits.local_index import LocalIndex
from traces import processes

Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def gate(numbas: LocalIndex, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    lines = "".join(f"# {number:x}\n" for number in range(200_000))
    numbas.add("numba", "0.60.0", {"numba/__init__.py": lines}, metadata=True, more=True, requires=["numpy"])
    gate = Gate(numbas.root)
    monkeypatch.setenv("UV_DEFAULT_INDEX", gate.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "900")  # or uv asks again, on a slow machine
    yield gate
    gate.close()


@pytest.fixture
def start(cumatrix: Command, tmp_path: Path) -> Iterator[Start]:
    begun: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            cumatrix.argv("libraries", "install", "numba=0.60"), cwd=cumatrix.folder, text=True, process_group=0,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "CUMATRIX_HOME": str(tmp_path / "home")},
        )  # fmt: skip
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def names(root: Path) -> list[str]:
    return [name for name in left(root) if name != ".resolved"]


def test_of_two_one_makes_it_and_the_other_waits(gate: Gate, start: Start, tmp_path: Path) -> None:
    first = start()
    assert gate.asked.wait(600)
    second = start()
    assert second.stderr is not None
    said = ""
    while "waiting" not in said:
        said = second.stderr.readline()
    assert "numba 0.60.0 is being installed or removed by another process" in said
    assert first.poll() is None
    gate.opened.set()
    assert (first.wait(), second.wait()) == (0, 0)
    assert gate.downloads == 2  # numba and numpy, once each
    (name,) = names(tmp_path / "home" / "environments")
    assert name.startswith("numba-0.60.0-python3.")


def test_a_kill_leaves_nothing_that_is_taken_for_an_environment(
    gate: Gate, start: Start, tmp_path: Path, cumatrix: Command
) -> None:
    root = tmp_path / "home" / "environments"
    process = start()
    assert gate.asked.wait(600)
    until(lambda: unpacked(tmp_path))
    process.kill()
    process.wait()
    until(lambda: not processes(str(root)) and free(tmp_path / "uv-cache" / ".lock"))
    assert len(names(root)) == 1 and names(root)[0].startswith(".")
    env = {"CUMATRIX_HOME": str(tmp_path / "home")}
    done = cumatrix("libraries", "list", "numba", "--installed", env=env)
    assert (done.returncode, done.stdout) == (0, "")
    assert (names(root), unpacked(tmp_path)) == ([], [])
    gate.opened.set()
    assert start().wait() == 0
    told = cumatrix("libraries", "list", "numba", "--installed", env=env).stdout
    assert told.startswith("numba       0.60.0") and "installed: Python 3." in told
    python = cumatrix("libraries", "path", "numba=0.60.0", env=env).stdout.strip()
    assert subprocess.run([python, "-c", "import numba, numpy"]).returncode == 0
    assert cumatrix("libraries", "remove", "numba=0.60", env=env).returncode == 0
    assert names(root) == []
