"""Every command that a summary prints works as typed, and shows the same."""

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

from harness.causes.catalogue import catalogue
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
    """Create a folder with programs, next to a folder with others."""
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
    told = cumatrix("explain", refused["cell"], "--results", "records.jsonl").stdout
    (command,) = re.findall(r"^To repeat this without cumatrix.*?: (cumatrix repro .+)$", told, re.MULTILINE)
    # Options that only the user can add.
    program = f"{place}/{Path(asked[1]).name.partition(':')[0]}"
    added = {"FILE": program, "DIR": "own" if words[0] == "run" else f"{place}/include"}
    done = cumatrix(*(added.get(word, word) for word in shlex.split(command)[1:]))
    assert done.returncode == 0, (command, done.stderr)
    (folder,) = cumatrix.folder.glob("repro-*")
    assert "undefined" in (folder / "README.md").read_text()


PRINTED = re.compile(r"`(cumatrix [^`\n]+)`|: (cumatrix \w+ .+)$", re.MULTILINE)
SMALL = {"CUMATRIX_BACKEND": "nvrtc", "CUMATRIX_TOOLKIT": "12.9", "CUMATRIX_TARGET": "sm_80"}


@pytest.fixture
def kernel(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    """Create a folder with a kernel, its record and its cubin."""
    toolkit("12.9")
    (cumatrix.folder / "kernel.cu").write_text("__global__ void k(float *a) { *a *= 2; }\n")
    done = cumatrix("try", "kernel.cu", "--out", "reports/r.jsonl", "--keep-artifacts", "kept", env=SMALL)
    assert done.returncode == 0, done.stderr


REMEDIES = sorted({words for cause in catalogue().values() for words, _ in PRINTED.findall(cause.remedy)})


@pytest.mark.parametrize("command", REMEDIES)
@pytest.mark.usefixtures("kernel")
def test_commands_of_remedies(cumatrix: Command, command: str) -> None:
    """Commands in remedies are valid; those that compile with every toolkit install nothing here."""
    (cubin,) = (cumatrix.folder / "kept").rglob("*.cubin")
    filled = {
        "CELL": "kernel.cu",
        "RELEASE": "12.9",
        "TARGET": "sm_80",
        "sm_XX": "sm_80",
        "LIBRARY": "cuda",
        "LOGFILE": "build.log",
    }
    (cumatrix.folder / "build.log").write_text('kernel.cu(1): error: identifier "a" is undefined\n')
    filled["FILE"] = str(cubin) if command.startswith("cumatrix wheel") else "kernel.cu"
    words = [filled.get(word, word) for word in shlex.split(command)[1:]]
    words += {
        "try": ["--offline", "-b", "nvrtc"], "bisect": ["--offline", "-b", "nvrtc", "--releases", "12.8,12.9"]
    }.get(words[0], [])  # fmt: skip
    done = cumatrix(*words, env=SMALL if words[0] == "try" and "-t" not in words else {})
    told = done.stdout + done.stderr
    assert done.returncode in (0, 1) or (done.returncode == 4 and "not installed" in told), told


@pytest.mark.parametrize(
    "words",
    [
        ("init",),
        ("config",),
        ("run",),
        ("cases", "new", "demo/scale"),
        ("cases", "copy", "shared-memory/static"),
        ("cases", "copy", "shared-memory/static", "--to", "my cases"),
        ("ask", "wmma"),
        ("explain", "kernel.cu"),
        ("try", "kernel.cu", "--offline", "-t", "12.9", "-b", "nvrtc"),
        ("doctor",),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("kernel")
def test_next_steps(cumatrix: Command, words: tuple[str, ...]) -> None:
    home = {"CUMATRIX_HOME": str(cumatrix.folder / "home")} if "--offline" in words else {}
    first = cumatrix(*words, env=SMALL | home)
    commands = [one or other for one, other in PRINTED.findall(first.stdout + first.stderr)]
    assert commands, first.stdout + first.stderr
    for command in dict.fromkeys(commands):
        if not (home and "install" in command):  # needs the network
            done = cumatrix(*shlex.split(command)[1:], env=SMALL)
            assert done.returncode in (0, 1), (command, done.stderr)
