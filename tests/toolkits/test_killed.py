"""Leftovers of killed installations: a real uv that waits for a wheel, and parents that are really killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command import Command
from traces import processes

from harness.errors import PartUnavailable
from harness.process_locks import lock_exclusively, lock_file, lock_path, sweep_installs
from harness.toolkits import Release, ToolkitStore
from harness.toolkits.store import WheelStore

from .gate import Gate, free, left, unpacked, until
from .local_index import HEADER, LocalIndex

VERSION = "99.0"


@pytest.fixture
def gate(index: LocalIndex, no_settings: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    # Large enough that uv unpacks it while downloading.
    lines = "".join(f"// {number:x}\n" for number in range(200_000))
    index.add("nvidia-cutlass", VERSION, {"cutlass_library/source/include/large.h": lines, HEADER: lines[::-1]})
    gate = Gate(index.root)
    monkeypatch.setenv("UV_DEFAULT_INDEX", gate.url)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield gate
    gate.close()


Start = Callable[[], "subprocess.Popen[str]"]


@pytest.fixture
def start(cumatrix: Command, tmp_path: Path) -> Iterator[Start]:
    """Start an installation in its own process group, as a shell does."""
    begun: list[subprocess.Popen[str]] = []

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            # Background tests of a shell inherit an ignored SIGINT, and so would the command.
            ["env", "--default-signal=INT", *cumatrix.argv("toolkits", "install", f"cutlass=={VERSION}")],
            cwd=cumatrix.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0,
            env={**os.environ, "CUMATRIX_HOME": str(tmp_path / "home")},
        )  # fmt: skip
        begun.append(process)
        return process

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def test_a_kill_ends_uv_and_the_next_start_cleans_up(
    gate: Gate, start: Start, tmp_path: Path, cumatrix: Command
) -> None:
    root = tmp_path / "home" / "libraries" / "cutlass"
    process = start()
    assert gate.asked.wait(600)
    until(lambda: unpacked(tmp_path))
    assert processes(str(root))
    process.kill()
    process.wait()
    until(lambda: not processes(str(root)) and free(tmp_path / "uv-cache" / ".lock"))
    assert len(left(root)) == 1  # there is something to clean up
    done = cumatrix("doctor", "--verify", env={"CUMATRIX_HOME": str(tmp_path / "home")})
    assert done.returncode == 3, done.stderr
    assert (left(root), unpacked(tmp_path)) == ([], [])
    gate.opened.set()
    again = start()
    assert again.wait() == 0
    assert left(root) == [VERSION]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_to_end_leaves_nothing(gate: Gate, start: Start, tmp_path: Path, number: signal.Signals) -> None:
    root = tmp_path / "home" / "libraries" / "cutlass"
    process = start()
    assert gate.asked.wait(600)
    until(lambda: unpacked(tmp_path))
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    assert process.wait() == 130
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    until(lambda: not processes(str(root)))
    assert (left(root), unpacked(tmp_path)) == ([], [])


def test_of_two_one_installs_and_the_other_waits(gate: Gate, start: Start, tmp_path: Path) -> None:
    first = start()
    assert gate.asked.wait(600)
    second = start()
    assert second.stderr is not None
    said = ""
    while "waiting" not in said:
        said = second.stderr.readline()
    assert f"cutlass {VERSION} is being installed or removed by another process" in said
    assert first.poll() is None
    gate.opened.set()
    assert (first.wait(), second.wait()) == (0, 0)
    assert gate.downloads == 1
    assert left(tmp_path / "home" / "libraries" / "cutlass") == [VERSION]


@pytest.mark.parametrize(("library", "name"), [("cutlass", "cutlass"), ("", "CUDA")])
def test_waiting_has_a_limit(tmp_path: Path, library: str, name: str) -> None:
    told: list[str] = []
    store = WheelStore(tmp_path, library, told.append, wait=0.2)
    with lock_file(lock_path(tmp_path, "1.0")) as lock:
        assert lock_exclusively(lock)
        with pytest.raises(PartUnavailable, match=rf"^{name} 1\.0: another process has held "):
            store.put("1.0", lambda found: {}, lambda site, home: ({}, {}), lambda got, asked: True, force=False)
    (sentence,) = told
    assert sentence.startswith(f"{name} 1.0 is being installed or removed by another process")


def test_what_is_under_way_is_left_alone(tmp_path: Path) -> None:
    for name in (".12.4-abcdefgh", ".12.9-old-abcdefgh", ".13.0-abcdefgh", ".13.0-ab", ".other", "13.1"):
        (tmp_path / name / "home").mkdir(parents=True)
    with lock_file(lock_path(tmp_path, "12.4")) as lock:
        assert lock_exclusively(lock)
        sweep_installs(tmp_path)
    assert left(tmp_path) == [".12.4-abcdefgh", ".13.0-ab", ".other", "12.9", "13.1"]  # 12.9 is restored
    sweep_installs(tmp_path)
    assert left(tmp_path) == [".13.0-ab", ".other", "12.9", "13.1"]
    sweep_installs(tmp_path / "nowhere")


def test_what_came_in_the_place_of_another_stays(tmp_path: Path) -> None:
    (tmp_path / ".12.4-old-abcdefgh" / "home" / "old").mkdir(parents=True)
    (tmp_path / "12.4" / "new").mkdir(parents=True)
    sweep_installs(tmp_path)
    assert left(tmp_path) == ["12.4"]
    assert left(tmp_path / "12.4") == ["new"]


def test_a_cache_that_another_uv_uses_is_cleaned_later(tmp_path: Path) -> None:
    cache, folder = tmp_path / "cache", tmp_path / "root" / ".12.4-abcdefgh"
    (folder / "home").mkdir(parents=True)
    (cache / ".tmp000000").mkdir(parents=True)
    os.utime(cache / ".tmp000000", (0, 0))  # of another user
    (folder / "uv-cache").write_text(str(cache))
    (cache / ".tmpAAAAAA" / "half").mkdir(parents=True)
    (cache / "archive-v0").mkdir()
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        sweep_installs(tmp_path / "root")
        assert (cache / ".tmpAAAAAA").is_dir()
        assert left(folder) == ["uv-cache"]
    sweep_installs(tmp_path / "root")
    assert sorted(path.name for path in cache.iterdir()) == [".lock", ".tmp000000", "archive-v0"]
    assert left(tmp_path / "root") == []


@pytest.mark.parametrize("text", ["", "relative", "/nowhere"])
def test_a_cache_that_is_not_told_is_not_cleaned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    folder = tmp_path / ".12.4-abcdefgh"
    folder.mkdir()
    (folder / "uv-cache").write_text(text)
    monkeypatch.chdir(tmp_path)
    for place in (tmp_path, tmp_path / "relative"):
        (place / ".tmpAAAAAA").mkdir(parents=True)
        (place / ".lock").touch()
    sweep_installs(tmp_path)
    assert (tmp_path / ".tmpAAAAAA").is_dir()
    assert (tmp_path / "relative" / ".tmpAAAAAA").is_dir()
    assert not folder.exists()


def test_removing_is_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake kill during the removal of a toolkit: its files stay, in a folder that is not restored."""
    store = ToolkitStore(tmp_path)
    (tmp_path / "12.4" / "include").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("harness.process_locks.shutil.rmtree", lambda *args, **keywords: None)
        assert store.remove(Release(name="12.4", packages={}).name)
    assert len(left(tmp_path)) == 1
    store.sweep()
    assert left(tmp_path) == []
