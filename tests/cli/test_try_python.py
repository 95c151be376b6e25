"""``cumatrix try`` with Python files: the table, and errors of usage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Installed

pytestmark = [pytest.mark.called, pytest.mark.compilers]

PROGRAM = """\
import numpy as np
from numba import cuda
from tools.size import SIZE

@cuda.jit
def scale(a):
    a[cuda.grid(1)] *= SIZE

@cuda.jit
def add(a, b):
    a[cuda.grid(1)] += b[cuda.grid(1)]

if __name__ == "__main__":
    values = np.loadtxt("data/values.txt", dtype=np.float32)
    scale[1, 3](values)
    np.savetxt("results.txt", values)
    np.testing.assert_allclose(values, 99)
"""


@pytest.fixture
def program(tmp_path: Path, toolkit: Callable[[str], Installed]) -> Path:
    toolkit("12.9")
    folder = tmp_path / "project"
    files = {"axpy.py": PROGRAM, "tools/__init__.py": "", "tools/size.py": "SIZE = 2\n", "data/values.txt": "1 2 3\n"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "axpy.py"


@pytest.fixture
def attempt(cumatrix: Command, program: Path, venv: Callable[..., str]) -> Callable[..., Any]:
    """Try the program with Numba; return the process."""

    def run(*arguments: str, text: str = "", targets: str = "sm_80") -> Any:
        if text:
            program.write_text(text)
        return cumatrix("try", program, "--python", venv("numba==0.59.1"), "-t", "12.9", "-a", targets, *arguments)

    return run


def test_the_table_tells_what_the_verdict_leaves_out(attempt: Callable[..., Any], program: Path) -> None:
    before = sorted(program.parent.rglob("*"))
    done = attempt()
    assert done.returncode == 0, done.stderr
    assert "note: left out, since nothing gives the types of its arguments: add\n" in done.stderr
    assert "note: axpy.py ended early, after launches that computed nothing: AssertionError: " in done.stderr
    assert "at axpy.py:17: np.testing.assert_allclose(values, 99)\n" in done.stderr
    assert "note: 1 launch was left out: the device is virtual\n" in done.stderr
    assert sorted(program.parent.rglob("*")) == before


def test_a_remark_on_some_cells_says_which(attempt: Callable[..., Any]) -> None:
    done = attempt(targets="sm_80,sm_86,sm_100")
    assert "1 launch was left out: the device is virtual (2 cells: sm_80, sm_86)\n" in done.stderr
    assert (
        "does not know compute capability 10.0: it would silently build sm_90 (numba 0.59.1 cuda 12.9 sm_100)"
        in done.stderr
    )


def test_a_kernel_without_types_is_said(attempt: Callable[..., Any]) -> None:
    done = attempt(text="from numba import cuda\n@cuda.jit\ndef scale(a):\n    a[0] = 1\n")
    assert done.returncode == 3
    assert done.stderr.count("nothing in axpy.py gives the types of the arguments of the kernel scale: ") == 1
    assert '--signature "scale=void(float32[:])"' in done.stderr


def test_what_the_program_needs_is_unavailable(attempt: Callable[..., Any], venv: Callable[..., str]) -> None:
    done = attempt(text="import no_such_module\n" + PROGRAM)
    assert done.returncode == 4
    command = f"`{venv('numba==0.59.1')} -m pip install no-such-module`"
    assert (
        f"axpy.py needs more than is installed: no module no_such_module is there: install what has it, as in {command}"
        in done.stderr
    )


def test_a_refusal_says_what_was_built(attempt: Callable[..., Any]) -> None:
    text = PROGRAM.replace("+= b[", "+= b.nothing[")
    done = attempt("--signature", "add=void(float32[:], float32[:])", text=text)
    assert done.returncode == 1
    assert "note: refused: add; built: scale\n" in done.stderr
    assert "Unknown attribute 'nothing'" in done.stderr


def test_escape_sequences_do_not_reach_the_terminal(attempt: Callable[..., Any]) -> None:
    done = attempt(text=PROGRAM + "raise ValueError('\\x1b[31mred\\x1b]0;title\\x07 [bold]')\n".replace("raise", "    raise")
                   .replace("np.testing", "pass#"))  # fmt: skip
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("scale", "'scale' is not NAME=SIG"),
        ("=void(int32)", "is not NAME=SIG"),
        ("sc ale=void(int32)", "is not NAME=SIG"),
        ("scale=", "is not NAME=SIG"),
        ("scale=void(float32[:", "'void(float32[:' cannot be read"),
        ("skale=void(float32[:])", 'axpy.py has no kernel skale (did you mean "scale"?)'),
        ("reduce=void(float32[:])", "axpy.py has no kernel reduce; known are scale, add"),
    ],
)
def test_a_wrong_signature_is_bad_usage(attempt: Callable[..., Any], signature: str, words: str) -> None:
    done = attempt("--signature", signature)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert words in done.stderr


def test_one_kernel_has_one_signature(attempt: Callable[..., Any]) -> None:
    done = attempt("--signature", "scale=void(float32[:])", "--signature", "scale=void(int32[:])")
    assert done.returncode == 2
    assert "--signature names scale twice" in done.stderr


@pytest.mark.slow
def test_a_name_that_the_text_does_not_show_is_looked_for_when_it_runs(
    attempt: Callable[..., Any], program: Path
) -> None:
    (program.parent / "more.py").write_text("from numba import cuda\n@cuda.jit\ndef hidden(a):\n    a[0] = 1\n")
    done = attempt("--signature", "hidden=void(float32[:])", text="from more import *\n")
    assert done.returncode == 0, done.stderr
    done = attempt("--signature", "other=void(float32[:])")
    assert done.returncode == 4
    assert "axpy.py has no CUDA kernel other: it has hidden" in done.stderr


def test_a_signature_goes_to_the_file_that_has_its_name(
    cumatrix: Command, program: Path, venv: Callable[..., str]
) -> None:
    for name in ("one", "two"):
        text = f"from numba import cuda\n@cuda.jit\ndef {name}(a):\n    a[0] = 1\n"
        program.with_name(f"{name}.py").write_text(text)
    files = [program.with_name("one.py"), program.with_name("two.py")]
    records = cumatrix.records(
        "try", *files, "--python", venv("numba==0.59.1"), "-t", "12.9", "-a", "sm_80",
        "--signature", "one=void(float32[:])", "--signature", "two=void(int32[:])",
    )  # fmt: skip
    assert [record["status"] for record in records] == ["built", "built"]


def test_signatures_are_for_python(cumatrix: Command, program: Path) -> None:
    source = program.with_name("axpy.cu")
    source.write_text("__global__ void k() {}")
    done = cumatrix("try", source, "-t", "12.9", "-a", "sm_80", "--signature", "k=void()")
    assert done.returncode == 2
    assert "there is no Python file" in done.stderr


def test_without_numba_it_says_how_to_get_it(cumatrix: Command, program: Path, venv: Callable[..., str]) -> None:
    bare = venv()
    for more in ((), ("-b", "numba")):
        done = cumatrix("try", program, "--python", bare, "-t", "12.9", "-a", "sm_80", *more)
        assert done.returncode == 4
        assert f"`{bare} -m pip install numba" in done.stderr


def test_a_backend_for_another_language_is_said(cumatrix: Command, program: Path) -> None:
    done = cumatrix("try", program, "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
    assert done.returncode == 3
    assert "axpy.py is not for nvrtc, only for numba, numba-cuda" in done.stderr
