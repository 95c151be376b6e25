"""Jitify's cells with a precompiled header: the programs that use it, and equality of everything but time."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.backends.cupy.backend import options_of
from harness.backends.cupy.pch import PREFIX, Precompiled, Program, macros
from harness.nvidia import pch
from harness.nvidia.includes import Words, words_of
from harness.protocol.backend import Job, Setup
from harness.protocol.messages import Options
from harness.toolkits import Installed
from harness.toolkits.store import data_folder

ROOT = Path(__file__).parents[2]
OPTIONS = ["--std=c++11", "-DCUPY_USE_JITIFY", "-arch=sm_80"]
WORDS = Words([b"size_t _CCCL_STD"])


def test_macros_stand_behind_the_header_as_the_command_line_has_them() -> None:
    asked = [*OPTIONS[:1], "-DN=16", "-DTYPE=unsigned int", "-DFLAG", "-DNOTHING=", *OPTIONS[1:]]
    defined = "#define N 16\n#define TYPE unsigned int\n#define FLAG 1\n#define NOTHING \n#line 2\n"
    assert macros(PREFIX + "code", asked, OPTIONS, WORDS) == defined
    assert macros(PREFIX + "code", OPTIONS, OPTIONS, WORDS) == ""
    # A header for these options also fits equivalent options.
    assert macros(PREFIX + "code", ["-arch=sm_80", *OPTIONS], OPTIONS, WORDS) == ""
    dc, rdc = [*OPTIONS, "--device-c"], ["--relocatable-device-code=true", *OPTIONS]
    assert macros(PREFIX + "code", rdc, dc, WORDS) == ""
    assert macros(PREFIX + "code", rdc, OPTIONS, WORDS) is None


@pytest.mark.parametrize(
    "macro",
    [
        "-Dsize_t=int",
        "-D__CUDA_ARCH__=1",
        "-DF(x)=x",
        "-DN=1 // one",
        "-DN=/*",
        "-DN=a\\",
        "-DN=1\n#error",
        "-DN=1\r#error",
        "-DN=1??/",
        "-DN=__LINE__",
        "-DCUPY_USE_JITIFY=2",
        "-DÉ=1",
    ],
)
def test_a_macro_that_could_mean_something_else_there_is_left_to_jitify(macro: str) -> None:
    assert macros(PREFIX + "code", [*OPTIONS, macro], OPTIONS, WORDS) is None


def test_so_is_a_macro_that_is_given_twice_or_where_the_words_of_headers_are_not_known() -> None:
    assert macros(PREFIX + "code", [*OPTIONS, "-DN=1", "-DN=2"], OPTIONS, WORDS) is None
    assert macros(PREFIX + "code", [*OPTIONS, "-DN=1"], OPTIONS, Words([])) is None


def test_so_is_a_program_of_other_options_or_without_the_header() -> None:
    assert macros(PREFIX + "code", ["--std=c++17", *OPTIONS[1:]], OPTIONS, WORDS) is None
    assert macros(PREFIX + "code", [*OPTIONS, "-G"], OPTIONS, WORDS) is None
    assert macros("code", OPTIONS, OPTIONS, WORDS) is None


@pytest.mark.parametrize(
    "text",
    [
        "#pragma once\n",
        "# pragma unroll\n",
        '_Pragma("unroll")',
        "#pragma unroll \\\n 4\n",
        "#prag\\\nma once\n",
        "#define F \\\n#pragma unroll\n",
        "#define F \\ \n#pragma unroll\n",
        'R"(\n#pragma unroll\n)"',
    ],
)
def test_so_is_a_program_that_jitify_writes_another_way(text: str) -> None:
    assert macros(PREFIX + text, OPTIONS, OPTIONS, WORDS) is None
    assert macros(PREFIX + "#pragma unroll\n  #pragma unroll 4\nfor\n", OPTIONS, OPTIONS, WORDS) == ""


@pytest.mark.parametrize("text", ["#if __LINE__ == 3", "__LI\\\nNE__", "__builtin_LINE()", "a ## b", "a %:%: b", "??="])
def test_so_is_a_program_that_may_depend_on_where_it_stands(text: str) -> None:
    assert macros(PREFIX + text, OPTIONS, OPTIONS, WORDS) is None


@pytest.mark.parametrize(
    ("text", "options", "once"),
    [
        (PREFIX + "code", ["--std=c++17", "-DN=8", "-Dsize_t=int", "-I/folder"], True),
        (PREFIX + "code", ["-lineinfo"], False),
        (PREFIX + "code", ["-DN=__LINE__"], False),
        (PREFIX + "__LINE__", [], False),
        (PREFIX + "#pragma once", [], False),
        ("code", [], False),
        (PREFIX + "refused", [], False),
    ],
)
def test_a_program_without_a_header_is_compiled_once_where_that_is_all_that_jitify_does(
    text: str, options: list[str], once: bool
) -> None:
    """Tests with a fake NVRTC, which rejects one word, and a fake Jitify, which reports its calls."""
    compiled: list[tuple[str, tuple[str, ...]]] = []

    class Fault(Exception):
        """Fake of NVRTC."""

    def compile_program(program: str, given: tuple[str, ...]) -> None:
        compiled.append((program, given))
        if "refused" in program:
            raise Fault("NVRTC_ERROR_COMPILATION")

    nvrtc = SimpleNamespace(
        createProgram=lambda text, *_: text, compileProgram=compile_program, destroyProgram=lambda _: None,
        getProgramLog=lambda _: "", NVRTCError=Fault,
    )  # fmt: skip
    texts, names = [b"text"], [b"name"]
    program = Program(nvrtc, lambda *asked: ("Jitify", *asked), None, ("-ftz=true",), "", (texts, names), Words([]))
    every = (*(option for option in options if not option.startswith("-I")), "-ftz=true")
    said = program.jitify(f"name\n{text}", tuple(options))
    if not once:
        assert said == ("Jitify", f"name\n{text}", tuple(options))
        assert not program.calls
        return
    assert said == ("name", every, texts, names)
    assert compiled == [(text, every)]
    # CuPy's own call reuses the compiled program.
    made = program.createProgram(text, "name", texts, names)
    program.compileProgram(made, every)
    assert compiled == [(text, every)]
    assert program.calls == [("-ftz=true", *every[:-1])]


@pytest.mark.parametrize(
    ("options", "compiled"),
    [
        ({"std": "c++17", "rdc": True, "flags": ["--use_fast_math"]}, True),
        ({"lineinfo": True}, False),
        ({"flags": ["--create-pch=/tmp/x"]}, False),
        ({"flags": ["-I/tmp"]}, False),
        ({"flags": ["--std=c++17", "-DN"]}, False),
        ({"debug": True}, False),
        ({"ptxas": ["--verbose"]}, False),
    ],
)
def test_what_is_kept_from_nothing_is_given_plain_options_alone(
    options: Options, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fake NVRTC, which only has to exist."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    nvrtc = SimpleNamespace(
        createProgram=lambda *_: 1, compileProgram=lambda *_: None, getProgramLog=lambda _: "", destroyProgram=lambda _: None
    )  # fmt: skip
    headers = Precompiled(SimpleNamespace(nvrtc=nvrtc), SimpleNamespace(jitify=None), {})
    setup = Setup(tmp_path, "12.9", "12.9", [], tmp_path)
    job = Job("case", tmp_path / "kernel.cu", {}, {}, "sm_80", options, [])
    monkeypatch.setattr(pch, "_ROOM", 0)
    asked = options_of(setup, job, job.target)
    for _ in range(2):
        headers.ahead(job, asked, 0, lambda _: (tmp_path / "compiled").touch(), lambda: None)
    assert (tmp_path / "compiled").exists() is compiled


def test_the_headers_used_last_are_kept_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fake NVRTC, which creates empty headers."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(pch, "_ROOM", 0)

    def compiled(_program: int, options: tuple[str, ...]) -> None:
        for option in options:
            if option.startswith("--create-pch="):
                Path(option.partition("=")[2]).write_text("")

    nvrtc = SimpleNamespace(
        createProgram=lambda *_: 1, compileProgram=compiled, getProgramLog=lambda _: "using precompiled header", destroyProgram=lambda _: None
    )  # fmt: skip
    jitify = SimpleNamespace(jitify=lambda _text, options: ("headers.cu", options, [], []))
    headers = Precompiled(SimpleNamespace(nvrtc=nvrtc), jitify, {})

    def asked(target: str) -> None:
        job = Job("case", tmp_path / "kernel.cu", {}, {}, target, {}, [])
        headers.ahead(job, [], 0, lambda _: jitify.jitify("", (f"-arch={target}",)), lambda: None)

    made = []
    for target in ("sm_80", "sm_80", "sm_90", "sm_90", "sm_80", "sm_100", "sm_100", "sm_90", "sm_90"):
        asked(target)
        kept = headers._store._kept.values()
        made.append([said["options"][0].removeprefix("-arch=") for _, said in kept])
        assert sorted(tmp_path.rglob("header.pch")) == sorted(Path(path) for path, _ in kept)
    assert made == [
        [], ["sm_80"], ["sm_80"], ["sm_80", "sm_90"], ["sm_90", "sm_80"], ["sm_90", "sm_80"], ["sm_80", "sm_100"],
        ["sm_80", "sm_100"], ["sm_100", "sm_90"],
    ]  # fmt: skip


def test_what_jitify_adds_is_asked_once_for_a_cell_that_is_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a fake NVRTC and a fake Jitify, which adds an option."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(pch, "_ROOM", 0)
    nvrtc = SimpleNamespace(
        createProgram=lambda *_: 1, compileProgram=lambda *_: None, getProgramLog=lambda _: "", destroyProgram=lambda _: None
    )  # fmt: skip

    def asked(text: str, options: tuple[str, ...]) -> tuple[str, tuple[str, ...], list[bytes], list[bytes]]:
        with open(tmp_path / "asked", "a") as file:
            file.write(text + "\n")
        return "headers.cu", (*options, "-ftz=true"), [b"text"], [b"name"]

    jitify = SimpleNamespace(jitify=asked)
    headers = Precompiled(SimpleNamespace(nvrtc=nvrtc), jitify, {b"name": b"text"})
    job = Job("case", tmp_path / "kernel.cu", {}, {}, "sm_80", {}, [])
    assert headers.stand_before(SimpleNamespace(), jitify, job) is None
    for target in ("sm_80", "sm_90"):
        alone = Job("case", tmp_path / "kernel.cu", {}, {}, target, {}, [])
        headers.ahead(alone, [], 0, lambda _: jitify.jitify("", ("-arch=sm_80",)), lambda: None)
    assert (tmp_path / "asked").read_text() == "headers.cu\n\n"
    program = headers.stand_before(SimpleNamespace(), SimpleNamespace(jitify=asked), job)
    assert program
    assert program.jitify(f"name\n{PREFIX}code", ("-arch=sm_80",))[1] == ("-arch=sm_80", "-ftz=true")


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


@pytest.mark.slow
@pytest.mark.compilers
@pytest.mark.timeout(900)
def test_every_program_comes_to_the_same_with_and_without(
    venv: Callable[..., str], toolkit: Callable[[str], Installed]
) -> None:
    """The benchmark compiles each program both ways, and stops if status, artifact, log or command differ."""
    toolkit("12.9")
    done = subprocess.run(
        [venv("cupy-cuda12x==13.6.0"), "benchmarks/jitify.py", "--rounds", "1", "--home", str(data_folder())],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    statuses = [line.split("   ")[1] for line in done.stdout.splitlines()[1:]]
    assert statuses.count("built") == 4
    assert {"rejected (compile)", "rejected (assemble)"} < set(statuses)
