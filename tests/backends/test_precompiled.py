"""Jitify's cells with a precompiled header: which programs it is for, and that nothing but time depends on it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.backends.cupy.precompiled_program import PREFIX, macros, words_of
from harness.toolkits import Installed
from harness.toolkits.store import data_folder

ROOT = Path(__file__).parents[2]
OPTIONS = ["--std=c++11", "-DCUPY_USE_JITIFY", "-arch=sm_80"]
WORDS = {b"size_t", b"_CCCL_STD"}


def test_macros_stand_behind_the_header_as_the_command_line_has_them() -> None:
    asked = [*OPTIONS[:1], "-DN=16", "-DTYPE=unsigned int", "-DFLAG", "-DNOTHING=", *OPTIONS[1:]]
    defined = "#define N 16\n#define TYPE unsigned int\n#define FLAG 1\n#define NOTHING \n"
    assert macros(PREFIX + "code", asked, OPTIONS, WORDS) == defined
    assert macros(PREFIX + "code", OPTIONS, OPTIONS, WORDS) == ""


@pytest.mark.parametrize(
    "macro", ["-Dsize_t=int", "-D__CUDA_ARCH__=1", "-DF(x)=x", "-DN=1 // one", "-DN=/*", "-DN=a\\", "-DN=1\n#error"]
)
def test_a_macro_that_could_mean_something_else_there_is_left_to_jitify(macro: str) -> None:
    assert macros(PREFIX + "code", [*OPTIONS, macro], OPTIONS, WORDS) is None


def test_so_is_a_program_of_other_options_or_without_the_header() -> None:
    assert macros(PREFIX + "code", ["--std=c++17", *OPTIONS[1:]], OPTIONS, WORDS) is None
    assert macros(PREFIX + "code", [*OPTIONS, "-G"], OPTIONS, WORDS) is None
    assert macros("code", OPTIONS, OPTIONS, WORDS) is None


@pytest.mark.parametrize(
    "text", ["#pragma once\n", "# pragma unroll\n", '_Pragma("unroll")', "#pragma unroll \\\n 4\n"]
)
def test_so_is_a_program_that_jitify_writes_another_way(text: str) -> None:
    assert macros(PREFIX + text, OPTIONS, OPTIONS, WORDS) is None
    assert macros(PREFIX + "#pragma unroll\n  #pragma unroll 4\nfor\n", OPTIONS, OPTIONS, WORDS) == ""


def test_words_are_what_a_macro_could_change() -> None:
    text = b"""\
// a comment's N, and /* M */
#define TWICE(x, N) ((N) + x \\
    + other)
#ifdef FLAG /* of
several lines */
const char *kept = "// in quotes"; int c = '"'; // gone
#endif
"""
    names = {"define", "TWICE", "other", "ifdef", "FLAG", "endif", "const", "char", "kept", "in", "quotes", "int", "c"}
    assert words_of(text) == {name.encode() for name in names} - {b"define"}


@pytest.mark.compilers
@pytest.mark.timeout(900)
def test_every_program_comes_to_the_same_with_and_without(
    venv: Callable[..., str], toolkit: Callable[[str], Installed]
) -> None:
    """The benchmark compiles each program both ways, and stops where status, artifact, log or command differ."""
    toolkit("12.9")
    done = subprocess.run(
        [venv("cupy-cuda12x==13.6.0"), "benchmarks/jitify.py", "--rounds", "1", "--home", str(data_folder())],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = [line.split("   ")[1] for line in done.stdout.splitlines()[1:]]
    assert statuses.count("built") == 4
    assert {"rejected (compile)", "rejected (assemble)"} < set(statuses)
