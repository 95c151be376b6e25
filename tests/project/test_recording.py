"""``cumatrix init --record``: real builds with a recording nvcc."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Command
from venvs import python_with

from harness.project.recorder import Command as Line
from harness.project.recorder import is_recorded, read
from harness.toolkits import Installed


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-c a.cu -o a.o", Line(["a.cu"], output="a.o", objects=True)),
        ("-x cu -dc a.cpp -MD -o b/a.o", Line(["a.cpp"], output="b/a.o", objects=True, language="cu", depends="b/a.d")),
        ("-c a.cu -MD -MF x.d -I inc -DX=1 --keep", Line(["a.cu"], objects=True, depends="x.d")),
        ("-ptx a.cu -Xcompiler -fPIC", Line(["a.cu"], read=True)),
        ("-shared -o k.so a.cu b.o", Line(["a.cu", "b.o"], output="k.so", shared=True)),
        ("-dlink a.o b.o -o d.o", Line(["a.o", "b.o"], output="d.o", device_link=True)),
        ("--version", Line([], query=True)),
        ("-E a.cu", Line(["a.cu"], query=True)),
    ],
)
def test_lines_of_nvcc(line: str, found: Line) -> None:
    assert read(line.split()) == found


@pytest.mark.parametrize(
    ("line", "folder", "recorded"),
    [
        ("-c a.cu -o a.o", "/p/build", True),
        ("-c a.cpp -o a.o", "/p/build", False),
        ("-M a.cu -MF a.d", "/p/build", False),
        ("-E a.cu", "/p/build", False),
        ("-c CMakeCUDACompilerId.cu", "/p/build/CMakeFiles/3.31.6/CompilerIdCUDA", False),
        ("-c src.cu", "/p/build/CMakeFiles/CMakeScratch/TryCompile-x", False),
        ("-c /p/build/CMakeFiles/CMakeTmp/t.cu -o t.o", "/p/build", False),
        ("-c conftest.cu", "/p", False),
    ],
)
def test_what_is_recorded(line: str, folder: str, recorded: bool) -> None:
    assert is_recorded(read(line.split()), folder) == recorded


MAKEFILE = """\
all: libk.so tool k.ptx absolute.o host.o made.h
libk.so: k.cu
\tnvcc -shared -Xcompiler -fPIC -lcuda -isystem inc -DN=3 -gencode arch=compute_80,code=sm_80 -o libk.so k.cu
tool: tool.o
\tnvcc -o tool tool.o
tool.o: tool.cpp
\tnvcc -x cu -c tool.cpp -MD -o tool.o
\ttest -f tool.d
absolute.o: k.cu
\t$(CUDA_HOME)/bin/../bin/nvcc -DN=6 -DM -c k.cu -I not-there --options-file options.txt -o absolute.o
host.o: broken.cpp
\tc++ -fPIC -c broken.cpp -MMD -MF host.d -o host.o
\tgrep -q broken.cpp host.d
made.h: generator.cpp
\tg++ -c generator.cpp -o generator.o
\tg++ generator.o -o generator
\t./generator > made.h
\tgrep -q MADE made.h
k.ptx: k.cu
\tnvcc -ptx -isystem inc -DN=5 k.cu -o k.ptx
\tgrep -q entry k.ptx
"""


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def kernels(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the kernels of each program; every cell is built."""
    assert {record["status"] for record in records} == {"built"}, [record["log"] for record in records]
    return {record["case"]: sorted(each["name"] for each in record["artifact"]["kernels"]) for record in records}


@pytest.mark.compilers
def test_a_makefile(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("13.0")
    write(cumatrix.folder, {
        "Makefile": MAKEFILE,
        "inc/s.h": "#define S 1\n",
        "k.cu": """#include <s.h>
extern "C" __global__ void k(int *a) { *a = N * S; }
#ifdef M
template <class T> __global__ void t(T *a) { *a = M; }
void launch() { t<int><<<1, 1>>>(nullptr); t<float><<<1, 1>>>(nullptr); }
#endif
""",
        "options.txt": "-Iinc -std=c++17",
        "broken.cpp": "#error the host's objects of shared libraries are not compiled\n",
        "generator.cpp": '#include <cstdio>\nint main() { std::puts("#define MADE"); }\n',
        "tool.cpp": 'extern "C" __global__ void x(int *a) { *a = 1; }\nint main() {}\n',
    })  # fmt: skip
    asked = cumatrix("init", "--record", "--", "make")
    assert (asked.returncode, "confirm it with --yes" in asked.stderr) == (2, True)
    done = cumatrix("init", "--record", "--yes", "-t", "13.0", "--", "make")
    assert done.returncode == 0, done.stderr
    assert ".cumatrix/compile_commands.json: 4 units of `make`" in done.stderr
    assert ".cumatrix/kernels.json: 6 kernels in 4 units" in done.stderr
    assert "left out" not in done.stderr
    # The requested file exists; the program has no functions.
    subprocess.run(["test", "-x", "tool"], cwd=cumatrix.folder, check=True)
    entries = json.loads((cumatrix.folder / ".cumatrix" / "compile_commands.json").read_text())
    assert [entry["file"] for entry in entries] == ["k.cu", "tool.cpp", "k.cu", "k.cu"]
    assert entries[3]["arguments"] == ["nvcc", "-DN=6", "-DM", "-c", "k.cu", "-Iinc", "-std=c++17", "-o", "absolute.o"]
    assert "the project ships sm_80" in (cumatrix.folder / "cumatrix.toml").read_text()
    done = cumatrix("run", "-a", "sm_80,sm_90", "--where", 'case == "k.cu"', "--out", "other.jsonl")
    assert "sm_90: not in the project's own build, which ships sm_80" in done.stderr
    found = cumatrix.records("run", "-a", "sm_80")
    generic = ["_Z1tIfEvPT_", "_Z1tIiEvPT_"]
    assert kernels(found) == {"k.cu": ["k"], "k.cu (2)": ["k"], "k.cu (3)": [*generic, "k"], "tool.cpp": ["x"]}
    assert {record["case"]: "-isystem=" in record["command"][0] for record in found} == {
        "k.cu": True, "k.cu (2)": True, "k.cu (3)": False, "tool.cpp": False,
    }  # fmt: skip
    # Fewer kernels than in the build are not as expected.
    source = cumatrix.folder / "k.cu"
    source.write_text(source.read_text().replace("t<float><<<1, 1>>>(nullptr);", ""))
    done = cumatrix("run", "-a", "sm_80", "--where", 'case == "k.cu (3)"')
    assert (done.returncode, "2 kernels came out where at least 3 must" in done.stderr) == (1, True), done.stderr
    # A second recording contains them; the configuration stays.
    (cumatrix.folder / "absolute.o").unlink()
    before = (cumatrix.folder / "cumatrix.toml").read_text()
    done = cumatrix("init", "--record", "--yes", "-t", "13.0", "--", "make")
    assert done.returncode == 0, done.stderr
    assert "the recording before had 4 units" in done.stderr
    assert (cumatrix.folder / "cumatrix.toml").read_text() == before
    assert json.loads((cumatrix.folder / ".cumatrix" / "kernels.json").read_text()) == {
        "k.cu": 1,
        "k.cu (2)": 1,
        "k.cu (3)": 2,
    }


@pytest.mark.compilers
def test_a_build_that_fails_keeps_what_it_compiled(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("13.0")
    write(cumatrix.folder, {"k.cu": "__global__ void k() {}\n"})
    for words, code, sentence in (
        ("true", 3, "compiled no CUDA C++ with the nvcc of PATH"),
        ("exit 5", 3, "ended with 5 before it compiled any CUDA C++"),
        ("nvcc -c k.cu; exit 5", 1, "ended with 5: units that follow are missing"),
    ):
        done = cumatrix("init", "--record", "--yes", "--", "sh", "-c", words)
        assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert kernels(cumatrix.records("run", "-a", "sm_80")) == {"k.cu": ["_Z1kv"]}


@pytest.mark.compilers
def test_a_stranger_s_commands_need_trust(cumatrix: Command) -> None:
    command = {"directory": ".", "file": "k.cu", "arguments": ["nvcc", "-Xcompiler=-fplugin=./evil.so", "-c", "k.cu"]}
    write(cumatrix.folder, {
        "k.cu": "__global__ void k() {}\n",
        "commands.json": json.dumps([command]),
        "cumatrix.toml": 'commands = "commands.json"\n',
    })  # fmt: skip
    done = cumatrix("run", "-a", "sm_80")
    assert (done.returncode, "evil.so" in done.stderr) == (2, True), done.stderr


CMAKE = {
    "CMakeLists.txt": """\
cmake_minimum_required(VERSION 3.20)
project(demo LANGUAGES CXX CUDA)
set(CMAKE_CUDA_ARCHITECTURES 80)
set(WIDTH 4)
include(CheckFunctionExists)
check_function_exists(no_such_function MISSING)
if(MISSING)
  message(FATAL_ERROR "a test that must fail succeeds")
endif()
configure_file(include/config.h.in ${CMAKE_BINARY_DIR}/generated/config.h)
add_subdirectory(csrc)
""",
    "csrc/CMakeLists.txt": """\
add_custom_command(OUTPUT gen.cu COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/gen.cu.in gen.cu DEPENDS gen.cu.in)
add_library(kernels SHARED scale.cu deep/shift.cu ${CMAKE_CURRENT_BINARY_DIR}/gen.cu)
target_include_directories(kernels PRIVATE ../include ${CMAKE_BINARY_DIR}/generated)
target_compile_definitions(kernels PRIVATE FACTOR=3)
target_compile_options(kernels PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--use_fast_math>)
set_source_files_properties(deep/shift.cu PROPERTIES COMPILE_DEFINITIONS "SHIFT=7")
add_executable(tool main.cu)
target_link_libraries(tool kernels)
""",
    "include/config.h.in": "#define WIDTH @WIDTH@\n",
    "include/times.cuh": "template<int N> __device__ int times(int x) { return N * x; }\n",
    "csrc/scale.cu": """\
#include "config.h"
#include <times.cuh>
#ifdef FACTOR
template<int N> __global__ void scale(int *a) { *a = times<FACTOR>(*a) * N; }
void run(int *a) { scale<WIDTH><<<1, 1>>>(a); scale<2 * WIDTH><<<1, 1>>>(a); }
#endif
""",
    "csrc/deep/shift.cu": "#ifdef SHIFT\n__global__ void shift(int *a) { *a <<= SHIFT; }\n#endif\n",
    "csrc/gen.cu.in": "__global__ void generated(float *a) { *a = 1; }\n",
    "csrc/main.cu": "void run(int *);\n__global__ void m(int *a) { *a = 1; }\nint main() { run(nullptr); }\n",
}


@pytest.mark.slow
@pytest.mark.compilers
def test_cmake_with_generated_files_and_options_below(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("13.0")
    write(cumatrix.folder, CMAKE)
    cmake = Path(python_with("cmake==3.31.6", "ninja==1.11.1.4")).with_name("cmake")
    build = f"PATH={cmake.parent}:$PATH; cmake -B build -G Ninja && cmake --build build"
    done = cumatrix("init", "--record", "--yes", "-t", "13.0", "--no-kernels", "--", "sh", "-c", build)
    assert done.returncode == 0, done.stderr
    assert "left out" not in done.stderr
    found = cumatrix.records("run", "-a", "sm_80")
    assert kernels(found) == {
        "build/csrc/gen.cu": ["_Z9generatedPf"],
        "csrc/deep/shift.cu": ["_Z5shiftPi"],
        "csrc/main.cu": ["_Z1mPi"],
        "csrc/scale.cu": ["_Z5scaleILi4EEvPi", "_Z5scaleILi8EEvPi"],
    }
    # The build folder continues with the real nvcc.
    again = f"PATH={cmake.parent}:$PATH; rm -r build/csrc; cmake -B build && cmake --build build"
    subprocess.run(["sh", "-c", again], cwd=cumatrix.folder, check=True, capture_output=True)
    symbols = subprocess.run(
        ["nm", "build/csrc/libkernels.so"], cwd=cumatrix.folder, check=True, capture_output=True
    ).stdout
    assert b"_Z3runPi" in symbols
