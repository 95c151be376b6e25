"""``--with``: releases of a library as an axis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import write_case
from command import Command

from harness.toolkits import Installed

pytestmark = pytest.mark.called

KERNEL = """
from numba import cuda


@cuda.jit
def scale(values):
    place = cuda.grid(1)
    values[place] *= 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL)
    return path


AXES = ("--signature", "scale=void(float32[:])", "-a", "sm_80", "-t", "12.4")


@pytest.mark.slow
@pytest.mark.compilers
def test_each_release_is_a_column(cumatrix: Command, file: Path, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.4")
    records = cumatrix.records("try", file, "--with", "numba=0.58.1,0.59.0", *AXES)
    told = [
        (r["backend"], r["library"], r["environment"], r["status"], r["toolchain"]["observed"]["numba"])
        for r in records
    ]
    assert told == [
        ("numba", "0.58.1", "numba-0.58.1", "built", "0.58.1"),
        ("numba", "0.59.0", "numba-0.59.0", "built", "0.59.0"),
    ]
    # From the date of the release, not from today.
    assert [r["toolchain"]["requested"]["packages"]["numpy"].rpartition(".")[0] for r in records] == ["1.26", "1.26"]
    again = cumatrix("try", file, "--with", "numba=0.58.1,0.59.0", *AXES, "--offline")
    assert (again.returncode, "installing" in again.stderr) == (0, False)


@pytest.mark.compilers
def test_another_backend_may_stand_beside_that_of_the_library(cumatrix: Command, tmp_path: Path) -> None:
    write_case(tmp_path / "cases", "made/scale", 'extern "C" __global__ void k() {}')
    words = ("-b", "nvrtc,cupy-nvrtc", "-t", "12.4", "-a", "sm_80")
    done = cumatrix("run", "--dry-run", "--json", "--with", "cupy=13.6.0", *words)
    assert (done.returncode, json.loads(done.stdout)["cells"]) == (0, 2), done.stderr


def test_offline_names_what_is_missing_once(cumatrix: Command, file: Path, tmp_path: Path) -> None:
    env = {"CUMATRIX_HOME": str(tmp_path / "home")}
    done = cumatrix(
        "try",
        file,
        "--offline",
        "-b",
        "numba,nvrtc",
        "-t",
        "12.4,12.9",
        "-a",
        "all",
        "--signature",
        "scale=void(float32[:])",
        env=env,
    )
    assert done.returncode in (3, 4)
    write_case(tmp_path / "cases", "made/scale", 'extern "C" __global__ void k() {}')
    done = cumatrix("run", "--offline", "-b", "nvrtc", "-t", "12.4,12.9", "-a", "sm_50..sm_90", env=env)
    assert done.returncode == 4, done.stderr
    assert (
        done.stderr.count(
            "--offline downloads nothing: CUDA 12.4, CUDA 12.9. To install it, run `cumatrix toolkits install 12.4 12.9`"
        )
        == 1
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--with", "cupi=13"), 'unknown library \'cupi\' (did you mean "cupy"?)'), (("--with", "numba"), "name versions as in numba="),
        (("--with", "numba-cuda=0.24.0", "-b", "numba"), "--with numba-cuda is for the backend numba-cuda, which -b numba leaves out: -b numba-cuda, or --with numba=VERSION for -b numba"),
        (("--with", "cupy=13.6.0", "-b", "nvrtc"), "--with cupy is for the backends cupy-nvrtc,cupy-jitify, which -b nvrtc leaves out: -b cupy-nvrtc,cupy-jitify\n"),
        (("--with", "numba=new"), "'new' is no version"), (("--with", "numba=0.59", "--python", "3.5"), "run in Python 3.9 and later, not in 3.5"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_sentence(cumatrix: Command, file: Path, words: tuple[str, ...], said: str) -> None:
    done = cumatrix("try", file, *words)
    assert (done.returncode, said in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done.stderr


@pytest.mark.compilers
def test_a_release_without_a_wheel_for_this_python_says_so(
    cumatrix: Command, file: Path, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.4")
    (record,) = cumatrix.records("try", file, "--with", "numba=0.55.0", "--python", "3.11", *AXES)
    assert record["status"] == "unavailable"
    assert (
        record["reason"] == "numba 0.55.0 has no wheel for Python 3.11: its wheels are for Python 3.7, 3.8, 3.9, 3.10"
    )


@pytest.mark.slow
@pytest.mark.compilers
def test_pytest_takes_it_too(cumatrix: Command, tmp_path: Path, toolkit: Callable[[str], Installed]) -> None:
    import subprocess
    import sys

    toolkit("12.4")
    write_case(
        tmp_path / "cases",
        "made/scale",
        KERNEL,
        '[entry]\npython = { scale = "void(float32[:])" }\n',
        file="kernel.py",
    )
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:randomly",
        "cases",
        "--cumatrix-with",
        "numba=0.59.0",
        "--cumatrix-target",
        "sm_80",
        "--cumatrix-toolkit",
        "12.4",
    ]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = (tmp_path / "reports" / "numba.jsonl").read_text().splitlines()
    assert (json.loads(line)["environment"], json.loads(line)["status"]) == ("numba-0.59.0", "built")
