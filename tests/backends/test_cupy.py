"""CuPy itself, through NVRTC and through Jitify, with a virtual device."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cells import make_case, make_cell

from harness.backends import BACKENDS
from harness.cases.discovery import load_cases
from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import look
from harness.engine.environments import default_toolkit
from harness.engine.executor import Run
from harness.engine.plan import plan
from harness.model.target import parse_targets
from harness.protocol.messages import Limits
from harness.toolkits import Installed, ToolkitStore, parse_toolkits
from harness.toolkits.store import data_folder

# Jitify reads large headers one by one, which takes minutes.
pytestmark = [pytest.mark.compilers, pytest.mark.timeout(2700)]
RunCell = Callable[..., dict[str, Any]]
OLD, NEW = "cupy-cuda12x==12.3.0", "cupy-cuda12x==13.1.0"
BUNDLED, BY_RELEASE, NEWEST = "cupy-cuda12x==13.2.0", "cupy-cuda12x==13.3.0", "cupy-cuda12x==14.2.0"
# From CUDA 12.2 on, releases up to 13.2 cannot read mma.h.
BEFORE_12_2 = "12.0"

PLAIN = 'extern "C" __global__ void scale(float *a) { a[threadIdx.x] *= 2; }'
# https://github.com/cupy/cupy/issues/8155
ACCUMULATOR = """\
#include <mma.h>
extern "C" __global__ void scale(float *a) {
    nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 8, float> c;
    nvcuda::wmma::fill_fragment(c, 0.0f);
    a[threadIdx.x] = c.x[0];
}
"""
WRONG = 'extern "C" __global__ void scale(float *a) { missing; }'
LARGE = 'extern "C" __global__ void scale(float *a) { __shared__ float b[12289]; b[threadIdx.x] = *a; __syncthreads(); *a = b[*(int *)a]; }'


@pytest.mark.parametrize("backend", ["cupy-nvrtc", "cupy-jitify"])
@pytest.mark.parametrize("target", ["sm_70", "sm_90"])
def test_a_plain_kernel(run_cell: RunCell, backend: str, target: str) -> None:
    reply = run_cell(OLD, backend, "12.4", PLAIN, target, {"scale": ""}, {})
    assert reply["status"] == "built", reply
    assert reply["artifact"]["target"] == target
    assert reply["observed"]["cupy"] == "12.3.0"
    assert reply["observed"]["nvrtc"] == "12.4"
    assert reply["device"]["virtual"] is True


@pytest.mark.parametrize(
    ("requirement", "backend", "target", "status"),
    [
        (OLD, "cupy-nvrtc", "sm_75", "rejected"), (OLD, "cupy-nvrtc", "sm_80", "built"), (NEW, "cupy-nvrtc", "sm_80", "built"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (
            (OLD, "cupy-jitify", "sm_75", "rejected"), (OLD, "cupy-jitify", "sm_80", "rejected"), (OLD, "cupy-jitify", "sm_90", "rejected"),
            (NEW, "cupy-jitify", "sm_75", "rejected"), (NEW, "cupy-jitify", "sm_80", "built"),
        )),
    ],
)  # fmt: skip
def test_the_accumulator_of_8155(run_cell: RunCell, requirement: str, backend: str, target: str, status: str) -> None:
    reply = run_cell(requirement, backend, BEFORE_12_2, ACCUMULATOR, target, {"scale": ""}, {})
    assert reply["status"] == status, reply
    if status == "rejected":
        assert reply["stage"] == "compile"
        assert any("incomplete type" in item["message"] for item in reply["diagnostics"])  # though Jitify hides it


@pytest.mark.parametrize(
    ("requirement", "backend"),
    [
        (OLD, "cupy-nvrtc"), (OLD, "cupy-jitify"), (NEW, "cupy-nvrtc"), pytest.param(NEW, "cupy-jitify", marks=pytest.mark.slow)
    ],
)  # fmt: skip
def test_the_compilers_own_words_are_there(run_cell: RunCell, requirement: str, backend: str) -> None:
    reply = run_cell(requirement, backend, "12.4", WRONG, "sm_80", {"scale": ""}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "compile")
    assert any('identifier "missing" is undefined' in item["message"] for item in reply["diagnostics"])


def test_what_the_assembler_refuses_is_told_from_what_the_compiler_refuses(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-nvrtc", "12.9", LARGE, "sm_80", {"scale": ""}, {})
    assert (reply["status"], reply["stage"]) == ("rejected", "assemble")
    assert "uses too much shared data (0xc004 bytes, 0xc000 max)" in reply["log"]


def test_a_given_architecture_reaches_the_compiler(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-jitify", "12.4", PLAIN, "sm_80", {"scale": ""}, {"arch": "given"})
    assert "-arch=sm_80" in reply["command"][0]


def test_suffixes_are_beyond_cupy(run_cell: RunCell) -> None:
    reply = run_cell(OLD, "cupy-nvrtc", "12.4", PLAIN, "sm_90a", {"scale": ""}, {})
    assert reply["status"] == "unsupported"
    assert "no suffix" in reply["reason"]


def test_a_cell_does_not_inherit_the_device_of_the_one_before(run_cell: RunCell) -> None:
    for target in ("sm_90", "sm_70", "sm_90"):
        assert run_cell(OLD, "cupy-nvrtc", "12.4", PLAIN, target, {"scale": ""}, {})["artifact"]["target"] == target


@pytest.mark.slow
def test_headers_that_jitify_found_beforehand_change_nothing(run_cell: RunCell, tmp_path: Path) -> None:
    """The table of headers only saves time: with an empty table, the outcome is the same."""
    warm = [
        run_cell(NEW, "cupy-jitify", BEFORE_12_2, text, "sm_80", {"scale": ""}, {}) for text in (ACCUMULATOR, WRONG)
    ]
    tools = tmp_path / "tools"
    shutil.copytree(data_folder() / "tools", tools)
    empty_tables(tools)
    cold = [
        run_cell(NEW, "cupy-jitify", BEFORE_12_2, text, "sm_80", {"scale": ""}, {}, tools)
        for text in (ACCUMULATOR, WRONG)
    ]
    assert [item["status"] for item in cold] == ["built", "rejected"]
    assert cold[0]["artifact"] == warm[0]["artifact"]
    assert cold[1]["diagnostics"] == warm[1]["diagnostics"]


@pytest.mark.slow
def test_cases_compile_to_the_same_with_an_empty_table(
    venv: Callable[..., str],
    store: ToolkitStore,
    toolkit: Callable[[str], Installed],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With CuPy 12, whose Jitify finds all headers of these programs within seconds."""
    toolkit(BEFORE_12_2)
    environment = look(venv(OLD))
    topics = ("cooperative", "exceptions", "shared-memory", "wmma")  # other headers include so much that it takes hours
    cases = load_cases(Path(__file__).parents[2] / "cases", topics)
    cells = plan(cases, [BACKENDS["cupy-jitify"]], parse_toolkits(BEFORE_12_2), parse_targets("sm_80"), environment)

    def outcomes() -> dict[str, tuple[Any, ...]]:
        with Run(RunContext(environment, store, None, RunRequest(limits=Limits(seconds=300)))) as run:
            found = [(cell.id, run.result(cell).outcome) for cell in cells]
        return {name: (each.status, each.artifact, each.diagnostics) for name, each in found}

    with_table = outcomes()
    assert {"built", "rejected"} <= {found[0] for found in with_table.values()}
    home = tmp_path / "home"
    shutil.copytree(data_folder() / "tools", home / "tools")
    empty_tables(home / "tools")
    monkeypatch.setenv("CUMATRIX_HOME", str(home))
    assert outcomes() == with_table
    assert not any(json.loads(table.read_text())["table"] for table in (home / "tools" / "jitify").glob("*.json"))


def empty_tables(tools: Path) -> None:
    """Replace every table by one without findings and without remaining headers."""
    tables = list((tools / "jitify").glob("*.json"))
    assert any(json.loads(table.read_text())["table"] for table in tables)
    for table in tables:
        table.write_text(json.dumps({"table": {}, "files": {}, "left": []}))


def added(reply: dict[str, Any]) -> list[str]:
    """Return the include directories of the last compilation, by their distinctive parts."""
    folders = [word.removeprefix("-I") for word in reply["command"][-1].split() if word.startswith("-I")]
    return [folder.rpartition("/_core/include")[2] if "/_core/include" in folder else folder for folder in folders]


@pytest.mark.parametrize(
    ("backend", "requirement", "status"),
    [
        ("cupy-nvrtc", OLD, "rejected"), ("cupy-nvrtc", BUNDLED, "rejected"), ("cupy-nvrtc", BY_RELEASE, "built"),
        pytest.param("cupy-nvrtc", NEWEST, "built", marks=pytest.mark.slow),
        pytest.param("cupy-jitify", BUNDLED, "rejected", marks=pytest.mark.slow),
        pytest.param("cupy-jitify", BY_RELEASE, "built", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_the_bundled_header_of_8146(run_cell: RunCell, backend: str, requirement: str, status: str) -> None:
    reply = run_cell(requirement, backend, "12.4", ACCUMULATOR, "sm_80", {"scale": ""}, {})
    assert reply["status"] == status, reply
    if status == "rejected":
        assert 'no instance of overloaded function "__half::__half"' in reply["diagnostics"][0]["message"]


@pytest.mark.parametrize(
    ("requirement", "own"),
    [
        (OLD, ["", "/cupy/_cuda/cuda-12"]),
        (BUNDLED, [*(f"/cupy/_cccl/{name}" for name in ("cub", "thrust", "libcudacxx")), "", "/cupy/_cuda/cuda-12"]),
        (BY_RELEASE, [*(f"/cupy/_cccl/{name}" for name in ("cub", "thrust", "libcudacxx")), "", "/cupy/_cuda/cuda-12.4"]),
        pytest.param(NEWEST, [*(f"/cupy/_cccl/{name}" for name in ("cub", "thrust", "libcudacxx")), ""], marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_include_directories_are_cupys_in_its_order(run_cell: RunCell, requirement: str, own: list[str]) -> None:
    """The calls of `assemble_cupy_compiler_options` (before 13.0 `compile_with_cache`) in each release."""
    reply = run_cell(requirement, "cupy-nvrtc", "12.4", PLAIN, "sm_80", {"scale": ""}, {})
    assert added(reply) == [*own, "$CUDA_HOME/include"]
    # CuPy's own CCCL comes first if CuPy has one; 12.4's is 2.3.
    versions = {OLD: "2.3", BUNDLED: "2.2", BY_RELEASE: "2.6", NEWEST: "3.1"}
    assert reply["observed"]["headers"]["cudart"] == "12.4"
    assert reply["observed"]["headers"]["cub"] == versions[requirement]


@pytest.mark.parametrize(
    ("requirement", "status", "words"),
    [
        (BUNDLED, "built", ""),
        (BY_RELEASE, "rejected", 'cannot open source file "vector_types.h"'),
        pytest.param(NEWEST, "rejected", "RuntimeError: Failed to find CUDA headers", marks=pytest.mark.slow),
    ],
)
def test_without_a_toolkit_there_is_what_cupy_bundles(
    run_cell: RunCell, requirement: str, status: str, words: str
) -> None:
    """https://github.com/cupy/cupy/issues/8466: messages of a cell do not stay for the next."""
    text = "#include <cuda_fp16.h>\n" + PLAIN
    reply = run_cell(requirement, "cupy-nvrtc", "12.4", text, "sm_80", {"scale": ""}, {"toolkit_headers": False})
    assert reply["status"] == status, reply["log"]
    assert not words or words in reply["diagnostics"][0]["message"]
    assert not added(reply) or "$CUDA_HOME/include" not in added(reply)
    assert run_cell(requirement, "cupy-nvrtc", "12.4", text, "sm_80", {"scale": ""}, {})["status"] == "built"


WHEELS = {"13.6.0": "nvidia-cuda-runtime-cu12==12.9.79", "14.2.0": "nvidia-cuda-runtime-cu12==12.9.79"}


@pytest.mark.parametrize("version", ["13.6.0", pytest.param("14.2.0", marks=pytest.mark.slow)])
def test_headers_out_of_wheels(
    venv: Callable[..., str], store: ToolkitStore, toolkit: Callable[[str], Installed], version: str, tmp_path: Path
) -> None:
    """An environment such as ``cupy-cuda12x[ctk]``: CuPy ignores the toolkit, and the cell has its own column."""
    toolkit("12.9")
    environment = look(venv(f"cupy-cuda12x=={version}", WHEELS[version]))
    assert default_toolkit(environment) == "12.9"
    with Run(RunContext(environment, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        outcomes = {}
        half, none = "#include <cuda_fp16.h>\n" + PLAIN, {"toolkit_headers": False}
        for name, text, options in (("plain", half, {}), ("matrix", ACCUMULATOR, {}), ("alone", half, none)):
            source = tmp_path / name / "kernel.cu"
            source.parent.mkdir()
            source.write_text(text)
            cells = plan(
                [make_case(source, options=options)], [BACKENDS["cupy-nvrtc"]], parse_toolkits("12.9"), parse_targets("sm_80"), environment
            )  # fmt: skip
            assert [cell.toolchain.library for cell in cells] == [f"{version}+wheels"]
            assert cells[0].facts()["wheels"] is True
            outcomes[name] = run.result(cells[0]).outcome
    assert outcomes["plain"].status == "built"
    assert outcomes["plain"].observed["headers_from"] == "wheels"
    assert added({"command": outcomes["plain"].command})[-1].endswith("/site-packages/nvidia/cuda_runtime/include")
    assert outcomes["alone"].status == "unsupported"
    assert "lie in CuPy's own environment (nvidia-cuda-runtime-cu12 12.9.79)" in outcomes["alone"].reason
    assert outcomes["matrix"].status == "rejected"
    assert outcomes["matrix"].diagnostics[0].message == 'cannot open source file "crt/mma.h"'


@pytest.mark.slow
def test_headers_of_a_wheel_that_nobody_asked_for(
    venv: Callable[..., str], store: ToolkitStore, toolkit: Callable[[str], Installed], tmp_path: Path
) -> None:
    """From 14.1 on, CuPy prefers any wheel to CUDA_PATH: no cell is built under the toolkit's name."""
    toolkit("12.4")
    environment = look(venv("cupy-cuda12x==14.2.0", WHEELS["14.2.0"]))
    source = tmp_path / "kernel.cu"
    source.write_text(PLAIN)
    with Run(RunContext(environment, store, None, RunRequest(limits=Limits(seconds=120)))) as run:
        cell = make_cell(make_case(source), "cupy-nvrtc", "12.4", environment=environment)
        outcome = run.result(cell).outcome
    assert outcome.status == "unavailable"
    assert (
        "not from CUDA 12.4: ask for that release, or use an environment without nvidia-cuda-runtime" in outcome.reason
    )
