"""Headers that a program finds: the compiler's own headers, and those of named directories."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import write_case
from command import Command

from harness.toolkits import Installed
from harness.toolkits.store import data_folder

pytestmark = [pytest.mark.called, pytest.mark.compilers]
KERNEL = 'extern "C" __global__ void k(int *a) {{ *a = {}; }}\n'
AXES = {"nvrtc": ("-b", "nvrtc", "-t", "12.4"), "nvcc": ("-b", "nvcc", "-t", "13.0")}


@pytest.fixture(params=["nvrtc", pytest.param("nvcc", marks=pytest.mark.slow)])
def attempt(
    request: pytest.FixtureRequest, cumatrix: Command, toolkit: Callable[[str], Installed]
) -> Callable[..., Any]:
    """Try a file with one compiler for one target; return its record."""
    axes = AXES[request.param]
    toolkit(axes[-1])

    def attempt(file: Path, *options: str | Path) -> dict[str, Any]:
        (record,) = cumatrix.records("try", file, *axes, "-a", "sm_80", *options)
        return record

    return attempt


def lay(folder: Path, **files: str) -> Path:
    """Write files by name, with ``__`` for a slash and ``_`` for a full stop; return the program's path."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "src" / "k.cu"


def test_headers_in_quotes_are_found_from_where_the_program_lies(attempt: Callable[..., Any], tmp_path: Path) -> None:
    program = '#include "../common.h"\n#include "det/d.h"\n' + KERNEL.format("COMMON + D + E")
    # d.h includes e.h relative to d.h, not to the program.
    source = lay(
        tmp_path, common_h="#define COMMON 1\n", src__det__d_h='#include "e.h"\n#define D 2\n',
        src__det__e_h="#define E 3\n", src__k_cu=program,
    )  # fmt: skip
    assert attempt(source)["status"] == "built"
    linked = tmp_path / "src" / "linked"
    linked.mkdir()
    (linked / "k.cu").symlink_to(source)
    assert attempt(linked / "k.cu")["status"] == "rejected", "a link is beside what it lies beside"


def test_the_programs_own_folder_is_no_include_directory(attempt: Callable[..., Any], tmp_path: Path) -> None:
    source = lay(
        tmp_path, src__boost__b_h="#define B 1\n", src__own_h="", src__k_cu="#include <boost/b.h>\n" + KERNEL.format("B")
    )  # fmt: skip
    record = attempt(source)
    assert (record["status"], record["diagnostics"][0]["line"]) == ("rejected", 1)
    assert "boost/b.h" in record["diagnostics"][0]["message"]
    assert attempt(source, "-I", source.parent)["status"] == "built"


@pytest.mark.parametrize("attempt", ["nvcc"], indirect=True)
def test_a_header_of_the_hosts_name_beside_the_program_is_left_alone(
    attempt: Callable[..., Any], tmp_path: Path
) -> None:
    source = lay(tmp_path, src__math_h="#error mine\n", src__k_cu="#include <cmath>\n" + KERNEL.format("(int)sqrtf(4)"))
    assert attempt(source)["status"] == "built"


def test_a_record_has_no_path_of_this_machine(attempt: Callable[..., Any], tmp_path: Path) -> None:
    source = lay(
        tmp_path / "a folder (1)", common_h="int outside = missing1;\n", src__det__d_h="int inside = missing2;\n",
        src__k_cu='#include "../common.h"\n#include "det/d.h"\nint here = missing3;\n',
    )  # fmt: skip
    record = attempt(source)
    assert record["status"] == "rejected"
    found = {(item["file"], item["line"]) for item in record["diagnostics"] if "missing" in item["message"]}
    assert found == {("common.h", 1), ("d.h", 1), ("k.cu", 3)}
    for place in ("../common.h(1)", "det/d.h(1)", "k.cu(3)"):
        assert f"\n{place}" in "\n" + record["log"]
    told = json.dumps([record["log"], record["diagnostics"], record["command"]])
    assert str(tmp_path) not in told
    assert str(data_folder()) not in told and str(data_folder().resolve()) not in told
    assert ("-I$CUDA_HOME/include" in told) is (record["backend"] == "nvrtc")  # nvcc finds its own headers without it


def test_a_case_names_its_include_directories(
    cumatrix: Command, toolkit: Callable[[str], Installed], venv: Callable[..., str], tmp_path: Path
) -> None:
    """CuPy receives a text, which has no folder: users of RawModule name the folder of their headers."""
    toolkit("12.4")
    text = '#include "own.h"\n' + KERNEL.format("OWN")
    for name, table in (("plain/alone", ""), ("plain/named", '[[options]]\ninclude = ["."]\n')):
        write_case(tmp_path / "cases", name, text, table)
        (tmp_path / "cases" / name / "own.h").write_text("#define OWN 7\n")
    python = venv("cupy-cuda12x==13.1.0")
    records = cumatrix.records(
        "run", "plain", "-b", "nvrtc,cupy-nvrtc", "-t", "12.4", "-a", "sm_80", "--python", python
    )
    assert {(record["case"], record["backend"]): record["status"] for record in records} == {
        ("plain/alone", "nvrtc"): "built",
        ("plain/named", "nvrtc"): "built",
        ("plain/alone", "cupy-nvrtc"): "rejected",
        ("plain/named", "cupy-nvrtc"): "built",
    }
    commands = json.dumps([record["command"] for record in records], ensure_ascii=False)
    assert "-I…/site-packages/cupy/_core/include" in commands
    assert str(data_folder()) not in commands and "/bin/python" not in commands
