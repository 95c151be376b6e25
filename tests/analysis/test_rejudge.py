"""Verdicts follow from the current cases; facts stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from record_builders import built, cell, changed, plan, record, rejected

from harness.analysis.cell_sets import merge_and_judge, rejudger
from harness.model import Status
from harness.records import RecordError, Results

CASE = """
title = "New title"
source = { cuda = "kernel.cu" }

[[expect]]
when = 'cc < "9.0"'
status = "rejected"
stage = "compile"
diagnostic = "incomplete"
reason = "so"
"""


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    folder = tmp_path / "cases" / "wmma" / "fragments"
    folder.mkdir(parents=True)
    (folder / "case.toml").write_text(CASE)
    (folder / "kernel.cu").write_text("__global__ void k() {}")
    return tmp_path / "cases"


def test_a_record_gets_the_verdict_title_and_expectation_of_now(cases: Path) -> None:
    rejudge = rejudger(cases)
    old = record(cell(target="sm_80"), rejected())
    new = rejudge(old)
    assert (old["verdict"], new["verdict"], new["title"]) == ("fail", "pass", "New title")
    assert new["expected"] == {
        "status": "rejected", "stage": "compile", "diagnostic": "incomplete", "xfail": False, "reason": "so", "link": ""
    }  # fmt: skip
    assert {key for key, value in old.items() if value != dict(new)[key]} == {"verdict", "title", "expected"}
    assert rejudge(record(cell(target="sm_80")))["verdict"] == "fail"
    assert rejudge(record(cell(target="sm_90")))["verdict"] == "pass"
    assert rejudge(record(cell(target="sm_80"), rejected("something else")))["verdict"] == "fail"


def test_a_record_whose_case_or_variant_is_gone_keeps_its_verdict(cases: Path, tmp_path: Path) -> None:
    rejudge = rejudger(cases)
    for gone in (record(cell("wmma/gone"), rejected()), record(cell(variant={"shape": "m8"}), rejected())):
        assert rejudge(gone) is gone
    other = record(outcome=rejected())
    assert rejudger(tmp_path / "none")(other) is other


def test_what_counts_after_merging_is_judged(cases: Path) -> None:
    cells = [cell(target=target) for target in ("sm_80", "sm_90")]
    records = (record(cells[0], run="a"), record(cells[0], rejected(), run="b"))
    results = Results(records=records, plans=(plan(*cells, run="a"), plan(*cells, run="b", day=2)), warnings=())
    merged = merge_and_judge(results, rejudger(cases))
    assert [item["verdict"] for item in merged.records] == ["pass"]
    assert [item["verdict"] for item in merge_and_judge(results, None).records] == ["fail"]
    assert [item["cell"] for item in merged.missing] == [cells[1].id]


def test_keys_of_a_later_version_are_no_obstacle(cases: Path) -> None:
    later = record(cell(target="sm_80"), rejected())
    cast("dict[str, Any]", later["diagnostics"][0])["column"] = 3
    assert rejudger(cases)(later)["verdict"] == "pass"


@pytest.mark.parametrize(
    "change",
    [
        {"requested": {}},
        {"requested": {"packages": {"numpy": "?"}, "library": "", "toolkit": "12.4", "headers": "12.4"}},
    ],
)
def test_a_record_that_does_not_tell_what_was_asked_for_is_named(cases: Path, change: dict[str, Any]) -> None:
    good = record(outcome=built())
    bad = changed(good, toolchain={**good["toolchain"], **change})
    with pytest.raises(RecordError, match=r"^wmma/fragments cupy-nvrtc@13\.6\.0 cuda12\.4 sm_80: toolchain or device"):
        rejudger(cases)(bad)


def test_kernels_that_the_case_requires_now_are_missed(cases: Path) -> None:
    file = cases / "wmma" / "fragments" / "case.toml"
    file.write_text('kernels = ["kernel", "other"]\n' + CASE)
    old = record(cell(target="sm_90"))
    new = rejudger(cases)(old)
    assert (old["verdict"], new["verdict"]) == ("pass", "fail")
    assert new["reason"] == "kernel other is missing (kernels there: kernel)"
    assert new["expected"]["kernels"] == ["kernel", "other"]
    file.write_text("kernels = 1\n" + CASE)
    again = rejudger(cases)(new)
    assert (again["verdict"], again["reason"], again["expected"]["kernel_count"]) == ("pass", "", 1)
    unavailable = record(
        cell(target="sm_90"), built(status=Status.UNAVAILABLE, artifact=None, reason="it is not there")
    )
    assert rejudger(cases)(unavailable)["reason"] == "it is not there"
