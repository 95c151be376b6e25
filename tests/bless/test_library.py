"""Blessing every case of the library without its expectations, with outcomes of NVRTC and nvcc and of a recorded real device."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command
from in_process import call

from harness.bless.bless import rewrite
from harness.bless.evidence import evidence_of
from harness.cases.discovery import load_cases
from harness.model.judge import expectation_of
from harness.records import merge, read_records

ROOT = Path(__file__).parents[2] / "cases"
CASES = {case.name: case for case in load_cases(ROOT)}
RECORDED = ROOT.parent / "reports" / "h200-2026-11-21" / "records.tar.gz"
H200 = ("h200", "h200-numba", "h200-numba-cuda", "h200-virtual", "h200-virtual-numba", "h200-virtual-numba-cuda")
RUNS = (
    (
        "cooperative",
        "exceptions",
        "shared-memory",
        "wmma",
        "-b",
        "nvrtc",
        "-t",
        "12.4,13.0",
        "-a",
        "sm_60,sm_75,sm_80,sm_90a",
    ),
    ("shared-memory", "exceptions/throw", "-b", "nvcc", "-t", "13.0", "-a", "sm_80,sm_90a"),
)


def stripped(folder: Path) -> Path:
    """Copy the library of cases, without expectations."""
    root = folder / "cases"
    shutil.copytree(ROOT, root)
    for case in CASES.values():
        path = root / case.name / "case.toml"
        path.write_text(rewrite(path.read_text(), [], len(case.expectations), case.name))
    assert not any(case.expectations for case in load_cases(root))
    return root


def check(results: list[Path], folder: Path) -> set[str]:
    """Bless all cases and compare them with the results: every cell is as expected, with no more rules than the manual ones.

    Return the cases with any cell.
    """
    root = stripped(folder)
    done = call("bless", *results, "--cases", root, "--yes", seconds=800)
    assert done.code == 0, done.err
    read = read_records(results)
    merged = merge(read.records, read.plans)
    found = set()
    for case in load_cases(root):
        evidence = evidence_of(case, merged)
        wrong = [each.cell.id for each in evidence.observations if not each.as_expected(expectation_of(each.cell))]
        assert wrong == []
        assert len(case.expectations) <= len(CASES[case.name].expectations), case.name
        assert all(rule.reason.startswith("observed") for rule in case.expectations)
        if evidence.observations:
            found.add(case.name)
    return found


def answered(results: list[Path]) -> set[str]:
    """Return the cases with an answered cell."""
    return {
        record["case"]
        for record in read_records(results).records
        if record["status"] in ("built", "rejected", "crashed", "timed_out")
    }


def test_recorded_by_all_backends_on_a_device_and_without(tmp_path: Path) -> None:
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    results = [tmp_path / f"{name}.jsonl" for name in H200]
    found = check(results, tmp_path)
    assert found == answered(results)
    assert len(found) >= 15


@pytest.mark.slow
@pytest.mark.compilers
def test_compiled(cumatrix: Command, tmp_path: Path, toolkit: Callable[[str], object]) -> None:
    """Results of NVRTC of two releases and one nvcc, for a few targets."""
    for release in ("12.4", "13.0"):
        toolkit(release)
    results = tmp_path / "r.jsonl"
    for argv in RUNS:
        done = cumatrix("run", *argv, "-j", "2", "--cases", ROOT, "--out", results)
        assert done.returncode == 0, done.stderr[-3000:]
    found = check([results], tmp_path)
    assert found == answered([results])
    assert len(found) >= 15
