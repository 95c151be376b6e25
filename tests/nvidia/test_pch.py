"""Precompiled headers for the beginning of programs: conditions, and equality of everything but time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.nvidia import pch
from harness.nvidia.includes import Words
from harness.nvidia.pch import Early, Precompiled, behind
from harness.protocol import process_output, reads
from harness.protocol.backend import Job, Setup
from harness.protocol.messages import Options
from harness.toolkits import Installed
from harness.toolkits.store import data_folder

ROOT = Path(__file__).parents[2]
CASE = """\
title = "Traps for precompiled headers"
[source]
cuda = "kernel.cu"
[parameters.form]
built = { FORM = 0 }
warned = { FORM = 1 }
refused = { FORM = 2 }
line = { FORM = 3 }
again = { FORM = 4 }
hidden = { FORM = 5 }
assembler = { FORM = 6 }
"""
PROGRAM = """\
// Traps.
#include <cooperative_groups.h> // dear
#if FORM == 5
namespace {
__device__ int kept;
__global__ void f(int *a) { a[0] = kept; }
}
#else
#if FORM == 4
#define FORM 4 + 0
#endif
#if FORM == 6
#define MANY 13000
#else
#define MANY 16
#endif
extern "C" __global__ void f(int *a)
{
    __shared__ int b[MANY];
#if FORM == 1
    int unused;
#elif FORM == 2
    cooperative_groups::this_grid().synchronise();
#elif FORM == 3
    static_assert(__LINE__ == 0, "here");
#endif
    b[threadIdx.x] = a[threadIdx.x] + FORM;
    cooperative_groups::this_thread_block().sync();
    a[threadIdx.x] = b[MANY - 1 - threadIdx.x];
}
#endif
"""
# A script for a separate interpreter that loads NVRTC; it prints the options of each compilation, and the last result.
USED = """\
import json, sys
from pathlib import Path
from harness.backends.nvrtc import NvrtcBackend
from harness.protocol import reads
from harness.protocol.backend import Job, Setup
home, folder = map(Path, sys.argv[1:])
setup = Setup(home, "12.9", "12.9", [str(home / "include")], folder)
backend = NvrtcBackend()
backend.prepare(setup)
reads.followed, reads.send_to = lambda: True, lambda _: True
asked, compile_program = [], backend.nvrtc.compile
def compiled(text, name, options):
    asked.append([option.partition("=")[0] for option in options if "pch" in option])
    return compile_program(text, name, options)
backend.nvrtc.compile = compiled
job = Job("cell", folder / "kernel.cu", {}, {"FORM": 0}, "sm_90", {}, setup.include, scratch=folder)
made = []
for alike in (0, 5):
    backend.ahead(setup, job, alike, lambda: None)
    asked.clear()
    backend.compile(setup, job)
    made.append([asked[:], Path(job.artifact.path).read_bytes().hex()])
assert made[0][1] == made[1][1]
print(json.dumps([each[0] for each in made]))
"""


@pytest.mark.parametrize(
    ("alike", "options", "definitions", "text", "compiled"),
    [
        (5, {"std": "c++17", "rdc": True}, {"N": 1}, "#include <mma.h>\n", True),
        (1, {}, {}, "#include <mma.h>\n", False),
        (-1, {}, {}, "#include <mma.h>\n", False),
        (5, {}, {}, '#include "mma.h"\n', False),
        (5, {"toolkit_headers": False}, {}, "#include <mma.h>\n", False),
        (5, {"flags": ["-I/tmp"]}, {}, "#include <mma.h>\n", False),
    ],
)
def test_a_header_is_made_where_it_is_worth_it(
    alike: int,
    options: Options,
    definitions: dict[str, int],
    text: str,
    compiled: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fake NVRTC, which creates no header."""
    monkeypatch.setattr(pch, "_ROOM", 0)
    monkeypatch.setattr(reads, "followed", lambda: True)
    monkeypatch.setattr(process_output, "helper_folder", lambda: tmp_path)
    precompiled = Precompiled(lambda *_: (True, ""))
    source = tmp_path / "kernel.cu"
    source.write_text(text)
    setup = Setup(tmp_path, "12.9", "12.9", ["/include"], tmp_path)
    job = Job("cell", source, {}, dict(definitions), "sm_80", options, ["/include"])
    asked = tmp_path / "asked"

    def compile_job(blank: Job) -> None:
        asked.write_text(f"{blank.definitions} {blank.source.read_text()}")
        precompiled.early(setup, blank, blank.source.read_bytes(), ["-lineinfo", "-DN=1"], [])

    precompiled.ahead(setup, job, alike, compile_job, lambda: None)
    assert asked.exists() is compiled
    assert not compiled or asked.read_text() == "{} #include <mma.h>\n"
    assert precompiled.early(setup, job, source.read_bytes(), [], []) is None


def test_none_is_made_for_macros_that_were_found_in_the_headers_for_another_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fake NVRTC, and headers that contain one word."""
    monkeypatch.setattr(reads, "followed", lambda: True)
    source = tmp_path / "kernel.cu"
    source.write_text("#include <mma.h>\n")
    setup = Setup(tmp_path, "12.9", "12.9", ["/include"], tmp_path)
    precompiled, made = Precompiled(lambda *_: (True, "")), list[tuple[str, ...]]()

    def make(_key: str, job: Job, *_others: object) -> bool:
        made.append((job.target, *job.definitions))
        return True

    monkeypatch.setattr(precompiled, "_make", make)
    monkeypatch.setattr(precompiled, "_words_of", lambda _: Words([b"NEW"]))
    for target in ("sm_80", "sm_90"):
        for name in ("NEW", "N"):
            job = Job("cell", source, {}, {name: 1}, target, {}, ["/include"])
            precompiled.ahead(setup, job, 9, lambda _: None, lambda: None)
    assert made == [("sm_80", "NEW"), ("sm_80", "N"), ("sm_90", "N")]


def test_nvrtc_is_not_asked_for_a_header_without_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC writes headers through memory, which ends the fork server on a full disk. This NVRTC is a fake."""
    monkeypatch.setattr(reads, "followed", lambda: True)
    asked: list[object] = []

    def compile_program(*given: object) -> tuple[bool, str]:
        asked.append(given)
        return True, ""

    source = tmp_path / "kernel.cu"
    source.write_text("#include <mma.h>\n")
    setup = Setup(tmp_path, "12.9", "12.9", ["/include"], tmp_path)
    job = Job("cell", source, {}, {}, "sm_80", {}, ["/include"])
    monkeypatch.setattr(pch, "_ROOM", 1 << 60)
    Precompiled(compile_program).ahead(setup, job, 5, lambda _: None, lambda: None)
    assert not asked
    with pytest.raises(OSError, match="No space left"):
        pch.Store()


@pytest.mark.parametrize(
    ("log", "made", "defines", "usable"),
    [
        ("", b"", False, True),
        ("Warning #629-D: the command line options do not match those used when precompiled header …", b"", False, False),
        ('warning #47-D: incompatible redefinition of macro "N" (declared at line 2)', b"", True, False),
        ('warning #47-D: incompatible redefinition of macro "N" (declared at line 2)', b"", False, True),
        ("", b".global _ZN44_INTERNAL_00000000_9_kernel_cu_212e017f_681418cooperative_groups", False, False),
        ("", b".global _ZN32_INTERNAL_00000000_9_kernel_cu_k18cooperative_groups4__v1", False, True),
    ],
)  # fmt: skip
def test_what_may_come_out_otherwise_without_a_header_is_compiled_without(
    log: str, made: bytes, defines: bool, usable: bool
) -> None:
    assert Early(b"", (), "", defines).usable(log, made) is usable


def test_the_log_of_a_program_stands_behind_that_of_its_header() -> None:
    own = "nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated\n"
    assert behind("", "error") == "error"
    assert behind(f"{own}header\n", f"{own}error") == f"{own}header\nerror"
    assert behind(own, own) == own


@pytest.mark.compilers
def test_a_program_is_compiled_with_it(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-c", USED, str(toolkit("12.9").home), str(tmp_path)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == '[[[]], [["--use-pch", "--pch-messages"]]]\n', done.stderr


# Without a macro.
PLAIN = """\
#include <cooperative_groups.h>
extern "C" __global__ void f(int *a) { a[0] = {number} + cooperative_groups::this_grid().size(); }
"""


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "cases",
    [
        {"traps": (CASE, PROGRAM)},
        {
            f"plain-{number}": ('title = "Plain"\nsource.cuda = "kernel.cu"\n', PLAIN.replace("{number}", str(number)))
            for number in range(7)
        },
    ],
    ids=["macros", "none"],
)
def test_records_are_the_same_with_and_without(
    cases: dict[str, tuple[str, str]], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.9")
    for name, (case, program) in cases.items():
        folder = tmp_path / "cases" / "headers" / name
        folder.mkdir(parents=True)
        (folder / "case.toml").write_text(case)
        (folder / "kernel.cu").write_text(program)
    done = subprocess.run(
        [sys.executable, "benchmarks/precompiled.py", "--cases", str(tmp_path / "cases"), "-b", "nvrtc", "-t", "12.9", "-a", "sm_60", "-j", "1"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_DATA_HOME": str(data_folder().parent)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("7 cells are the same\n")
