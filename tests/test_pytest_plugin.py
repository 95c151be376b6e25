"""The pytest plugin, in separate pytest processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from cells import write_library

from harness.records import RecordWriter
from harness.toolkits import Installed

pytestmark = pytest.mark.compilers
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cases(tmp_path: Path, toolkit: Callable[[str], Installed]) -> Path:
    toolkit("12.4")
    write_library(tmp_path / "cases")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return tmp_path / "cases"


@pytest.fixture
def run(cases: Path, tmp_path: Path) -> Run:
    def run(*arguments: str, toolkit: str = "12.4", target: str = "sm_75,sm_80") -> subprocess.CompletedProcess[str]:
        axes = ["--cumatrix-backend", "nvrtc", "--cumatrix-toolkit", toolkit, "--cumatrix-target", target]
        env = {**os.environ, "CUMATRIX_CACHE": str(tmp_path / "cache")}
        argv = [sys.executable, "-m", "pytest", "cases", *axes, *arguments]
        return subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=800, env=env)

    return run


def counted(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    words = done.stdout.strip().splitlines()[-1].replace(",", "").replace("=", "").split()
    kinds = ("passed", "failed", "skipped", "xfailed", "deselected", "error")
    return {kind: int(words[words.index(kind) - 1]) for kind in kinds if kind in words}


def records(path: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({record["cell"] for record in found}) == len(found)
    return {record["cell"]: record for record in found}


def test_one_item_a_cell(run: Run, tmp_path: Path) -> None:
    done = run("-v", "-rA")
    assert done.returncode == 0, done.stdout
    assert counted(done) == {"passed": 12, "xfailed": 2}
    assert "cases/plain/two/case.toml::[N=2] nvrtc cuda12.4 sm_80 PASSED" in done.stdout
    found = records(tmp_path / "reports" / "local.jsonl")
    assert len(found) == 14
    assert {record["verdict"] for record in found.values()} == {"pass", "xfail"}
    assert len(json.loads((tmp_path / "reports" / "local.plan.json").read_text())["cells"]) == 14


def test_collecting_compiles_nothing(run: Run, tmp_path: Path) -> None:
    done = run("--collect-only", "-q")
    assert done.returncode == 0
    assert done.stdout.count("::") == 14
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize(
    ("expression", "number"),
    [("sm_80", 7), ("by-target/tf32", 2), ("two and sm_80", 2), ("not wrong and not sm_75", 5)],
)
def test_selection_by_words(run: Run, tmp_path: Path, expression: str, number: int) -> None:
    done = run("-k", expression, "--cumatrix-out", "out.jsonl")
    assert done.returncode == 0, done.stdout
    assert counted(done)["deselected"] == 14 - number
    assert len(records(tmp_path / "out.jsonl")) == number


@pytest.mark.slow
def test_selection_by_marker(run: Run) -> None:
    assert counted(run("-m", "cumatrix"))["passed"] == 12
    assert run("-m", "not cumatrix").returncode == 5


@pytest.mark.slow
def test_workers_write_the_same_records(run: Run, tmp_path: Path) -> None:
    one = run("--cumatrix-no-cache", "--cumatrix-out", "one.jsonl")
    two = run("--cumatrix-no-cache", "--cumatrix-out", "two.jsonl", "-n", "2")
    assert one.returncode == two.returncode == 0, two.stdout
    assert counted(one) == counted(two)
    assert records(tmp_path / "one.jsonl").keys() == records(tmp_path / "two.jsonl").keys()
    assert (tmp_path / "two.plan.json").exists()


@pytest.mark.slow
def test_cells_are_replaced_and_others_kept(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        assert run("-n", "2", "-k", "plain/two").returncode == 0
    assert len(records(tmp_path / "reports" / "local.jsonl")) == 4
    assert run("-k", "plain/one").returncode == 0
    assert len(records(tmp_path / "reports" / "local.jsonl")) == 6
    assert run("-k", "plain/one", "--cumatrix-fresh").returncode == 0
    assert len(records(tmp_path / "reports" / "local.jsonl")) == 2


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_file_that_another_run_writes_to(run: Run, tmp_path: Path, workers: tuple[str, ...]) -> None:
    cell = {
        "schema": 1,
        "run": "other",
        "environment": "x",
        "started": "2026-01-01",
        "machine": {},
        "argv": [],
        "cells": [],
    }
    with RecordWriter(tmp_path / "held.jsonl", cell):
        done = run("-k", "plain/one", "--cumatrix-out", "held.jsonl", *workers)
    assert done.returncode == (1 if workers else 4)
    assert "held.jsonl: another run is writing to it" in done.stdout + done.stderr
    assert (tmp_path / "held.jsonl").read_text() == ""


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_target_that_nothing_knows(run: Run, workers: tuple[str, ...]) -> None:
    done = run(*workers, target="sm_76")
    assert done.returncode == (1 if workers else 4)
    assert "no CUDA release knows sm_76; the nearest are sm_75 and sm_80" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_where_no_compiler_answers_nothing_is_green(run: Run, workers: tuple[str, ...]) -> None:
    done = run("-k", "plain", *workers, target="sm_120")
    assert done.returncode == 5, done.stdout
    assert counted(done)["skipped"] == 4
    assert "cumatrix: no compiler answered any of the 4 cells: CUDA 12.4 knows no sm_120" in done.stdout


@pytest.mark.slow
def test_what_was_named_and_not_answered_is_said(run: Run) -> None:
    done = run("-k", "plain/one", target="sm_80,sm_120")
    assert done.returncode == 0
    assert "cumatrix: no compiler answered for the target sm_120: CUDA 12.4 knows no sm_120" in done.stdout
    assert "no compiler answered" not in run("-k", "plain/one").stdout


@pytest.mark.slow
def test_what_fails_says_why_and_runs_again_with_lf(run: Run, cases: Path) -> None:
    source = cases / "plain" / "one" / "kernel.cu"
    good = source.read_text()
    source.write_text("__global__ void one() { wrong; }")
    done = run()
    assert done.returncode == 1
    assert counted(done)["failed"] == 2
    for words in (
        "rejected at compile",
        "expected: built",
        'error: identifier "wrong" is undefined',
        "nvrtcCompileProgram --gpu-architecture=sm_80",
    ):
        assert words in done.stdout
    assert "Traceback" not in done.stdout
    again = run("--lf")
    assert counted(again)["failed"] == 2
    assert counted(again).get("passed", 0) == 0
    source.write_text(good)
    assert counted(run("--lf")) == {"passed": 2}


def test_a_known_fault_that_is_gone_fails(run: Run, cases: Path) -> None:
    (cases / "wrong" / "known" / "kernel.cu").write_text("__global__ void known() {}")
    done = run("-k", "known")
    assert done.returncode == 1
    assert counted(done)["failed"] == 2
    assert "[XPASS(strict)] it is wrong" in done.stdout


def test_what_is_not_applicable_is_skipped_with_the_reason(run: Run, toolkit: Callable[[str], Installed]) -> None:
    toolkit("13.0")
    done = run("-k", "plain/one", "-rs", toolkit="13.0", target="sm_50,sm_80")
    assert done.returncode == 0, done.stdout
    assert counted(done)["skipped"] == 1
    assert "CUDA 13.0 knows no sm_50" in done.stdout


def test_a_part_that_is_missing_fails(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "empty"))
    done = run("-k", "plain/one", "--cumatrix-offline")
    assert done.returncode == 1
    assert counted(done)["failed"] == 2
    assert (
        done.stdout.count("--offline downloads nothing: CUDA 12.4. To install it, run `cumatrix toolkits install 12.4`")
        == 1
    )


@pytest.mark.slow
def test_junit_has_the_cells_properties(run: Run, tmp_path: Path) -> None:
    assert run("-k", "tf32", "--junitxml", "junit.xml").returncode == 0
    tests = ElementTree.parse(tmp_path / "junit.xml").getroot().findall(".//testcase")
    assert len(tests) == 2
    by_target = {}
    for test in tests:
        properties = {item.attrib["name"]: item.attrib["value"] for item in test.findall("./properties/property")}
        by_target[properties["target"]] = properties
    assert by_target["sm_75"]["status"] == "rejected"
    assert by_target["sm_80"]["status"] == "built"
    for properties in by_target.values():
        assert (properties["backend"], properties["toolkit"], properties["verdict"]) == ("nvrtc", "12.4", "pass")
        assert properties["cell"].startswith("by-target/tf32 nvrtc cuda12.4 sm_")
        assert len(properties["fingerprint"]) == 64


def test_a_broken_case_is_an_error_of_collection(run: Run, cases: Path) -> None:
    (cases / "plain" / "one" / "case.toml").write_text('title = "x"\nsorce = 3\n')
    done = run()
    assert done.returncode == 2
    assert "did you mean" in done.stdout
    assert "Traceback" not in done.stdout


def test_an_unknown_backend_is_one_sentence(cases: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "pytest", "cases", "--cumatrix-backend", "nvrct"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=800)
    assert done.returncode != 0
    assert "did you mean nvrtc" in (done.stdout + done.stderr).replace('"', "")
    assert "Traceback" not in done.stdout + done.stderr


def test_a_project_without_cases_loads_nothing_of_the_engine(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n\n\ndef test_it():\n    assert not [name for name in sys.modules if name.startswith('harness.engine')]\n"
        "    assert 'harness.pytest_plugin' in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
