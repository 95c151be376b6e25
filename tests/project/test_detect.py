"""Detection by `cumatrix init`, and the configuration that it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.model.case import RequiredKernels
from harness.project.config import read_config
from harness.project.detect import look
from harness.project.init import proposal
from harness.project.programs import configured

from .test_setup_py import SETUP


@pytest.fixture
def names(project: Path) -> None:
    (project / "csrc" / "scale.cu").write_text('#include "three.h"\n__global__ void scale(float *x) { *x *= THREE; }\n')


def _proposed(project: Path) -> dict[str, set[str]]:
    """Return the programs of the proposal by language, after writing and reading the configuration."""
    (project / "cumatrix.toml").write_text(proposal(look(project), ()))
    found: dict[str, set[str]] = {}
    for case in configured(read_config(project / "cumatrix.toml")):
        (language,) = case.sources
        found.setdefault(language, set()).add(case.name)
    return found


def test_loose_files_come_with_the_folders_of_their_headers(project: Path, names: None) -> None:
    seen = look(project)
    assert {"sources": ["csrc/scale.cu"], "include": ["include"]} in seen.programs
    assert {"sources": ["csrc/deep/shift.cu"]} in seen.programs
    assert _proposed(project) == {"cuda": {"csrc/scale.cu", "csrc/deep/shift.cu"}}


def test_a_header_of_the_system_is_not_taken_from_the_project(project: Path) -> None:
    # As llm.c has one for Windows, which no other system can read.
    (project / "windows").mkdir()
    (project / "windows" / "unistd.h").write_text("#include <direct.h>\n")
    (project / "csrc" / "scale.cu").write_text('#include <unistd.h>\n#include "three.h"\n')
    assert [table["include"] for table in look(project).programs if table["sources"] == ["csrc/scale.cu"]] == [
        ["include"]
    ]


def test_a_folder_of_one_kind_is_a_pattern(project: Path, names: None) -> None:
    (project / "csrc" / "more.cu").write_text('#include "three.h"\n')
    assert {"sources": ["csrc/*.cu"], "include": ["include"]} in look(project).programs


def test_an_extension_counts_before_its_files_and_says_what_is_left_out(project: Path) -> None:
    (project / "setup.py").write_text(SETUP)
    seen = look(project)
    (program,) = seen.programs
    assert (program["sources"], program["flags"]) == (["csrc/scale.cu", "csrc/deep/shift.cu"], ["-O3", "-DBITS=32"])
    assert "init --record" in seen.record
    assert any("os.environ['ARCH']" in text for text in seen.left_out)
    assert any("csrc/bind.cpp" in text for text in seen.left_out)
    assert _proposed(project) == {"torch": {"csrc/scale.cu", "csrc/deep/shift.cu"}}
    (project / "setup.py").write_text(SETUP.replace("nvcc + arch", "nvcc"))
    assert (look(project).programs, look(project).record) == ([{"extension": "setup.py"}], "")


def test_options_of_cmake_are_named_with_their_lines(project: Path) -> None:
    (project / "CMakeLists.txt").write_text(
        "project(demo LANGUAGES CXX CUDA)\nset(CMAKE_CUDA_STANDARD 17)\nadd_library(k csrc/scale.cu)\ntarget_compile_definitions(k PRIVATE N=3)\n"
    )
    seen = look(project)
    assert "CMakeLists.txt:2: options that CMake sets, in line 2, 4" in seen.left_out
    assert "cmake --build" in seen.record


def test_units_of_a_build_keep_their_options(project: Path) -> None:
    (project / "build").mkdir()
    command = "nvcc -DN=7 -I../include -O3 -std=c++17 -rdc=true -c ../csrc/scale.cu"
    entry = {"directory": str(project / "build"), "file": "../csrc/scale.cu", "command": command}
    (project / "build" / "compile_commands.json").write_text(json.dumps([entry]))
    assert look(project).programs[0] == {
        "sources": ["csrc/scale.cu"], "include": ["include"], "define": ["N=7"], "std": "c++17", "flags": ["nvcc:-O3"],
        "options": [{"rdc": True}],
    }  # fmt: skip
    assert _proposed(project) == {"cuda": {"csrc/scale.cu", "csrc/deep/shift.cu"}}


def test_programs_of_the_host_and_of_pytorch_go_to_their_compilers(project: Path) -> None:
    (project / "csrc" / "scale.cu").write_text(
        "#include <vector>\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n"
    )
    (project / "csrc" / "deep" / "shift.cu").write_text("#include <torch/extension.h>\n")
    programs = look(project).programs
    assert {"sources": ["csrc/scale.cu"], "backends": ["nvcc"]} in programs
    assert {"sources": ["csrc/deep/shift.cu"], "language": "torch"} in programs


def test_texts_of_python_are_programs(project: Path) -> None:
    raw = 'import cupy\nk = cupy.RawKernel("__global__ void add(float *x) { *x += 1; }", "add")\n'
    (project / "python" / "raw.py").write_text(raw + "m = cupy.RawModule(code=input())\n")
    (project / "python" / "inline.py").write_text(
        'from torch.utils.cpp_extension import load_inline\nload_inline("m", [], ["__global__ void two() {}"])\n'
    )
    seen = look(project)
    assert {"sources": ["python/raw.py"]} in seen.programs
    assert "python/raw.py:3: the text of this RawModule is made while the program runs" in seen.left_out
    assert seen.kinds == {"cuda", "torch"}
    assert _proposed(project)["torch"] == {"python/inline.py:two"}
    assert "python/raw.py:add" in _proposed(project)["cuda"]


def test_kernels_of_numba_need_types(project: Path) -> None:
    (project / "python" / "axpy.py").write_text(
        'from numba import cuda\n\n@cuda.jit("void(float32[:])")\ndef axpy(x):\n    x[0] = 1\n'
    )
    (project / "python" / "lazy.py").write_text("from numba import cuda\n\n@cuda.jit\ndef lazy(x):\n    x[0] = 1\n")
    (project / "python" / "test_it.py").write_text(
        'from numba import cuda\n\ndef test_it():\n    @cuda.jit("void(float32[:])")\n    def inner(x):\n        x[0] = 1\n'
    )
    seen = look(project)
    assert {"sources": ["python/axpy.py"]} in seen.programs
    assert any(text.startswith("python/test_it.py: kernel inner is defined in a function") for text in seen.left_out)
    assert any(text.startswith("python/lazy.py: kernel lazy has no types") for text in seen.left_out)


def test_folders_of_others_are_passed_over(project: Path) -> None:
    for folder in ("third_party", ".hidden", "build-release", "cases/demo/x", "csrc/cutlass/examples", "modules/fmt"):
        (project / folder).mkdir(parents=True)
        (project / folder / "other.cu").write_text("")
    (project / ".gitmodules").write_text('[submodule "fmt"]\n\tpath = modules/fmt\n')
    for name in ("LICENSE.txt", "CMakeLists.txt"):
        (project / "csrc" / "cutlass" / name).write_text("")
    (project / "cases" / "demo" / "x" / "case.toml").write_text("")
    assert {source for table in look(project).programs for source in table["sources"]} == {
        "csrc/scale.cu", "csrc/deep/shift.cu",
    }  # fmt: skip
    told = [text.partition(":")[0] for text in look(project).left_out]
    assert told == ["csrc/cutlass", "modules/fmt", "third_party"]


def test_a_program_of_the_host_is_known_by_the_project_s_headers(project: Path) -> None:
    (project / "include" / "three.h").write_text('#pragma once\n#include "deep.h"\n')
    (project / "include" / "deep.h").write_text("#include <torch/extension.h>\n")
    (project / "csrc" / "scale.cu").write_text('#include "three.h"\n__global__ void k() {}\n')
    assert {"sources": ["csrc/scale.cu"], "language": "torch", "include": ["include"]} in look(project).programs


def test_options_of_a_setup_that_names_no_files_go_to_the_files_below_it(project: Path) -> None:
    (project / "csrc" / "scale.cu").write_text("#include <torch/extension.h>\n")
    (project / "setup.py").write_text(
        "for name in os.listdir('csrc'):\n"
        "    CUDAExtension(name, [name], include_dirs=['include'], define_macros=[('FAST', None)], extra_compile_args={'nvcc': ['-O3']})\n"
    )
    assert {
        "sources": ["csrc/scale.cu"], "language": "torch", "include": ["include"], "define": ["FAST"], "flags": ["-O3"],
    } in look(project).programs  # fmt: skip


def test_pipes_in_the_place_of_files_are_passed_over(project: Path) -> None:
    for name in ("setup.py", "CMakeLists.txt", "compile_commands.json", "csrc/pipe.cu", "python/pipe.py"):
        os.mkfifo(project / name)
    assert "csrc/pipe.cu" not in {source for program in look(project).programs for source in program["sources"]}


def test_kernels_of_the_texts_are_required(project: Path) -> None:
    texts = {
        "csrc/scale.cu": "__global__ void scale(float *x) {}\n// __global__ void none() {}\n",
        "csrc/guarded.cu": "#ifdef FAST\n__global__ void fast(float *x) {}\n#endif\n",
        "csrc/generic.cu": "template <class T> __global__ void generic(T *x) {}\n",
        "csrc/host.cu": "int three() { return 3; }\n",
        "csrc/deep/shift.cu": 'extern "C" __global__ void shift(float *x) {}\n__global__ void back(float *x) {}\n',
    }
    for name, text in texts.items():
        (project / name).write_text(text)
    told = proposal(look(project), ())
    assert "# csrc/guarded.cu: the kernel in line 2 is behind `#ifdef FAST`\n" in told
    assert "# csrc/generic.cu: generic in line 1 is a template: require by name what a run shows of it\n" in told
    (project / "cumatrix.toml").write_text(told)
    required = {case.name: case.kernels for case in configured(read_config(project / "cumatrix.toml"))}
    assert required["csrc/scale.cu"] == RequiredKernels(names=("scale",))
    assert required["csrc/guarded.cu"] == RequiredKernels(count=1)
    assert required["csrc/deep/shift.cu"] == RequiredKernels(names=("shift", "back"))
    assert (required["csrc/generic.cu"], required["csrc/host.cu"]) == (None, None)
    assert "[tool.cumatrix.kernels]\n" in proposal(look(project), ("tool", "cumatrix"))


def test_definitions_of_a_build_count_for_required_kernels(project: Path) -> None:
    (project / "csrc" / "scale.cu").write_text("#ifdef FAST\n__global__ void fast(float *x) {}\n#endif\n")
    command = {
        "directory": str(project),
        "file": "csrc/scale.cu",
        "arguments": ["nvcc", "-DFAST=1", "-c", "csrc/scale.cu"],
    }
    (project / "compile_commands.json").write_text(json.dumps([command]))
    assert look(project).kernels["csrc/scale.cu"] == (["fast"], "")
