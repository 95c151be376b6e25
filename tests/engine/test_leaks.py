"""Mismatches of requested and loaded versions, CUDA releases and targets: such a cell is never built."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import uv
from cells import Place, make_case, make_exit, make_order
from command import Command

from harness.engine.collect import Remains, collect_outcome
from harness.model import Outcome
from harness.toolkits import Installed, ToolkitStore

pytestmark = pytest.mark.compilers
CUDA = 'extern "C" __global__ void scale(float *a) { *a *= 2; }'
PYTHON = "from numba import cuda\n@cuda.jit\ndef scale(a):\n    a[0] *= 2\n"
ENTRY = {"scale": "void(float32[:])"}


@pytest.fixture
def copy(toolkit: Callable[[str], Installed], tmp_path: Path) -> Callable[[str], ToolkitStore]:
    """Return a store with a copy of one release, to be damaged."""

    def copy(release: str) -> ToolkitStore:
        root = tmp_path / "toolkits"
        shutil.copytree(toolkit(release).home, root / release, symlinks=True)
        return ToolkitStore(root)

    return copy


def replace(path: Path, by: Path) -> None:
    path.unlink()
    shutil.copyfile(by, path)


def library(home: Path, stem: str) -> Path:
    (found,) = [
        path for path in (home / "lib64").glob(f"{stem}.so.*") if ".alt." not in path.name and not path.is_symlink()
    ]
    return found


def compile_in(store: ToolkitStore, python: str | None, backend: str, release: str) -> Outcome:
    place = Place(python, store)
    try:
        return place.run(
            backend,
            release,
            CUDA if backend != "numba" else PYTHON,
            "sm_80",
            entries=ENTRY if backend == "numba" else None,
        )
    finally:
        place.close()


@pytest.mark.parametrize("backend", ["nvrtc", pytest.param("cupy-nvrtc", marks=pytest.mark.slow)])
def test_an_nvrtc_of_another_release(
    backend: str, copy: Callable[[str], ToolkitStore], toolkit: Callable[[str], Installed], venv: Callable[..., str]
) -> None:
    store = copy("12.4")
    for stem in ("libnvrtc", "libnvrtc-builtins"):
        replace(library(store.root / "12.4", stem), library(toolkit("12.9").home, stem))
    outcome = compile_in(store, venv("cupy-cuda12x==12.3.0") if backend != "nvrtc" else None, backend, "12.4")
    assert outcome.status == "unavailable"
    assert "12.4" in outcome.reason
    assert "12.9" in outcome.reason


@pytest.mark.parametrize("stem", ["libnvrtc", pytest.param("libnvrtc-builtins", marks=pytest.mark.slow)])
def test_a_missing_nvrtc(stem: str, copy: Callable[[str], ToolkitStore]) -> None:
    store = copy("12.4")
    for path in (store.root / "12.4" / "lib64").glob(f"{stem}.*"):
        path.unlink()
    outcome = compile_in(store, None, "nvrtc", "12.4")
    assert outcome.status == "unavailable"
    assert stem in outcome.reason
    assert "toolkits install --force 12.4" in outcome.reason


def test_a_missing_assembler(copy: Callable[[str], ToolkitStore]) -> None:
    store = copy("12.4")
    (store.root / "12.4" / "bin" / "ptxas").unlink()
    outcome = compile_in(store, None, "nvrtc", "12.4")
    assert outcome.status == "unavailable"
    assert "ptxas" in outcome.reason


def test_an_nvvm_of_another_release(
    copy: Callable[[str], ToolkitStore], toolkit: Callable[[str], Installed], venv: Callable[..., str]
) -> None:
    store = copy("12.4")
    replace(
        store.root / "12.4" / "nvvm" / "lib64" / "libnvvm.so", toolkit("12.9").home / "nvvm" / "lib64" / "libnvvm.so"
    )
    outcome = compile_in(store, venv("numba==0.59.1"), "numba", "12.4")
    assert outcome.status == "unavailable"
    assert "asked for the NVVM of CUDA 12.4, whose PTX is 8.4, and got PTX 8.8" in outcome.reason
    assert str(store.root) in outcome.reason


def test_a_missing_nvvm(copy: Callable[[str], ToolkitStore], venv: Callable[..., str]) -> None:
    store = copy("12.4")
    shutil.rmtree(store.root / "12.4" / "nvvm" / "lib64")
    outcome = compile_in(store, venv("numba==0.59.1"), "numba", "12.4")
    assert outcome.status == "unavailable"
    assert "libnvvm.so" in outcome.reason


def test_a_library_that_an_environment_brings_along(
    store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """An interpreter can load another CUDA by itself, through a wheel or a site file."""
    toolkit("12.4")
    foreign = library(toolkit("13.0").home, "libnvJitLink").resolve()
    subprocess.run(
        [uv.find_uv_bin(), "venv", "--quiet", "--python", os.path.realpath("/proc/self/exe"), tmp_path / "env"],
        check=True,
    )
    (site,) = (tmp_path / "env").glob("lib/python3*/site-packages")
    (site / "leak.pth").write_text(f"import ctypes; ctypes.CDLL({str(foreign)!r})\n")
    outcome = compile_in(store, str(tmp_path / "env" / "bin" / "python"), "nvrtc", "12.4")
    assert outcome.status == "unavailable"
    assert str(foreign) in outcome.reason


@pytest.mark.parametrize(
    ("requirement", "backend", "release"),
    [("", "nvrtc", "12.4"), pytest.param("numba==0.59.1", "numba", "12.4", marks=pytest.mark.slow)],
)
def test_a_cuda_of_the_users_changes_nothing(
    requirement: str, backend: str, release: str, run_cell: Callable[..., Outcome], toolkit: Callable[[str], Installed],
    store: ToolkitStore, venv: Callable[..., str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    source, entries = (PYTHON, ENTRY) if backend == "numba" else (CUDA, None)
    before = run_cell(requirement, backend, release, source, "sm_80", entries=entries)
    other = toolkit("13.0").home
    for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX", "NUMBAPRO_NVVM", "CUDA_ROOT"):
        monkeypatch.setenv(name, str(other))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{other}/lib64:{other}/nvvm/lib64")
    monkeypatch.setenv("CPATH", f"{other}/include")
    monkeypatch.setenv("PATH", f"{other}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-G")
    monkeypatch.setenv("NVRTC_PREPEND_FLAGS", "-G")
    after = compile_in(store, venv(requirement) if requirement else None, backend, release)
    assert before.status == after.status == "built"
    assert after.artifact is not None
    assert after.artifact == before.artifact
    assert after.observed == before.observed


def test_a_target_that_a_library_would_silently_change(run_cell: Callable[..., Outcome]) -> None:
    outcome = run_cell("numba==0.59.1", "numba", "12.9", PYTHON, "sm_100", entries=ENTRY)
    assert (outcome.status, outcome.artifact) == ("unsupported", None)
    assert (
        outcome.reason
        == "numba 0.59.1 with CUDA 12.9 does not know compute capability 10.0: it would silently build sm_90"
    )


@pytest.mark.parametrize(
    "requirement", ["cupy-cuda12x==12.3.0", pytest.param("cupy-cuda12x==13.1.0", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("release", "status"), [("12.4", "unsupported"), ("12.9", "built")])
def test_a_target_that_a_library_compares_as_a_text(
    requirement: str, release: str, status: str, run_cell: Callable[..., Outcome]
) -> None:
    """These CuPy releases compare "100" as less than "90". They build it or NVRTC rejects it; the outcome is never anything else."""
    outcome = run_cell(requirement, "cupy-nvrtc", release, CUDA, "sm_100")
    assert outcome.status == status, outcome
    if outcome.artifact:
        assert outcome.artifact.target == "sm_100"


def test_what_came_out_for_another_target_is_not_built(
    toolkit: Callable[[str], Installed], tmp_path: Path, places: Callable[[str], Place]
) -> None:
    home = toolkit("12.4").home
    (tmp_path / "kernel.ptx").write_text(
        ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry scale() { ret; }\n"
    )
    subprocess.run(
        [home / "bin" / "ptxas", "-arch=sm_75", tmp_path / "kernel.ptx", "-o", tmp_path / "a.cubin"], check=True
    )
    reply = {
        "status": "built",
        "stage": None,
        "reason": "",
        "artifact": {"path": str(tmp_path / "a.cubin"), "format": "cubin"},
    }
    (tmp_path / "reply.json").write_text(json.dumps(reply))
    (tmp_path / "kernel.cu").write_text(CUDA)
    case = make_case(tmp_path / "kernel.cu")

    def settled(target: str, entries: list[str]) -> Outcome:
        order = make_order(tmp_path / "kernel.cu", target, tmp_path, entries)
        return collect_outcome(
            Remains.of(places("").cell(case, "nvrtc", "12.4", target), order, make_exit(), home, tmp_path)
        )

    changed = settled("sm_80", [])
    assert (changed.status, changed.reason) == ("unavailable", "asked for sm_80, what came out is for sm_75")
    assert settled("sm_75", ["scale"]).status == "built"
    missing = settled("sm_75", ["other"])
    assert (missing.status, missing.reason) == (
        "harness_error",
        "kernel other is not in what was built (kernels there: scale)",
    )


def test_a_requested_version_that_is_another(
    cumatrix: Command, venv: Callable[..., str], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    toolkit("12.4")
    (tmp_path / "kernel.py").write_text(PYTHON)
    arguments = ("try", "kernel.py", "-b", "numba", "-t", "12.4", "-a", "sm_80", "--signature", "scale=void(float32[:])",
                 "--python", venv("numba==0.59.1"))  # fmt: skip
    (record,) = cumatrix.records(*arguments, "--require", "numba==0.59.0")
    assert (record["status"], record["verdict"]) == ("unavailable", "unresolved")
    assert record["reason"] == "asked for numba==0.59.0, but numba 0.59.1 is installed"
    assert cumatrix(*arguments, "--require", "numba==0.59.0").returncode == 4
    assert cumatrix(*arguments, "--require", "numba==0.59.*").returncode == 0


def test_a_toolkit_that_is_not_installed(tmp_path: Path) -> None:
    outcome = compile_in(ToolkitStore(tmp_path), None, "nvrtc", "12.4")
    assert outcome.status == "unavailable"
    assert "cumatrix toolkits install 12.4" in outcome.reason
