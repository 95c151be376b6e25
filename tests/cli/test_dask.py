"""``--dask``: the same records from a real cluster, even if it loses workers, and no process left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cells import lasting, write_case
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

RUN = ("run", "-b", "nvrtc", "-t", "12.4", "-a", "sm_80,sm_90")


class Machines:
    """A Dask cluster of two worker processes, without nannies: a killed worker is not restarted."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.folder = folder
        self.scheduler = self._start("dask_scheduler", "--scheduler-file", self.file, "--port", "0", "--no-dashboard")
        self.workers = [self._worker(name) for name in ("one", "two")]

    def _worker(self, name: str) -> subprocess.Popen[bytes]:
        options = (
            "--no-nanny",
            "--nthreads",
            "1",
            "--no-dashboard",
            "--name",
            name,
            "--local-directory",
            self.folder / name,
        )
        return self._start(
            "dask_worker", "--scheduler-file", self.file, *options, CUMATRIX_CACHE=str(self.folder / "cache")
        )

    def _start(self, module: str, *options: str | Path, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", "--host", "127.0.0.1", *map(str, options)],
            cwd=self.folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def below(self, worker: subprocess.Popen[bytes]) -> list[str]:
        """Return the processes that a worker has started."""
        return [
            pid
            for task in Path(f"/proc/{worker.pid}/task").iterdir()
            for pid in (task / "children").read_text().split()
        ]

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Machines(folder)
    yield made
    made.end()


def write_cases(root: Path) -> None:
    """Twenty small programs: no compiler accepts one of them, and one has a header in its folder."""
    numbers = ", ".join(map(str, range(18)))
    write_case(
        root,
        "plain/many",
        '#include "own.h"\n__global__ void many(float *a) { a[N] *= OWN; }',
        f"[parameters]\nN = [{numbers}]\n",
    )
    (root / "plain" / "many" / "own.h").write_text("#define OWN 7\n")
    write_case(
        root,
        "wrong/name",
        "__global__ void name(int *a) { *a = missing; }",
        '[[expect]]\nstatus = "rejected"\nreason = "no such name"\n',
    )


def records_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of a file by cell."""
    return {record["cell"]: record for record in map(json.loads, path.read_text().splitlines())}


def until(what: Callable[[], bool], seconds: float = 120) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_nothing_but_time(
    cumatrix: Command, machines: Machines, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    write_cases(tmp_path / "cases")
    alone = cumatrix(*RUN, "--out", "alone.jsonl", env={"CUMATRIX_CACHE": str(tmp_path / "own")})
    assert alone.returncode == 0, alone.stderr
    out = tmp_path / "away.jsonl"
    running = subprocess.Popen(
        cumatrix.argv(*RUN, "--no-cache", "--dask", machines.file, "--out", out),
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: out.is_file() and out.read_bytes().count(b"\n") >= 4)
    killed, kept = machines.workers
    orphans = machines.below(killed)
    killed.send_signal(signal.SIGKILL)
    assert out.read_bytes().count(b"\n") < 38
    _, said = running.communicate(timeout=300)
    assert running.returncode == 0, said
    here, there = records_of(tmp_path / "alone.jsonl"), records_of(out)
    assert len(here) == 38
    assert {cell: lasting(record) for cell, record in there.items()} == {
        cell: lasting(record) for cell, record in here.items()
    }
    until(lambda: not machines.below(kept), 30)
    until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in orphans), 30)


@pytest.mark.slow
def test_ctrl_c_ends_everything_of_a_cluster_that_was_started_here(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    write_cases(tmp_path / "cases")
    write_case(tmp_path / "cases", "wrong/stuck", '#include "never.h"\n__global__ void stuck(int *a) { *a = 1; }')
    os.mkfifo(tmp_path / "cases/wrong/stuck/never.h")  # opening it blocks until the test interrupts
    out = tmp_path / "away.jsonl"
    running = subprocess.Popen(
        # Background tests of a shell inherit ignored signals, and so would the run.
        ["env", "--default-signal=INT", *cumatrix.argv(*RUN, "--no-cache", "--dask", "local:2", "-j", "2", "--out", out)],
        cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    until(lambda: out.is_file() and out.read_bytes().count(b"\n") >= 4)
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: also to the workers
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130, said
    assert "interrupted: what finished is kept" in said
    assert "Traceback" not in said
    assert len(records_of(out)) >= 4
    until(lambda: not processes_of(running.pid), 30)


@pytest.mark.slow
def test_a_cell_that_takes_one_worker_after_another_is_charged_and_no_other(
    cumatrix: Command, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    write_case(
        tmp_path / "cases", "plain/few", "__global__ void few(float *a) { *a = N; }", "[parameters]\nN = [1, 2, 3, 4]\n"
    )
    write_case(tmp_path / "cases", "wrong/killer", '#include "never.h"\n__global__ void killer(int *a) { *a = 1; }')
    os.mkfifo(tmp_path / "cases/wrong/killer/never.h")  # opening it blocks
    out = tmp_path / "away.jsonl"
    # Nothing in a cell can end a worker, so the test kills the worker while it runs that cell.
    running = subprocess.Popen(
        cumatrix.argv(*RUN[:-1], "sm_80", "--no-cache", "--dask", "local:2", "-j", "2", "--out", out),
        cwd=tmp_path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    waiting: Counter[int] = Counter()
    lost: set[int] = set()
    try:
        while running.poll() is None:
            # Asleep for half a second, unlike any other cell: those are working, or ready to work.
            waiting = Counter({cell: waiting[cell] + 1 for cell in cells_that_wait()})
            for worker in {child_of(running.pid, cell) for cell in waiting if waiting[cell] >= 5} - lost - {0}:
                os.kill(worker, signal.SIGKILL)
                lost.add(worker)
            time.sleep(0.1)
    finally:
        running.kill()
        _, said = running.communicate(timeout=120)
    assert running.returncode == 1, said
    found = records_of(out)
    assert [record["status"] for record in found.values() if record["case"] == "plain/few"] == ["built"] * 4, said
    assert len(found) == 5, said
    (charged,) = [record for record in found.values() if record["case"] == "wrong/killer"]
    assert (charged["status"], charged["reason"]) == (
        "crashed", "one worker after another was lost while this cell ran there",
    )  # fmt: skip
    assert len(lost) == 5  # three attempts with other cells in line, and two alone


def cells_that_wait() -> list[int]:
    """Return the processes of waiting cells: they are in a cell's scratch folder, and sleep."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            asleep = (folder / "stat").read_text().rpartition(")")[2].split()[0] == "S"
            if asleep and os.path.basename(os.readlink(folder / "cwd")).startswith("cell-"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def child_of(ancestor: int, process: int) -> int:
    """Return the child of an ancestor from which a process descends; 0 if it does not descend from it."""
    while process > 1:
        try:
            above = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return 0
        if above == ancestor:
            return process
        process = above
    return 0


def processes_of(session: int) -> list[str]:
    """Return the processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(stat.parent.name)
    return found


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--dask", "local:0"), 2, "write local:4"),
        (("--dask", "no address"), 4, "no scheduler answers there"),
        (("--dask", "tcp://127.0.0.1:1", "-j", "3"), 2, "--nthreads"),
    ],
)
def test_what_is_no_cluster_is_said_in_one_sentence(
    cumatrix: Command, words: tuple[str, ...], code: int, why: str
) -> None:
    done = cumatrix(*RUN, *words)
    assert done.returncode == code
    assert why in done.stderr
    assert "Traceback" not in done.stderr
