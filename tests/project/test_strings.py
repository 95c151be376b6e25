"""CUDA C++ in strings of Python files, which are parsed and never executed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.project.programs import text_cases
from harness.project.python_ast import texts_of

OPS = '''\
import cupy as cp
from torch.utils.cpp_extension import load_inline

raise SystemExit("this file must not be run")

add = cp.RawKernel(r"""
extern "C" __global__ void my_add(const float *x, float *y) {
    *y = *x + none;
}
""", "my_add", options=("-std=c++17", "-Iinclude"))

CODE = "__global__ void one(float *x) {}\\n"
module = cp.RawModule(code=CODE)
pieces = cp.RawModule(code="__global__ void " "two(float *x) {}\\n\\n")
made = cp.RawKernel(CODE % 3, "made")
ops = load_inline("ops", cpp_sources="", cuda_sources=[CODE], extra_cuda_cflags=["-O3"])
'''


@pytest.fixture
def ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))
    (tmp_path / "ops.py").write_text(OPS)
    return tmp_path / "ops.py"


def test_texts_are_found_with_their_lines_and_options(ops: Path) -> None:
    texts, unread = texts_of(ops)
    assert [(text.call, text.name, text.line, text.options, text.exact) for text in texts] == [
        ("RawKernel", "my_add", 6, ("-std=c++17", "-Iinclude"), True),
        ("RawModule", "one", 12, (), False),
        ("RawModule", "two", 14, (), False),
        ("load_inline", "one", 12, ("-O3",), False),
    ]
    assert unread == ["ops.py:15: the text of this RawKernel is made while the program runs"]


def test_the_file_for_compilers_names_the_python_file_and_line(ops: Path) -> None:
    cases, _ = text_cases(ops, "ops.py")
    assert [case.name for case in cases] == [
        "ops.py:my_add",
        "ops.py:RawModule one",
        "ops.py:two",
        "ops.py:load_inline one",
    ]
    assert [list(case.sources) for case in cases] == [["cuda"], ["cuda"], ["cuda"], ["torch"]]
    text = cases[0].sources["cuda"].read_text()
    assert text.startswith('#line 6 "ops.py"\n\nextern "C" __global__ void my_add')
    assert cases[3].sources["torch"].read_text().startswith("#include <torch/types.h>\n")
    assert [rule.values for rule in cases[0].options] == [{"flags": ["-std=c++17", f"-I{Path.cwd() / 'include'}"]}]
    assert len({case.program for case in cases}) == len(cases)


def test_the_same_text_is_written_once(ops: Path) -> None:
    first = [case.path for case in text_cases(ops, "ops.py")[0]]
    assert first == [case.path for case in text_cases(ops, "ops.py")[0]]


@pytest.mark.parametrize("text", ["", "import cupy\nRawKernel = 1\n", "RawKernel((\n", "cupy.RawKernel()\n"])
def test_files_without_any_have_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.py").write_text(text)
    assert texts_of(tmp_path / "x.py") == ([], [])
