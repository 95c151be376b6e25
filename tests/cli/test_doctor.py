"""Output of ``cumatrix doctor`` in different environments."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from venvs import python_with

from harness.toolkits import Installed

pytestmark = pytest.mark.called


@pytest.fixture
def _toolkit(toolkit: Callable[[str], Installed]) -> None:
    toolkit("13.0")


def test_where_nothing_can_be_used_it_says_what_to_do(cumatrix: Command, tmp_path: Path) -> None:
    done = cumatrix("doctor", "-t", "13.0,12.4", env={"CUMATRIX_HOME": str(tmp_path / "home")})
    assert done.returncode == 4
    lines = done.stdout.splitlines()
    assert f"toolkits    none in {tmp_path / 'home'}" in done.stdout
    for release in ("13.0", "12.4"):
        (line,) = (line for line in lines if line.split()[:4] == ["✗", "nvrtc", "CUDA", f"{release}:"])
        assert f"cumatrix toolkits install {release}" in line


WITHOUT_PROC = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]


@pytest.mark.parametrize("command", ["doctor", "try", "run"])
@pytest.mark.skipif(
    subprocess.run([*WITHOUT_PROC, "true"], capture_output=True).returncode != 0, reason="no namespace can be made here"
)
def test_without_proc_it_says_so(cumatrix: Command, tmp_path: Path, command: str) -> None:
    (tmp_path / "kernel.cu").write_text("__global__ void k() {}\n")
    words = ["try", tmp_path / "kernel.cu"] if command == "try" else [command]
    done = subprocess.run(
        [*WITHOUT_PROC, *cumatrix.argv(*words)], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("cumatrix: cumatrix needs /proc, which is not mounted here")


@pytest.mark.parametrize("arguments", [("doctor",), ("toolkits", "list")])
def test_what_killed_installations_left_goes(cumatrix: Command, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    left = [tmp_path / place / "include" for place in ("toolkits/.12.4-abcdefgh", "libraries/cutlass/.3.5.1-abcdefgh")]
    for folder in left:
        folder.mkdir(parents=True)
    cumatrix(*arguments, env={"CUMATRIX_HOME": str(tmp_path)})
    assert not any(folder.parent.exists() for folder in left)


def test_an_interpreter_that_cannot_be_run_is_named(cumatrix: Command) -> None:
    done = cumatrix("doctor", "--python", "/nowhere/python")
    assert (done.returncode, done.stdout) == (4, "")
    assert "/nowhere/python" in done.stderr


@pytest.mark.compilers
@pytest.mark.usefixtures("_toolkit")
def test_an_interpreter_by_a_relative_path(cumatrix: Command) -> None:
    """Workers start in separate folders."""
    python = python_with("numba==0.61.2")
    done = cumatrix("doctor", "-t", "13.0", "--python", os.path.relpath(python, cumatrix.folder))
    assert done.returncode == 0, done.stderr
    assert f"({python})" in done.stdout
    assert "numba 0.61.2" in done.stdout
    assert "No such file" not in done.stdout + done.stderr


@pytest.mark.compilers
@pytest.mark.usefixtures("_toolkit")
def test_each_result_is_there_before_the_next_is_tried(cumatrix: Command) -> None:
    done = subprocess.run(
        cumatrix.argv("doctor", "-t", "13.0"), cwd=cumatrix.folder, text=True, timeout=800, check=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    tried = [line.split()[1] for line in lines if line.startswith("trying ")]
    assert tried[:1] == ["nvrtc"]
    assert "nvcc" in tried
    for name in tried:
        place = lines.index(f"trying {name} with CUDA 13.0")
        assert lines[place + 1].split()[1] == name


@pytest.mark.compilers
@pytest.mark.usefixtures("_toolkit")
def test_what_may_take_minutes_is_said_beforehand(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.4")
    done = cumatrix("doctor", "-t", "12.4", "--python", python_with("cupy-cuda12x==13.2.0"), timeout=600)
    assert (
        "trying cupy-jitify with CUDA 12.4 (the first time with a toolkit, Jitify looks for CUDA's headers"
        in done.stderr
    )
    assert "trying" not in done.stdout


@pytest.mark.compilers
@pytest.mark.usefixtures("_toolkit")
def test_each_backend_is_tried_with_the_newest_installed_cuda_that_it_can_use(cumatrix: Command) -> None:
    lines = cumatrix("doctor").stdout.splitlines()
    usable = {line.split()[1]: line.split()[3] for line in lines if line.startswith("✓")}
    assert float(usable["nvrtc"]) >= 13.0
    assert float(usable["nvcc"]) >= 13.0
    assert lines[0] == f"✓ nvrtc       CUDA {usable['nvrtc']}"
    assert not any(line.startswith("isolation") for line in lines)
    verbose = cumatrix("doctor", "-v").stdout
    assert "\nisolation " in verbose and f"nvrtc {usable['nvrtc']}" in verbose
