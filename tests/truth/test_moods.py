"""Conditions of one run stay with that run: limits of a shell, a full disk, killed compilers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from .pair import KERNEL, KERNEL_PY, Pair
from .site import Site, short, told

pytestmark = pytest.mark.compilers

DEEP = 'extern "C" __global__ void k(int *a) { *a = ' + "(" * 3000 + "1" + ")" * 3000 + "; }\n"
# Takes a second or two, which leaves time for a signal.
LONG = 'extern "C" __global__ void k(int *a) { *a = ' + " + ".join(f"a[{i}] * {i}" for i in range(1300)) + "; }\n"
LONG_PY = KERNEL_PY.replace("= N", "= " + " + ".join(f"a[{i}] * {i}" for i in range(250)))
PLAIN = "#define N 1\n" + KERNEL


def site_of(text: str, backend: str, folder: Path, patch: pytest.MonkeyPatch, host: bool = False) -> Site:
    name = "kernel.py" if backend.startswith("numba") else "kernel.cu"
    pair = Pair(name="mood", backends=(backend,), files={name: text}, change=(), host=host)
    return Site(pair, backend, folder, patch)


def in_a_shell(site: Site, before: str, *more: str) -> list[dict[str, Any]]:
    """Run in a shell with changed limits; return the records."""
    command = Path(sys.executable).with_name("cumatrix")
    done = subprocess.run(
        ["bash", "-c", f'{before}; exec "$@"', "bash", command, *site.argv(*more)], capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=800, cwd=site.here,
    )  # fmt: skip
    assert "a fault of cumatrix's own" not in done.stderr, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def holds(site: Site) -> None:
    """A plain run gives the true outcome, and so does the next."""
    answered, again, true = site.run(), site.run(), site.run("--no-cache")
    assert told(answered) == told(true), f"true is {short(true)}; the answer was {short(answered)}"
    assert told(again) == told(true)
    assert true["status"] == "built" and again["cached"]


LIMITS = [
    ("nvrtc", "ulimit -s 512", DEEP, False), ("nvrtc", "ulimit -S -s 512", DEEP, False), ("cupy-nvrtc", "ulimit -s 512", DEEP, False),
    ("nvrtc", "ulimit -v 120000", LONG, False), ("nvcc", "ulimit -v 150000", PLAIN, True), ("numba", "ulimit -v 330000", LONG_PY, False),
    ("nvrtc", "ulimit -n 16", PLAIN, False), ("nvcc", "ulimit -n 16", PLAIN, True), ("nvcc", "ulimit -f 600", PLAIN, True),
    ("nvcc", "ulimit -S -f 600", PLAIN, True), ("nvrtc", "ulimit -t 1", LONG, False),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "limit", "text", "host"), LIMITS, ids=[f"{b}-{w}".replace(" ", "") for b, w, *_ in LIMITS]
)
def test_a_limit_of_somebodys_shell(
    backend: str, limit: str, text: str, host: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(site_of(text, backend, tmp_path, monkeypatch, host)) as site:
        site.before()
        in_a_shell(site, limit)
        holds(site)
        # In reverse, an answer from a shell without limits holds here only if the outcome is the same.
        answered, true = in_a_shell(site, limit), in_a_shell(site, limit, "--no-cache")
        # The outcome at the memory limit varies between runs; only cached answers are compared.
        if answered and true and answered[0]["cached"]:
            assert told(answered[0]) == told(true[0]), f"true is {short(true[0])}; the answer was {short(answered[0])}"


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a disk that is full cannot be made here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
@pytest.mark.parametrize(("backend", "size"), [("nvcc", "400k"), ("nvcc", "900k"), ("numba", "40k"), ("nvrtc", "32k")])
def test_a_full_temporary_folder(backend: str, size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "N = 1\n" + KERNEL_PY if backend == "numba" else PLAIN
    with (
        closing(site_of(text, backend, tmp_path, monkeypatch, host=True)) as site,
        small_disk(tmp_path / "full", size) as full,
    ):
        site.before()
        for record in in_a_shell(site, f"export TMPDIR={full}"):
            assert record["status"] != "built", "the disk was not full: this shows nothing"
        holds(site)


SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGXCPU, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT]


ENDED = [
    *[("a-cell", LONG, "nvrtc", "", number) for number in SIGNALS],
    *[("a-program", LONG_PY, "numba", "", number) for number in SIGNALS[:3]],
    *[("a-tool", LONG, "nvcc", "cicc", number) for number in SIGNALS],
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "backend", "tool", "number"),
    [item[1:] for item in ENDED],
    ids=[f"{what}-{n.name}" for what, *_, n in ENDED],
)
def test_what_is_ended_from_outside(
    text: str, backend: str, tool: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal goes to a cell's own process, which compiles or runs a program, or to a tool below it."""
    with closing(site_of(text, backend, tmp_path, monkeypatch)) as site:
        site.before()
        ended = while_compiling(site, lambda cell: end(descendant(cell, tool) if tool else cell, number))
        assert ended["status"] != "built", "it was over before the signal came"
        holds(site)


def while_compiling(site: Site, act: Callable[[int], None]) -> dict[str, Any]:
    """Run, and act on the cell's process as soon as it exists; return the record."""
    command = Path(sys.executable).with_name("cumatrix")
    running = subprocess.Popen(
        [command, *site.argv()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    )
    try:
        act(cell_of(running))
        out, errors = running.communicate(timeout=800)
        assert out, errors
        record: dict[str, Any]
        (record,) = (json.loads(line) for line in out.splitlines())
        return record
    finally:
        running.kill()
        running.wait()


def end(process: int, number: signal.Signals) -> None:
    """Send a signal until the process is gone: a new process can still ignore the signals that its parent ignores."""
    try:
        while True:
            os.kill(process, number)
            time.sleep(0.02)
    except ProcessLookupError:
        return


def cell_of(running: subprocess.Popen[str]) -> int:
    """Return the process of the first cell: a child of the fork server (a child of its keeper), in a session of its own."""
    while running.poll() is None:
        time.sleep(0.005)
        servers = [server for keeper in children(running.pid) for server in children(keeper)]
        for cell in (cell for server in servers for cell in children(server)):
            if session(cell) == cell and b"boot.py" in words(cell):
                return cell
    raise AssertionError("no cell was ever compiled")


def descendant(process: int, name: str) -> int:
    """Return the first descendant of this process that runs the program `name`."""
    while Path(f"/proc/{process}").exists():
        time.sleep(0.005)
        waiting = [process]
        while waiting:
            one = waiting.pop()
            if words(one).split(b"\0")[0].endswith(name.encode()):
                return one
            waiting += children(one)
    raise AssertionError(f"{name} was never run")


def children(process: int) -> list[int]:
    try:
        tasks = [path.read_text() for path in Path(f"/proc/{process}/task").glob("*/children")]
    except OSError:
        return []
    return [int(word) for text in tasks for word in text.split()]


def words(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def session(process: int) -> int:
    try:
        return os.getsid(process)
    except OSError:
        return -1
