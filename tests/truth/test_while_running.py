"""Changes during a run: every stored answer is true of the state before or after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli.main import cumatrix

from .changes import put
from .pair import KERNEL, KERNEL_PY, ONE, TWO, Pair
from .site import Site, short, told

pytestmark = pytest.mark.compilers

TARGETS = "sm_70,sm_75,sm_80,sm_86,sm_89,sm_90"
CASE = 'title = "made"\n[source]\n{} = "{}"\n{}[parameters]\nM = [1, 2, 3, 4]\n'
INCLUDE = '[[options]]\nflags = ["-I@here@/inc"]\n'
IN = "cases/made/one/"
# Headers that slow a cell down enough for other changes to happen during it.
SLOW = "#include <mma.h>\n#include <cuda_fp16.h>\n"

PROGRAMS = {
    "source": ("nvrtc", "kernel.cu", {IN + "kernel.cu": SLOW + ONE + KERNEL}, IN + "kernel.cu", SLOW + "broken"),
    "header": ("nvrtc", "kernel.cu", {IN + "kernel.cu": SLOW + '#include "n.h"\n' + KERNEL, "inc/n.h": ONE}, "inc/n.h", '#error "no"\n'),
    "helper": ("numba", "kernel.py", {IN + "kernel.py": "from helper import N\n" + KERNEL_PY, IN + "helper.py": "N = 1\n"}, IN + "helper.py", "N = missing\n"),
}  # fmt: skip


def site_of(name: str, folder: Path, patch: pytest.MonkeyPatch) -> Site:
    backend, program, files, *_ = PROGRAMS[name]
    python = program.endswith(".py")
    table = CASE.format(
        "python" if python else "cuda", program, '[entry]\npython = { k = "void(int32[:])" }\n' if python else ""
    ) + ("" if python else INCLUDE)
    pair = Pair(
        name=name,
        backends=(backend,),
        files={**files, IN + "case.toml": table},
        change=(),
        command=("run", "--cases", "@here@/cases"),
    )
    return Site(pair, backend, folder, patch)


def argv(site: Site, *more: str) -> list[str]:
    return [TARGETS if word == "sm_80" else word for word in site.argv(*more)]


def records(site: Site, *more: str) -> dict[str, dict[str, Any]]:
    done = CliRunner().invoke(cumatrix, argv(site, *more), standalone_mode=False)
    assert done.exception is None, done.exception
    return {record["cell"]: record for record in map(json.loads, done.stdout.splitlines())}


def holds(site: Site) -> None:
    """Each cell is answered as if there had been no run before."""
    answered, true = records(site), records(site, "--no-cache")
    wrong = [f"{name}: true is {short(true[name])}; the answer was {short(record)}" for name, record in answered.items()
             if told(record) != told(true[name])]  # fmt: skip
    assert answered.keys() == true.keys() and not wrong, f"{len(wrong)} of {len(true)} cells: {wrong[:3]}"


def replace(path: Path, text: str) -> None:
    """Replace the text of a file atomically."""
    beside = path.with_name(f".{path.name}.new")
    put(beside, text)
    os.replace(beside, path)


def wait_for(running: subprocess.Popen[bytes], out: Path, count: int) -> None:
    """Wait until there are so many records."""
    while running.poll() is None and (not out.exists() or len(out.read_bytes().splitlines()) < count):
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_broken_for_a_while_and_mended(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site_of(name, tmp_path, monkeypatch)) as site:
        site.before()
        *_, file, broken = PROGRAMS[name]
        path, out = site.path(file), tmp_path / "records.jsonl"
        good = path.read_text()
        command = Path(sys.executable).with_name("cumatrix")
        running = subprocess.Popen(
            [command, *argv(site, "--out", str(out))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )  # fmt: skip
        try:
            wait_for(running, out, 3)
            replace(path, broken)
            wait_for(running, out, 12)
            replace(path, good)
            running.wait(300)
        finally:
            running.kill()
            running.wait()
        seen = {json.loads(line)["status"] for line in out.read_text().splitlines()}
        assert seen == {"built", "rejected"}, "the run was over before the file was broken: this shows nothing"
        holds(site)
        replace(path, broken)
        holds(site)


@pytest.mark.slow
def test_a_header_that_changes_all_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(site_of("header", tmp_path, monkeypatch)) as site:
        site.before()
        path, over = site.path("inc/n.h"), threading.Event()

        def change() -> None:
            while not over.is_set():
                for text in (ONE, TWO):
                    replace(path, text)
                    over.wait(0.03)

        thread = threading.Thread(target=change)
        thread.start()
        try:
            found = records(site)
        finally:
            over.set()
            thread.join()
        assert {record["status"] for record in found.values()} == {"built"}
        for text in (ONE, TWO):
            replace(path, text)
            holds(site)


@contextmanager
def at_second_call(site: Site, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Act when the host compiler is called for the second time; yield the processes that called it.

    A cell writes only into its own folder, so the compiler stops itself, and the test resumes it from outside.
    """
    compiler, over, called = site.here / "my" / "g++", threading.Event(), list[int]()
    put(compiler, """#!/bin/sh
case "$*" in *--version*) ;; *) kill -STOP $$;; esac
exec /usr/bin/g++ "$@"
""")  # fmt: skip
    monkeypatch.setenv("NVCC_CCBIN", str(compiler))

    def watch() -> None:
        while not over.wait(0.01):
            for pid in stopped(str(compiler)):
                called.append(pid)
                if len(called) == 2:
                    act()
                os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield called
    finally:
        over.set()
        thread.join()


def stopped(program: str) -> list[int]:
    """Return the stopped processes of a shell script."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_it = program in (folder / "cmdline").read_text().split("\0")
            if is_it and (folder / "stat").read_text().rpartition(")")[2].split()[0] == "T":
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue  # it has ended
    return found


@pytest.mark.slow
def test_a_header_that_changes_between_two_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc reads the header for the device and for the host; an artifact of two states is an answer to neither."""
    pair = Pair(
        name="passes",
        backends=("nvcc",),
        files={"kernel.cu": '#include "n.h"\n' + KERNEL, "n.h": ONE},
        change=(),
        host=True,
    )
    with closing(Site(pair, "nvcc", tmp_path, monkeypatch)) as site:
        site.before()
        header = site.path("n.h")
        with at_second_call(site, lambda: replace(header, TWO), monkeypatch) as called:
            site.run()
            assert len(called) >= 2, "the header was not changed: this shows nothing"
            for text in (TWO, ONE):
                replace(header, text)
                answered, true = site.run(), site.run("--no-cache")
                assert told(answered) == told(true), f"true is {short(true)}; the answer was {short(answered)}"
