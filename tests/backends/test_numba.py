"""Numba and numba-cuda with real compilations.

The fixture ``run_cell(python, backend, release, source, target, entries, options)`` runs a cell in an environment with
its distinctive packages (``numba==0.59.0``), skips the test if they are not available, and returns the reply:
``status``, ``stage``, ``stages``, ``reason``, ``log``, ``notes``, ``observed``, ``artifact``, ``device``.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from venvs import python_with

from harness.engine.fork_server import ForkServer
from harness.engine.toolchain import clean_environment
from harness.protocol.messages import Setup
from harness.toolkits import Installed

pytestmark = pytest.mark.compilers
RunCell = Callable[..., dict[str, Any]]

PLAIN = """\
from numba import cuda

@cuda.jit(**JIT_OPTIONS)
def scale(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] *= 2
"""
SIGNATURE = {"scale": "void(float32[:])"}
# Releases of the first tier; each further release requires another environment.
QUICK = ("0.59.0", "0.59.1", "0.15.0", "0.24.0")


def release_params(*values: tuple[Any, ...]) -> list[Any]:
    """Return parameters that start with a release; releases outside of the first tier are slow."""
    return [pytest.param(*each, marks=() if each[0] in QUICK else pytest.mark.slow) for each in values]


GRID_SYNC = """\
from numba import cuda

@cuda.jit(**JIT_OPTIONS)
def assign_edges_kernel() -> None:
    gg = cuda.cg.this_grid()
    gg.sync()
"""
# As reported in https://github.com/numba/numba/issues/9432, launch included.
REPORTED = """\
from numba import cuda

@cuda.jit(cache=True)
def assign_edges_kernel() -> None:
    gg = cuda.cg.this_grid()
    gg.sync()

assign_edges_kernel[1, 1]()
"""
SHARED = """\
from numba import cuda, float32

@cuda.jit
def scale(a):
    buffer = cuda.shared.array({}, float32)
    i = cuda.threadIdx.x
    buffer[i] = a[i]
    cuda.syncthreads()
    a[i] = buffer[i ^ 1]
"""


PREPARE = """
import sys
from pathlib import Path
from harness.backends.numba.backend import NumbaBackend
from harness.protocol.backend import Setup

home, tools = map(Path, sys.argv[1:])
NumbaBackend().prepare(Setup(home=home, release="12.9", headers="12.9", include=[str(home / "include")], tools=tools))
print(sys.dont_write_bytecode)
"""


def test_the_librarys_modules_are_kept_compiled(
    venv: Callable[..., str], toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """Compiled modules would be stored next to the program: those of a program are not kept."""
    home, kept = toolkit("12.9").home, tmp_path / "compiled"
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [venv("numba==0.59.1"), "-c", PREPARE, str(home), str(tmp_path)],
        env={**environ, "PYTHONPATH": str(Path(__file__).parents[2]), "CUDA_HOME": str(home), "PYTHONPYCACHEPREFIX": str(kept)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert list(kept.rglob("numba/cuda/compiler.*.pyc"))


def test_a_plain_kernel_becomes_a_cubin(run_cell: RunCell) -> None:
    reply = run_cell("numba==0.59.1", "numba", "12.9", PLAIN, "sm_80", SIGNATURE, {})
    assert reply["status"] == "built", reply
    assert reply["stages"] == ["compile", "assemble"]
    assert reply["artifact"]["format"] == "cubin"
    assert reply["observed"]["ptx"] == "8.8"
    assert reply["observed"]["nvvm"] == "12.9"
    assert reply["device"] == {"virtual": True, "compute_capability": "8.0"}


def test_a_virtual_target_becomes_ptx(run_cell: RunCell) -> None:
    reply = run_cell("numba==0.59.1", "numba", "12.9", PLAIN, "compute_80", SIGNATURE, {})
    assert (reply["status"], reply["stages"], reply["artifact"]["format"]) == ("built", ["compile"], "ptx")


@pytest.mark.parametrize(
    ("version", "status"),
    release_params(("0.57.1", "built"), ("0.58.1", "built"), ("0.59.0", "rejected"), ("0.59.1", "built"), ("0.60.0", "built"),
                   ("0.61.2", "built"), ("0.68.1", "built")),
)  # fmt: skip
@pytest.mark.parametrize(
    ("source", "options"), [(GRID_SYNC, {"cache": True}), (REPORTED, {})], ids=["compiled", "launched"]
)
def test_cached_grid_sync_failed_in_one_release(
    run_cell: RunCell, version: str, status: str, source: str, options: dict[str, bool]
) -> None:
    reply = run_cell(f"numba=={version}", "numba", "12.9", source, "sm_80", {}, options)
    assert reply["status"] == status, reply
    if status == "rejected":
        assert reply["stage"] == "compile"
        assert reply["log"].startswith("LoweringError: Failed in cuda mode pipeline")
    else:
        assert reply["stages"] == ["compile", "assemble", "link"]


@pytest.mark.parametrize("version", release_params(("0.58.1",), ("0.59.0",), ("0.59.1",), ("0.68.1",)))
def test_grid_sync_without_a_cache_never_failed(run_cell: RunCell, version: str) -> None:
    reply = run_cell(f"numba=={version}", "numba", "12.9", GRID_SYNC, "sm_80", {}, {})
    assert reply["status"] == "built", reply


def test_a_toolkit_without_libcudadevrt_stops_before_the_link(run_cell: RunCell) -> None:
    reply = run_cell("numba==0.59.1", "numba", "12.4", GRID_SYNC, "sm_80", {}, {})
    assert (reply["status"], reply["artifact"]["format"]) == ("built", "object")
    assert reply["notes"] == [
        "not linked: PyPI's wheels of CUDA 12.4 have no libcudadevrt.a, and the program calls cudaCGGetIntrinsicHandle, cudaCGSynchronize"
    ]


@pytest.mark.parametrize(("size", "status"), [(12288, "built"), (12289, "rejected")])
def test_static_shared_memory_ends_at_48_kilobytes(run_cell: RunCell, size: int, status: str) -> None:
    reply = run_cell("numba==0.59.1", "numba", "12.9", SHARED.format(size), "sm_80", SIGNATURE, {})
    assert reply["status"] == status, reply
    if status == "rejected":
        assert reply["stage"] == "assemble"
        assert "uses too much shared data" in reply["log"]


@pytest.mark.parametrize("debug", [False, True])
def test_raising_a_constant_compiles(run_cell: RunCell, debug: bool) -> None:
    source = PLAIN.replace("a[i] *= 2", "raise ValueError('x')")
    reply = run_cell("numba==0.61.2", "numba", "12.9", source, "sm_80", SIGNATURE, {"debug": debug})
    assert reply["status"] == "built", reply


def test_a_type_error_names_the_line(run_cell: RunCell) -> None:
    reply = run_cell("numba==0.61.2", "numba", "12.9", PLAIN.replace("*= 2", "= a.nothing"), "sm_80", SIGNATURE, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile")
    assert reply["log"].startswith("TypingError: ")
    assert 'File "kernel.py", line 7:' in reply["log"]


def test_a_capability_that_the_library_does_not_know_is_not_built_as_another(run_cell: RunCell) -> None:
    reply = run_cell("numba==0.59.1", "numba", "12.9", PLAIN, "sm_100", SIGNATURE, {})
    assert reply["status"] == "unsupported"
    assert reply["reason"].endswith("does not know compute capability 10.0: it would silently build sm_90")


def test_specific_targets_are_beyond_numba(run_cell: RunCell) -> None:
    assert run_cell("numba==0.59.1", "numba", "12.9", PLAIN, "sm_90a", SIGNATURE, {})["status"] == "unsupported"


def test_cells_do_not_depend_on_each_other(run_cell: RunCell) -> None:
    for cache in (False, True, False):
        reply = run_cell("numba==0.59.0", "numba", "12.9", GRID_SYNC, "sm_80", {}, {"cache": cache})
        assert reply["status"] == ("rejected" if cache else "built")


NUMBA_CUDA = [("0.4.0", "12.9"), ("0.15.0", "12.9"), ("0.20.0", "12.9"), ("0.24.0", "12.9"), ("0.30.4", "13.0")]


@pytest.mark.parametrize(("version", "release"), release_params(*NUMBA_CUDA))
@pytest.mark.parametrize("source", [PLAIN, GRID_SYNC, REPORTED], ids=["plain", "grid-sync", "launched"])
def test_numba_cuda_builds(run_cell: RunCell, version: str, release: str, source: str) -> None:
    entries = SIGNATURE if source is PLAIN else {}
    reply = run_cell(f"numba-cuda=={version}", "numba-cuda", release, source, "sm_80", entries, {})
    assert reply["status"] == "built", reply
    assert reply["stages"] == ["compile", "assemble"] + ([] if source is PLAIN else ["link"])
    assert reply["observed"]["nvvm"] == release
    assert reply["artifact"]["format"] == "cubin"


@pytest.mark.parametrize(("version", "set_here"), release_params(("0.4.0", False), ("0.15.0", True), ("0.24.0", False)))
def test_a_setting_that_users_would_not_make_is_named(run_cell: RunCell, version: str, set_here: bool) -> None:
    reply = run_cell(f"numba-cuda=={version}", "numba-cuda", "12.9", PLAIN, "sm_80", SIGNATURE, {})
    notes = [note for note in reply["notes"] if note.startswith("set for this cell: NUMBA_CUDA_USE_NVIDIA_BINDING=0")]
    assert bool(notes) is set_here
    if notes:  # the version that a plain import reports
        python = python_with(f"numba-cuda=={version}")
        done = subprocess.run([python, "-c", "import numba.cuda"], capture_output=True, text=True)
        assert "No module named 'cuda'" in done.stderr
        assert notes[0].endswith("cannot be imported here, since cuda-bindings is not installed")


def test_numba_cuda_links_with_the_toolkits_nvjitlink(run_cell: RunCell) -> None:
    reply = run_cell("numba-cuda==0.30.4", "numba-cuda", "13.0", SHARED.format(12289), "sm_80", SIGNATURE, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "assemble")
    assert "uses too much shared data" in reply["log"]


@pytest.mark.slow
@pytest.mark.parametrize(("target", "status"), [("sm_90", "unsupported"), ("sm_90a", "built"), ("compute_90", "built")])
def test_numba_cuda_builds_specific_code_for_hopper(run_cell: RunCell, target: str, status: str) -> None:
    reply = run_cell("numba-cuda==0.30.4", "numba-cuda", "13.0", PLAIN, target, SIGNATURE, {})
    assert reply["status"] == status, reply


@pytest.mark.parametrize(
    ("python", "backend", "words"),
    [("numba-cuda==0.15.0", "numba", "takes the place of Numba's own CUDA target"),
     ("numba==0.59.1", "numba-cuda", "this environment has no numba-cuda")],
)  # fmt: skip
def test_the_other_library_is_no_substitute(run_cell: RunCell, python: str, backend: str, words: str) -> None:
    reply = run_cell(python, backend, "12.9", PLAIN, "sm_80", SIGNATURE, {})
    assert reply["status"] == "unavailable"
    assert words in reply["reason"]


def test_numba_cuda_that_is_not_in_numbas_place(toolkit: Callable[[str], Installed], tmp_path: Path) -> None:
    """A .pth file adds the finder, and only folders of site-packages have such files. Without the finder, Numba's own target compiles."""
    python, own = python_with("numba-cuda==0.15.0"), tmp_path / "venv"
    subprocess.run([python, "-m", "venv", "--without-pip", str(own)], check=True)
    (own / "lib/python3.11/site-packages/more.pth").write_text(
        f"{Path(python).parents[1]}/lib/python3.11/site-packages\n"
    )
    installed = toolkit("12.9")
    setup = Setup(installed.home, "12.9", "12.9", [str(folder) for folder in installed.include], tmp_path)
    fork_server = ForkServer(str(own / "bin/python"), "numba-cuda", setup, clean_environment(str(installed.home)))
    try:
        ready = fork_server.ready.to_json()
    finally:
        fork_server.close()
    assert ready["status"] == "unavailable"
    assert "numba-cuda 0.15.0 is installed, but `import numba.cuda` gives" in ready["reason"]


@pytest.mark.slow
@pytest.mark.parametrize(("requirements", "release", "wheel"), [
    ("numba-cuda[cu12]==0.20.0", "12.4", "nvidia-cuda-nvcc-cu12 12.9"),
    ("numba-cuda[cu13]==0.30.4", "13.0", "nvidia-nvvm 13."),
])  # fmt: skip
def test_the_toolkit_counts_and_not_the_cuda_wheels_of_the_environment(
    requirements: str, release: str, wheel: str, run_cell: RunCell
) -> None:
    """The installation of numba-cuda's documentation: https://nvidia.github.io/numba-cuda/user/installation.html."""
    found = run_cell(requirements, "numba-cuda", release, PLAIN, "sm_80", SIGNATURE, {})
    assert found["status"] == "built", (found["reason"], found["log"])
    assert any(
        note.startswith(f"compiled with CUDA {release} of cumatrix, not with {wheel}") for note in found["notes"]
    )
