"""``cumatrix explain``: from a cell or a log to its cause and remedy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command

from harness.toolkits import Installed

from .test_errors import sentence

pytestmark = pytest.mark.called

SOURCE = "__global__ void big(int *a) { __shared__ int s[12289]; s[threadIdx.x] = *a; *a = s[0]; }\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, toolkit: Callable[[str], Installed]) -> Path:
    """Records of a real run: rejected for 49156 bytes, and built."""
    folder = tmp_path_factory.mktemp("explain")
    toolkit("12.9")
    (folder / "big.cu").write_text(SOURCE)
    (folder / "small.cu").write_text(SOURCE.replace("12289", "12"))
    script = Path(sys.executable).with_name("cumatrix")
    for name in ("big", "small"):
        axes = ["-b", "nvrtc", "-t", "12.9", "-a", "sm_80,sm_90", "--out", f"reports/{name}.jsonl"]
        subprocess.run([script, "try", f"{name}.cu", *axes], cwd=folder, check=False, capture_output=True, timeout=800)
    return folder


def explain(cumatrix: Command, results: Path, *arguments: str) -> Any:
    return type(cumatrix)(results)("explain", *arguments)


def test_of_a_cell(cumatrix: Command, results: Path) -> None:
    done = explain(cumatrix, results, "big.cu nvrtc cuda12.9 sm_80")
    assert (done.returncode, done.stderr) == (0, "")
    assert "uses too much shared data (0xc004 bytes, 0xc000 max)" in done.stdout
    assert "Remedy: Make the array dynamic" in done.stdout
    assert "https://github.com/cupy/cupy/issues/8156" in done.stdout


def test_of_kernels_that_were_built(cumatrix: Command, results: Path) -> None:
    done = explain(cumatrix, results, "small sm_90", "--json", "--results", "reports/small.jsonl")
    value = json.loads(done.stdout)
    assert (value["status"], value["causes"]) == ("built", [])
    (kernel,) = value["kernels"]
    assert kernel["limits"]["block_shared"] == 227 * 1024
    assert kernel["shared"] == 48
    shown = explain(cumatrix, results, "small sm_90").stdout
    assert "48/232448" in shown
    assert "compute-capabilities" in shown


def test_of_a_log_and_of_standard_input(cumatrix: Command, results: Path) -> None:
    (results / "build.log").write_text("ok\nnvcc fatal   : Unsupported gpu architecture 'compute_50'\n")
    done = explain(cumatrix, results, "build.log")
    assert done.returncode == 0
    assert "line 2: nvcc fatal" in done.stdout
    assert (
        json.loads(explain(cumatrix, results, "build.log", "--json").stdout)["causes"][0]["name"]
        == "unknown-architecture"
    )
    assert explain(cumatrix, results, "-").returncode == 1


OLD = "nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated and may be removed in a future release\n"
ATOMIC = """\
kernel.cu(1): error: no instance of overloaded function "atomicAdd" matches the argument list
            argument types are: (double *, double)
"""


def test_an_error_comes_before_the_warning_beside_it(cumatrix: Command, results: Path) -> None:
    (results / "atomic.log").write_text(OLD + ATOMIC)
    done = explain(cumatrix, results, "atomic.log")
    assert done.returncode == 0
    assert done.stdout.strip().startswith("atomicAdd on double below compute capability 6.0")
    assert "Of a warning: An architecture that goes away" in done.stdout
    value = json.loads(explain(cumatrix, results, "atomic.log", "--json").stdout)
    assert [(item["name"], item["of"]) for item in value["causes"]] == [
        ("atomic-add-double", "error"),
        ("deprecated-architecture", "warning"),
    ]
    assert value["unexplained"] is None


def test_an_error_that_nobody_knows_is_said_to_be_one(cumatrix: Command, results: Path) -> None:
    (results / "unknown.log").write_text(OLD + 'kernel.cu(1): error: identifier "lost" is undefined\n')
    done = explain(cumatrix, results, "unknown.log")
    assert done.returncode == 1
    assert done.stdout.startswith("no cause is known of the error in this log:\n  line 2: kernel.cu(1): error")
    assert "Of a warning: " in done.stdout
    value = json.loads(explain(cumatrix, results, "unknown.log", "--json").stdout)
    assert value["unexplained"]["line"] == 2
    assert [item["of"] for item in value["causes"]] == ["warning"]


def test_a_cell_whose_error_nobody_knows(cumatrix: Command, results: Path) -> None:
    """NVRTC 12.9 warns about sm_50 for every program; the warning is not the cause of this rejection."""
    (results / "lost.cu").write_text("__global__ void lost(int *a) { *a = lost_and_found; }\n")
    axes = ["-b", "nvrtc", "-t", "12.9", "-a", "sm_50", "--out", "lost.jsonl"]
    explained = type(cumatrix)(results)
    assert explained("try", "lost.cu", *axes).returncode == 1
    done = explained("explain", "lost.cu", "--results", "lost.jsonl")
    assert done.returncode == 1
    assert "no cause is known of this" in done.stdout
    assert done.stdout.index("no cause is known of this") < done.stdout.index("Of a warning: An architecture that goes")


def test_nothing_known(cumatrix: Command, results: Path) -> None:
    (results / "quiet.log").write_bytes(b"all is \x1b[31mwell\xff\x00\n")
    done = explain(cumatrix, results, "quiet.log")
    assert (done.returncode, done.stdout.strip()) == (1, "no known cause is in this log")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], ["nothing is no file, and no cell of 4 has 'nothing' in its id; ids look like"]),
        (["nvrtc"], ["4 cells have 'nvrtc' in their ids, say more"]),
        (["nothing", "--results", "nowhere"], ["nowhere"]),
        (["reports/big.jsonl"], ["holds records, not a log", "--results reports/big.jsonl"]),
        (["-", "--target", "sm80"], ["'sm80' is not a target"]),
    ],
)
def test_errors(cumatrix: Command, results: Path, arguments: list[str], words: list[str]) -> None:
    sentence(explain(cumatrix, results, *arguments), 2, *words)


def test_without_records(cumatrix: Command) -> None:
    sentence(cumatrix("explain", "anything"), 2, "name the records with --results")
