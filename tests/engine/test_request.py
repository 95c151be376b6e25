"""From a user's request to cells and their records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.engine.context import RunContext, RunRequest
from harness.engine.environment import Environment
from harness.engine.environments import default_toolkit
from harness.engine.plan import axes_of, cells_of
from harness.engine.prepared import Result
from harness.errors import NothingToRun, PartUnavailable, UsageError
from harness.model import Outcome, Stage, Status
from harness.protocol.messages import Distribution
from harness.toolkits import ToolkitStore

CASE = """
title = "{name}"
source.{language} = "{file}"
{more}
"""


def environment(**versions: str) -> Environment:
    found = {name.replace("_", "-"): Distribution(v) for name, v in versions.items()}
    return Environment(name="e", python="python", version="3.11.7", distributions=found)


PLAIN = environment()


def context(request: RunRequest, under_test: Environment = PLAIN) -> RunContext:
    return RunContext(under_test, ToolkitStore(), None, request)


@pytest.fixture
def request_for(tmp_path: Path) -> RunRequest:
    """Write two cases, one in CUDA C++ and one in Python."""
    for name, language, file, more in (
        ("made/add", "cuda", "kernel.cu", ""),
        ("made/scale", "python", "kernel.py", 'entry.python.scale = "void(float32[:])"'),
    ):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / file).write_text("")
        text = CASE.format(name=name, language=language, file=file, more=more)
        (folder / "case.toml").write_text(text)
    return RunRequest(cases=(tmp_path,))


def test_what_nobody_named_fits_the_environment() -> None:
    backends, toolkits, targets = axes_of(context(RunRequest(), environment(numba="0.59.1")))
    assert {"nvrtc", "numba"} <= {backend.name for backend in backends}
    assert "cupy-nvrtc" not in {backend.name for backend in backends}
    assert [str(toolkit) for toolkit in toolkits] == ["12.9"]
    assert "sm_90" in map(str, targets)


def test_what_somebody_named_is_taken_in_that_order() -> None:
    wanted = RunRequest(backends="nvrtc,nvcc", toolkits="13.0,12.4", targets="sm_90,sm_80")
    backends, toolkits, targets = axes_of(context(wanted))
    assert {backend.name for backend in backends} == {"nvrtc", "nvcc"}
    assert {str(toolkit) for toolkit in toolkits} == {"12.4", "13.0"}
    assert {str(target) for target in targets} == {"sm_80", "sm_90"}


@pytest.mark.parametrize(
    ("wanted", "word"),
    [
        (RunRequest(backends="nvrtcc"), "nvrtcc"),
        (RunRequest(toolkits="12.99"), "12.99"),
        (RunRequest(targets="sm_8000"), "sm_8000"),
        (RunRequest(targets="ampere"), "ampere"),
    ],
)
def test_a_name_that_nothing_knows_is_bad_usage(wanted: RunRequest, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        axes_of(context(wanted))


def test_the_machines_own_target_needs_a_device() -> None:
    with pytest.raises(PartUnavailable, match="CUDA device"):
        axes_of(context(RunRequest(targets="sm_80,native")))


@pytest.mark.parametrize(
    ("versions", "release"),
    [
        ({}, "12.9"),
        ({"cupy_cuda11x": "12.3.0"}, "11.8"),
        ({"cupy_cuda12x": "13.6.0"}, "12.9"),
        ({"cupy_cuda13x": "13.6.0"}, "13.0"),
        ({"cupy_cuda12x": "13.6.0", "nvidia_cuda_runtime_cu12": "12.4.127"}, "12.4"),
        ({"cupy_cuda12x": "13.6.0", "nvidia_cuda_runtime": "13.0.96"}, "12.9"),
        ({"torch": "2.11.0", "nvidia_cuda_runtime": "13.0.96"}, "13.0"),
        ({"torch": "2.11.0"}, "12.9"),
    ],
)
def test_the_release_that_fits_an_environment(versions: dict[str, str], release: str) -> None:
    assert default_toolkit(environment(**versions)) == release


def test_each_backend_gets_the_cases_of_its_language(request_for: RunRequest) -> None:
    wanted = RunRequest(cases=request_for.cases, backends="nvrtc,numba", toolkits="12.4", targets="sm_80")
    assert [cell.id for cell in cells_of(context(wanted, environment(numba="0.59.1")))] == [
        "made/add nvrtc cuda12.4 sm_80",
        "made/scale numba@0.59.1 cuda12.4 sm_80",
    ]


def test_nvcc_joins_unasked_where_its_wheels_begin(request_for: RunRequest) -> None:
    def names(**axes: Any) -> set[str]:
        wanted = RunRequest(
            cases=request_for.cases, selection=("made/add",), toolkits="12.9,13.0", targets="sm_80", **axes
        )
        return {f"{cell.toolchain.backend} {cell.toolchain.toolkit}" for cell in cells_of(context(wanted))}

    assert names() == {"nvrtc 12.9", "nvrtc 13.0", "nvcc 13.0"}
    assert names(backends="nvcc") == {"nvcc 12.9", "nvcc 13.0"}


def test_the_order_changes_nothing_but_the_order(request_for: RunRequest) -> None:
    found = {}
    for order in ("plan", "reverse", "random"):
        wanted = RunRequest(cases=request_for.cases, backends="nvrtc", toolkits="12.4,13.0", order=order)
        found[order] = [cell.id for cell in cells_of(context(wanted))]
    assert found["reverse"] == found["plan"][::-1] != found["plan"]
    assert sorted(found["random"]) == sorted(found["plan"])


def test_nothing_left_of_a_selection_is_said(request_for: RunRequest) -> None:
    with pytest.raises(NothingToRun):
        cells_of(context(replace(request_for, selection=("made/scale",), backends="nvrtc")))


def test_a_record_is_judged_by_its_case(request_for: RunRequest) -> None:
    folder = request_for.cases[0] / "made" / "add"
    text = (folder / "case.toml").read_text()
    expectation = '[[expect]]\nwhen = \'cc < "9.0"\'\nstatus = "rejected"\nreason = "needs sm_90"\n'
    (folder / "case.toml").write_text(text + expectation)
    wanted = RunRequest(cases=request_for.cases, backends="nvrtc", toolkits="12.4", targets="sm_80,sm_90")
    refused = Outcome(status=Status.REJECTED, stage=Stage.COMPILE, stages=(Stage.COMPILE,))
    records = [Result(cell, refused, True, "f" * 16).record("night") for cell in cells_of(context(wanted))]
    assert [(record["target"], record["verdict"]) for record in records] == [("sm_80", "pass"), ("sm_90", "fail")]
    assert {(record["run"], record["cached"], record["fingerprint"]) for record in records} == {
        ("night", True, "f" * 16)
    }


def test_a_heavy_case_runs_when_it_is_named(request_for: RunRequest, capfd: pytest.CaptureFixture[str]) -> None:
    heavy = request_for.cases[0] / "made" / "add" / "case.toml"
    heavy.write_text("heavy = true\n" + heavy.read_text())
    both = replace(request_for, backends="nvrtc,numba", toolkits="12.4", targets="sm_80")
    found = environment(numba="0.59.1")
    assert {cell.case.name for cell in cells_of(context(both, found))} == {"made/scale"}
    assert "skipped, because they take long: made/add" in capfd.readouterr().err
    for named in ("made", "made/add", "*"):
        assert "made/add" in {cell.case.name for cell in cells_of(context(replace(both, selection=(named,)), found))}
    assert capfd.readouterr().err == ""
