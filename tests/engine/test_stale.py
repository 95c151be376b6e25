"""Changes of any input lead to a new compilation, and unchanged cells are answered from the cache."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cells import write_case
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

KERNEL = '#include "own.h"\n__global__ void one(int *a) {{ *a = OWN + {}; }}\n'
HEADER = "#define OWN 7\n"
TIMES = {
    "time": KERNEL.format("sizeof(__TIME__)"),
    "date": KERNEL.format("sizeof(__DATE__)"),
    "split": KERNEL.format("sizeof(__TI\\\nME__)"),
}
PLACES = {
    "file": KERNEL.format("sizeof(__FILE__)"),
}


class Library:
    """A folder of cases in a checkout; its runs share a cache."""

    def __init__(self, command: Command, root: Path, cache: Path) -> None:
        self.command, self.root, self.cache = command, root, cache

    def add(self, name: str, source: str, table: str = "") -> Path:
        write_case(self.root / "cases", name, source, table)
        header = self.root / "cases" / name / "own.h"
        header.write_text(HEADER)
        return header

    def cached(self, *arguments: str, **variables: str) -> dict[str, bool]:
        """Return, for each case, whether the cache answered it."""
        out, words = self.root / "out.jsonl", arguments or ("-b", "nvrtc", "-t", "12.4", "-a", "sm_80")
        command = Command(self.root)
        done = command("run", "*", *words, "--out", out, env={"CUMATRIX_CACHE": str(self.cache), **variables})
        assert done.returncode in (0, 1), done.stderr
        records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
        assert [record for record in records if record["status"] != "built"] == []
        return {record["case"]: record["cached"] for record in records}


@pytest.fixture
def library(cumatrix: Command, tmp_path: Path) -> Library:
    root = tmp_path / "checkout"
    root.mkdir()
    return Library(cumatrix, root, tmp_path / "cache")


def all_of(names: Mapping[str, bool], cached: bool) -> set[str]:
    return {name for name, was in names.items() if was is cached}


@pytest.mark.slow
def test_the_time_the_place_and_proc(library: Library, toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    toolkit("12.4")
    for name, source in TIMES.items():
        library.add(f"time/{name}", source)
    library.add("time/header", KERNEL.format(1)).write_text("#define OWN sizeof(__TIME__)\n")
    library.add("time/macro", KERNEL.format("sizeof(WHEN)"), '[parameters]\nWHEN = ["__TIME__"]\n')
    for name, source in PLACES.items():
        library.add(f"place/{name}", source)
    library.add("place/header", KERNEL.format(1)).write_text("#define OWN sizeof(__FILE__)\n")
    library.add("place/macro", KERNEL.format("sizeof(WHERE)"), '[parameters]\nWHERE = ["__FILE__"]\n')
    library.add("place/lineinfo", KERNEL.format(1), "[[options]]\nlineinfo = true\n")
    library.add("plain/one", KERNEL.format(1))
    library.add("plain/names", KERNEL.format("0 /* __TIME, FILE__ */"))
    through = library.add("proc/root", "")
    through.with_name("kernel.cu").write_text(KERNEL.format(1).replace('"own.h"', f'"/proc/self/root{through}"'))
    link = '#if __has_include("/proc/self/cwd/none.h")\n#error\n#endif\n' + KERNEL.format(1)
    library.add("proc/cwd", link)
    never = {*(f"time/{name}" for name in TIMES), "time/header", "time/macro", "proc/cwd"}
    moves = {*(f"place/{name}" for name in PLACES), "place/header", "place/macro", "place/lineinfo", "proc/root"}
    plain = {"plain/one", "plain/names"}

    first = library.cached()
    assert all_of(first, True) == set()
    assert set(first) == never | moves | plain
    again = library.cached()
    assert all_of(again, True) == moves | plain
    # Touching a file is no change.
    for path in (library.root / "cases").rglob("*"):
        os.utime(path, (1, 1))
    assert all_of(library.cached(), True) == moves | plain
    through.write_text("#define OWN 8\n")
    assert all_of(library.cached(), True) == (moves | plain) - {"proc/root"}
    # The same files in another folder; one program names a header of the first folder.
    other = Library(library.command, tmp_path / "another checkout", library.cache)
    shutil.copytree(library.root, other.root)
    assert all_of(other.cached(), True) == plain


@pytest.mark.slow
def test_a_host_compiler_that_may_be_run_now(
    library: Library, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("13.0")
    real = shutil.which("gcc")
    assert real
    early = tmp_path / "early" / "gcc"
    early.parent.mkdir()
    early.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    early.chmod(0o644)
    library.add("plain/one", KERNEL.format(1))
    path = f"{early.parent}{os.pathsep}{os.environ['PATH']}"
    words = ("-b", "nvcc", "-t", "13.0", "-a", "sm_80")
    assert library.cached(*words, PATH=path) == {"plain/one": False}
    assert library.cached(*words, PATH=path) == {"plain/one": True}
    early.chmod(0o755)
    assert library.cached(*words, PATH=path) == {"plain/one": False}
