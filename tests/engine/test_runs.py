"""Whole runs: in any order, on any number of runners, interrupted, killed and restarted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import lasting, write_case, write_library
from command import Command
from traces import processes

from harness.records import read_records
from harness.toolkits import Installed

pytestmark = pytest.mark.compilers
AXES = ("-b", "nvrtc", "-t", "12.4,13.0", "-a", "sm_50,sm_75,sm_80,compute_90")


@pytest.fixture(autouse=True)
def _toolkits(toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.4")
    toolkit("13.0")


def read(path: Path) -> dict[str, dict[str, Any]]:
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({record["cell"] for record in records}) == len(records)
    return {record["cell"]: record for record in records}


def alike(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> None:
    assert one.keys() == other.keys()
    for name, record in one.items():
        assert lasting(record) == lasting(other[name])


@pytest.mark.slow
def test_order_and_runners_do_not_change_a_record(cumatrix: Command, tmp_path: Path) -> None:
    write_library(tmp_path / "cases")
    found = {}
    for order, jobs in (("plan", 1), ("reverse", 1), ("random", 2), ("plan", 2)):
        out = tmp_path / f"{order}{jobs}.jsonl"
        done = cumatrix("run", *AXES, "--no-cache", "--order", order, "-j", str(jobs), "--out", out)
        assert done.returncode == 0, done.stderr
        found[order, jobs] = read(out)
    first = found["plan", 1]
    assert len(first) == 7 * 2 * 4
    assert {record["verdict"] for record in first.values()} == {"pass", "xfail", "unsupported"}
    assert list(found["reverse", 1]) != list(first)
    for other in found.values():
        alike(first, other)


@pytest.mark.slow
def test_pytest_gives_the_same_records_on_any_number_of_workers(cumatrix: Command, tmp_path: Path) -> None:
    write_library(tmp_path / "cases")
    done = cumatrix("run", *AXES, "--no-cache", "--out", tmp_path / "run.jsonl")
    assert done.returncode == 0, done.stderr
    expected = read(tmp_path / "run.jsonl")
    for workers in ("0", "2"):
        out = tmp_path / f"pytest{workers}.jsonl"
        argv = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:cacheprovider", "cases", "--cumatrix-no-cache",
                "--cumatrix-backend", "nvrtc", "--cumatrix-toolkit", AXES[3], "--cumatrix-target", AXES[5], "--cumatrix-out", str(out)]  # fmt: skip
        ran = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=800)
        assert ran.returncode == 0, ran.stdout
        alike(expected, read(out))


LIMIT = 200.0
"""Time limit for the end of a run or a process, in seconds."""
SLOW = "__global__ void slow(int *a) {{ *a = {} + {}; }}"


def slow_library(root: Path, cells: int = 12) -> None:
    """Write a folder of cases that take about a second each."""
    terms = " + ".join(f"a[{n}]" for n in range(1_500))
    for number in range(cells):
        write_case(root, f"slow/n{number:02}", SLOW.format(number, terms))


def wait_for(path: Path, lines: int, process: subprocess.Popen[str]) -> None:
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def workers_of(folder: Path) -> list[int]:
    """Return the processes of a run whose temporary files are in `folder`."""
    return [pid for pid in processes(str(folder), "environ") if pid != os.getpid()]


def none_left(folder: Path) -> None:
    """Wait until the processes have ended by themselves."""
    until = time.monotonic() + LIMIT
    while left := workers_of(folder):
        assert time.monotonic() < until, f"they are still there: {list(map(what_it_does, left))}"
        time.sleep(0.1)


def what_it_does(pid: int) -> str:
    """Return the command of a process, and its place in the kernel."""
    try:
        return f"{pid} {Path(f'/proc/{pid}/cmdline').read_text()!r} {Path(f'/proc/{pid}/wchan').read_text()}"
    except OSError as error:
        return f"{pid} {error}"


def ended(process: subprocess.Popen[str]) -> str:
    """Wait for a run and return its output; if it hangs, fail with the stack of each of its threads."""
    try:
        return process.communicate(timeout=LIMIT)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # faulthandler handles this signal
        pytest.fail(f"it did not end: {process.communicate()[1]}")


@pytest.fixture
def start(cumatrix: Command, tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a run whose processes are identifiable by their environment."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def start(*arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # Background tests of a shell inherit ignored signals, and so would the run.
            ["env", "--default-signal=INT,HUP", *cumatrix.argv(*arguments)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "TMPDIR": str(scratch), "CUMATRIX_CACHE": str(tmp_path / "cache"),
                 "PYTHONFAULTHANDLER": "1"},
        )  # fmt: skip

    return start


RUN = ("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "-j", "2", "--out", "out.jsonl")


@pytest.mark.slow
def test_killed_half_way_and_started_again(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    slow_library(tmp_path / "cases")
    out = tmp_path / "out.jsonl"
    process = start(*RUN)
    wait_for(out, 4, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    none_left(tmp_path / "scratch")
    results = read_records([out])
    kept = len(results.records)
    assert 4 <= kept < 12
    assert len(results.plans[0]["cells"]) == 12
    again = start(*RUN)
    words = ended(again)
    assert again.returncode == 0, words
    records = read(out)
    assert len(records) == 12
    cached = {record["cell"] for record in records.values() if record["cached"]}
    assert {record["cell"] for record in results.records} <= cached
    # Cells that had been compiled but not written at the kill: one per runner.
    assert kept <= len(cached) <= kept + 2
    third = start(*RUN)
    words = ended(third)
    assert third.returncode == 0, words
    assert all(record["cached"] for record in read(out).values())
    assert list((tmp_path / "scratch").iterdir()) == []  # the second run removed the files of the killed one
    for name, record in read(out).items():
        assert lasting(record) == lasting(records[name])


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGTERM, signal.SIGHUP))]
)
def test_an_interruption_keeps_what_finished(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, number: int
) -> None:
    slow_library(tmp_path / "cases")
    out = tmp_path / "out.jsonl"
    process = start(*RUN)
    wait_for(out, 2, process)
    os.killpg(process.pid, number)  # as a terminal does, to all processes at once
    words = ended(process)
    assert process.returncode == 130, words
    assert "interrupted" in words
    assert "Traceback" not in words
    assert 2 <= len(read_records([out]).records) < 12
    none_left(tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.parametrize("started", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_further_interruptions_change_nothing(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, started: bool
) -> None:
    slow_library(tmp_path / "cases")
    process = start(*RUN)
    if started:
        wait_for(tmp_path / "out.jsonl", 2, process)
    else:
        while not list((tmp_path / "scratch").iterdir()):  # nothing is loaded yet
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
    until = time.monotonic() + LIMIT
    while process.poll() is None and time.monotonic() < until:
        os.killpg(process.pid, signal.SIGINT)  # a user holds Ctrl-C
        time.sleep(0.01)
    words = ended(process)
    assert process.returncode == 130, words
    assert words.count("interrupted") == 1
    assert "Traceback" not in words
    none_left(tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_changed_source_alone_is_compiled_again(cumatrix: Command, tmp_path: Path) -> None:
    write_library(tmp_path / "cases")
    env = {"CUMATRIX_CACHE": str(tmp_path / "cache")}
    arguments = ("run", "plain", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80", "--out", "out.jsonl")
    assert cumatrix(*arguments, env=env).returncode == 0
    assert not any(record["cached"] for record in read(tmp_path / "out.jsonl").values())
    (tmp_path / "cases/plain/header/own.h").write_text("#define OWN 8\n")
    assert cumatrix(*arguments, env=env).returncode == 0
    records = read(tmp_path / "out.jsonl")
    assert [record["case"] for record in records.values() if not record["cached"]] == ["plain/header"]
    assert len(records) == 4
