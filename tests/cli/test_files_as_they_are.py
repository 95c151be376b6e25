"""``cumatrix try`` with files of every common kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from harness.toolkits import Installed

from .test_errors import sentence

KERNEL = "__global__ void k(float *a) { *a = 1; }\n"
LATIN = "// caf\xe9\n" + KERNEL
PTX = """\
.version 7.0
.target sm_70
.address_size 64
.visible .entry k() { ret; }
"""


@pytest.mark.compilers
def test_encodings_and_spellings(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    toolkit("12.9")
    (cumatrix.folder / "latin.cu").write_bytes(LATIN.encode("latin-1"))
    (cumatrix.folder / "UPPER.CU").write_bytes(LATIN.encode("latin-1"))
    records = cumatrix.records("try", "latin.cu", "UPPER.CU", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
    assert [(record["case"], record["status"]) for record in records] == [("UPPER.CU", "built"), ("latin.cu", "built")]


@pytest.mark.compilers
def test_ptx_is_a_program_for_the_assembler(cumatrix: Command, toolkit: Callable[[str], Installed]) -> None:
    for release in ("11.8", "12.9"):
        toolkit(release)
    (cumatrix.folder / "k.ptx").write_text(PTX)
    axes = ("-t", "11.8,12.9", "-a", "sm_60,sm_80,sm_120")
    found = cumatrix.records("try", "k.ptx", *axes, "-Xptxas", "-O1")
    assert {record["backend"] for record in found} == {"ptxas"}
    assert {(record["toolkit"], record["target"]): record["status"] for record in found} == {
        ("11.8", "sm_60"): "rejected", ("11.8", "sm_80"): "built", ("11.8", "sm_120"): "unsupported",
        ("12.9", "sm_60"): "rejected", ("12.9", "sm_80"): "built", ("12.9", "sm_120"): "built",
    }  # fmt: skip
    built = next(record for record in found if record["status"] == "built")
    assert [kernel["name"] for kernel in built["artifact"]["kernels"]] == ["k"]
    assert built["variant"] == "--ptxas-options=-O1"
    assert built["command"] == ["$CUDA_HOME/bin/ptxas -arch=sm_80 -v -O1 k.ptx -o ./artifact.cubin"]
    sentence(cumatrix("try", "k.ptx", "-lineinfo"), 2, "-lineinfo is an option for CUDA C++, and no file is CUDA C++")


@pytest.mark.called
def test_what_is_no_program_is_told(cumatrix: Command) -> None:
    (cumatrix.folder / "k.cubin").write_bytes(b"\x7fELF")
    (cumatrix.folder / "plain.py").write_text("x = 1\n")
    (cumatrix.folder / "latin.py").write_bytes("# caf\xe9\n".encode("latin-1"))
    sentence(
        cumatrix("try", "k.cubin"), 2, "k.cubin is compiled code: name its source (.cu, .hip, .py) or its PTX (.ptx)"
    )
    sentence(cumatrix("try", "plain.py"), 2, "plain.py has no kernels")
    sentence(cumatrix("try", "latin.py"), 2, "cannot read latin.py: it is not UTF-8, as Python expects")


@pytest.mark.compilers
def test_one_unreadable_file_of_a_folder_is_named_and_the_rest_runs(
    cumatrix: Command, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("12.9")
    (cumatrix.folder / "src").mkdir()
    (cumatrix.folder / "src" / "good.cu").write_text(KERNEL)
    (cumatrix.folder / "src" / "memory.cu").symlink_to("/proc/1/mem")
    if _readable(cumatrix.folder / "src" / "memory.cu"):
        pytest.skip("this user reads the memory of process 1")
    done = cumatrix("try", "src", "-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
    assert done.returncode == 4
    assert "src/memory.cu cannot be read and is left out: Permission denied" in done.stderr
    assert "1 of 1 cells: 1 built" in done.stderr


def _readable(path: Path) -> bool:
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False
