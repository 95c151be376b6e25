"""Every command that a summary prints works when it is typed, and shows the same."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import write_case
from command import Command
from venvs import python_with

from harness.toolkits import Installed

pytestmark = pytest.mark.compilers

REFUSED = "#include <scale.h>\n__global__ void k(float *a) { undefined_function(a); }\n"
TEXTS = """\
import cupy

scale = cupy.RawKernel(r'''
extern "C" __global__ void scale(float *a) { undefined_function(a); }
''', "scale")
add = cupy.RawKernel('extern "C" __global__ void add(float *a) { *a += 1; }', "add")
"""
NUMBA = """\
from numba import cuda


@cuda.jit("void(float32[:])")
def scale(a):
    undefined_function(a)
"""


@pytest.fixture
def place(cumatrix: Command, tmp_path_factory: pytest.TempPathFactory, toolkit: Callable[[str], Installed]) -> Path:
    """A folder with programs, next to a folder with others."""
    toolkit("12.9")
    away = tmp_path_factory.mktemp("away")
    for folder in (cumatrix.folder, away):
        (folder / "include").mkdir()
        (folder / "include" / "scale.h").write_text("#define SCALE 2\n")
        (folder / "my kernel.cu").write_text(REFUSED)
        (folder / "texts.py").write_text(TEXTS)
        (folder / "numba_kernel.py").write_text(NUMBA)
    write_case(cumatrix.folder / "own", "demo/refused", REFUSED.partition("\n")[2], "[parameters]\nn = [1, 2]\n")
    return away


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("try", "my kernel.cu", "-I", "include", "-DN=1", "-lineinfo", "-b", "nvrtc"),
        ("try", "{away}/my kernel.cu", "-I", "{away}/include", "-b", "nvrtc"),
        ("try", "texts.py", "-b", "nvrtc"),
        ("try", "texts.py:scale", "-b", "nvrtc"),
        ("try", "{away}/texts.py:scale", "-b", "nvrtc"),
        ("try", "numba_kernel.py", "--python", "{numba}"),
        ("try", "numba_kernel.py", "--with", "numba=0.61.2"),
        ("run", "demo", "--cases", "own", "-b", "nvrtc"),
    ],
    ids=" ".join,
)
def test_commands_of_a_summary(cumatrix: Command, place: Path, words: tuple[str, ...]) -> None:
    names = {"away": str(place), "numba": python_with("numba==0.61.2") if "{numba}" in words else ""}
    asked = [word.format(**names) for word in words]
    first = cumatrix(*asked, "-t", "12.9", "-a", "sm_80", "--out", "records.jsonl")
    assert first.returncode == 1, first.stderr
    assert "undefined_function" in first.stderr
    commands = re.findall(r"^ +again: (cumatrix .+)$", first.stderr, re.MULTILINE)
    assert commands
    for command in commands:
        done = cumatrix(*shlex.split(command)[1:])
        assert (done.returncode, "undefined_function" in done.stderr) == (1, True), (command, done.stderr)
    (refused, *others) = [
        record
        for record in map(json.loads, (cumatrix.folder / "records.jsonl").read_text().splitlines())
        if record.get("status") == "rejected"
    ]
    assert len({record["case"] for record in (refused, *others)}) == 1
    program: tuple[str, ...] = (
        ("--program", f"{place}/{Path(asked[1]).name.partition(':')[0]}") if "@" in refused["case"] else ()
    )
    program += ("-I", f"{place}/include") if "{away}/include" in words else ()
    cases = ("--cases", "own") if words[0] == "run" else ()
    repro = ("repro", refused["cell"], "--results", "records.jsonl", "--out", "repro", *program, *cases)
    done = cumatrix(*repro)
    assert done.returncode == 0, done.stderr
    assert "undefined" in (cumatrix.folder / "repro" / "README.md").read_text()
