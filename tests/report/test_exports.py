"""The matrix as data."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from record_builders import BUILT, built, cell, plan, record, rejected

from harness.analysis import cells_frame as frame
from harness.answers.store import known_of
from harness.model import Diagnostic, Outcome, Status
from harness.model.case import RequiredKernels
from harness.records import Merged, Record, merge
from harness.records.parquet import read_parquet, results_parquet
from harness.records.plan import Plan
from harness.report.case import page_names
from harness.report.exports import escape, matrix_csv, matrix_json, matrix_markdown
from harness.report.junit import junit_xml


def parquet_and_back(merged: Merged) -> tuple[list[Record], list[Plan]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.parquet"
        path.write_bytes(results_parquet(merged.records, merged.plans))
        return read_parquet(path)


@pytest.fixture
def merged() -> Merged:
    planned = [cell(target=t) for t in ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100")]
    outcomes = [rejected('=cmd|"x" @team #1 `a` <b>'), built("sm_80"), built("sm_86"), built("sm_90")]
    records = [record(of, outcome) for of, outcome in zip(planned, outcomes, strict=False)]
    crash = record(cell("z/crash", {"n": 1}), Outcome(status=Status.CRASHED, signal=11), run="other")
    return merge([*records, crash], [plan(*planned)])


def test_json_has_axes_provenance_and_cells(merged: Merged) -> None:
    table = frame(merged)
    value = json.loads(matrix_json(merged, table, page_names(table["case"]), ["careful"]))
    assert value["schema"] == 1
    assert value["axes"]["targets"] == ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100"]
    assert value["axes"]["toolchains"] == [{"backend": "cupy-nvrtc", "library": "13.6.0", "toolkit": "12.4", "host_compiler": ""}]  # fmt: skip
    assert value["axes"]["cases"] == dict.fromkeys(("wmma/fragments", "z/crash"), "Fragments of every shape")
    assert value["totals"] == {"built": 3, "fail": 1, "crashed": 1, "missing": 1}
    assert value["marks"]["built"] == {
        "letter": "✓",
        "word": "built",
        "meaning": "built, as expected",
        "as_expected": True,
    }
    assert [run["name"] for run in value["runs"]] == ["run-1", "other"]
    assert value["runs"][0]["observed"] == {"nvrtc": ["12.4.127"], "python": ["3.11.9"]}
    assert (value["runs"][0]["planned"], value["runs"][0]["arrived"]) == (5, 4)
    assert value["missing"] == ["wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_100"]
    assert value["warnings"] == ["careful"]
    by_target = {(item["case"], item["target"]): item for item in value["cells"]}
    assert len(value["cells"]) == 6
    assert by_target["wmma/fragments", "sm_80"]["seconds"] == 0.12
    assert by_target["wmma/fragments", "sm_80"]["signal"] is None
    assert by_target["wmma/fragments", "sm_100"]["mark"] == "missing"
    assert by_target["wmma/fragments", "sm_100"]["seconds"] is None
    assert by_target["z/crash", "sm_80"]["signal"] == 11
    assert by_target["z/crash", "sm_80"]["page"] == "cases/z-crash.html"


def test_csv_has_one_row_a_cell_and_no_formulas(merged: Merged) -> None:
    rows = list(csv.DictReader(io.StringIO(matrix_csv(frame(merged)).decode())))
    assert len(rows) == 6
    assert [row["mark"] for row in rows] == ["fail", "built", "built", "built", "missing", "crashed"]
    assert rows[0]["message"] == '\'=cmd|"x" @team #1 `a` <b>'
    assert (rows[1]["status"], rows[1]["seconds"], rows[1]["cached"]) == ("built", "0.12", "False")
    assert (rows[5]["signal"], rows[4]["seconds"], rows[4]["status"]) == ("11", "", "")
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "-", "@"))]


def test_markdown_folds_targets_into_ranges(merged: Merged) -> None:
    text = matrix_markdown(frame(merged))
    assert "6 cells, **3 not as expected**: ✓ 3 built, F 1 not as expected, C 1 crashed, ? 1 missing." in text
    assert "| wmma/fragments | ✓ sm_80–sm_90<br>F sm_75<br>? sm_100 |" in text
    assert "| z/crash<br>n&#61;1 | C sm_80 |" in text
    assert "| Case | cupy&#45;nvrtc 13.6.0<br>CUDA 12.4 |" in text
    listed = [line for line in text.splitlines() if line.startswith("- ")]
    said = '&#61;cmd&#124;"x" &#64;team &#35;1 &#96;a&#96; &#60;b&#62;'
    assert listed == [
        f"- F not as expected: **wmma/fragments** <code>{said}</code> (cupy&#45;nvrtc 13.6.0, CUDA 12.4: sm_75)",
        "- C crashed: **z/crash&#91;n&#61;1&#93;** (cupy&#45;nvrtc 13.6.0, CUDA 12.4: sm_80)",
        "- ? missing: **wmma/fragments** (cupy&#45;nvrtc 13.6.0, CUDA 12.4: sm_100)",
    ]
    for row in [line for line in text.splitlines() if line.startswith("|")]:
        assert row.count("|") == 3


def test_markdown_escapes() -> None:
    assert escape("a|b\n*c* <d> [e](f) @g #1 \\") == (
        "a&#124;b &#42;c&#42; &#60;d&#62; &#91;e&#93;&#40;f&#41; &#64;g &#35;1 &#92;"
    )


def test_markdown_keeps_within_its_size(merged: Merged) -> None:
    table = frame(merged)
    whole = matrix_markdown(table)
    text = matrix_markdown(table, max_bytes=len(whole.encode()) - 1)
    assert "## z" in whole
    assert "## z" not in text
    assert "| wmma/fragments |" in text
    assert text.endswith("Too long to be shown here: z. See matrix.html or matrix.csv.\n")


def test_markdown_tells_long_names_once() -> None:
    said = [rejected(f"Function '{name * 60}' is too large") for name in "ab"]
    records = [record(cell(target=target), outcome) for target, outcome in zip(("sm_80", "sm_90"), said, strict=True)]
    listed = [line for line in matrix_markdown(frame(merge(records, []))).splitlines() if line.startswith("- ")]
    assert len(listed) == 1
    assert "<code>Function '…' is too large</code>" in listed[0]


def test_markdown_lists_only_so_many(merged: Merged) -> None:
    table = frame(merge([record(cell(variant={"n": n}), rejected()) for n in range(60)], []))
    assert "- and 10 more: see matrix.csv" in matrix_markdown(table)


def test_parquet_is_flat_and_typed(merged: Merged) -> None:
    table = pd.read_parquet(io.BytesIO(results_parquet(merged.records)))
    assert len(table) == 5
    row = table.set_index(["case", "target"]).loc[("wmma/fragments", "sm_80")]
    assert (row["status"], row["mark"], row["artifact_bytes"], row["max_num_regs"]) == (
        "built",
        "built",
        4312,
        40,
    )
    assert json.loads(row["toolchain_json"])["observed"]["nvrtc"] == "12.4.127"
    assert json.loads(row["artifact_json"])["kernels"][0]["name"] == "kernel"
    crash = table.set_index("case").loc["z/crash"]
    assert crash["signal"] == 11
    assert pd.isna(crash["artifact_bytes"])
    assert crash["artifact_json"] == "null"
    assert str(table["seconds"].dtype) == "float64"
    assert str(table["cached"].dtype) == "bool"


def test_parquet_of_nothing_has_the_same_columns(merged: Merged) -> None:
    full = pd.read_parquet(io.BytesIO(results_parquet(merged.records)))
    empty = pd.read_parquet(io.BytesIO(results_parquet([])))
    assert list(empty.columns) == list(full.columns)
    assert empty.empty


def test_a_warning_does_not_hide_that_kernels_are_missing() -> None:
    warning = Diagnostic(severity="warning", message="variable was declared but never referenced")
    expected = replace(BUILT, kernels=RequiredKernels(names=("scale",)))
    made = record(outcome=built(diagnostics=(warning,)), expected=expected)
    why = "kernel scale is missing (kernels there: kernel)"
    assert f': {why}"' in junit_xml(merge([made], [])).decode()
    assert [row.message for row in known_of([made]).rows] == [why]


def test_of_a_crash_the_compiler_has_the_last_word() -> None:
    said = Diagnostic(severity="fatal", message="LLVM ERROR: out of memory")
    crash = Outcome(status=Status.CRASHED, signal=6, reason="was ended by signal 6 (Aborted)", diagnostics=(said,))
    assert ': LLVM ERROR: out of memory"' in junit_xml(merge([record(outcome=crash)], [])).decode()


def test_what_other_runs_told_stands_in_every_export() -> None:
    gone = Outcome(status=Status.UNAVAILABLE, reason="not there")
    runs = [record(run="a"), record(outcome=rejected("no | such type"), run="b"), record(outcome=gone, run="c")]
    merged = merge(runs, [plan(cell(), run=run, day=day) for day, run in enumerate("abc", 1)])
    table = frame(merged)
    value = json.loads(matrix_json(merged, table, page_names(table["case"]), []))
    told = "built in run a; unavailable in run c: not there"
    assert [(item["status"], item["others"]) for item in value["cells"]] == [("rejected", told)]
    assert [item["dropped"] for item in value["conflicts"]] == [[{"run": "a", "status": "built"}]]
    assert [item["dropped"] for item in value["unanswered"]] == [[{"run": "c", "status": "unavailable"}]]
    (row,) = csv.DictReader(io.StringIO(matrix_csv(table).decode("utf-8-sig")))
    assert (row["status"], row["others"]) == ("rejected", told)
    assert "## Other runs say otherwise" in matrix_markdown(table)
    assert escape(told) in matrix_markdown(table)
    assert f'name="other runs" value="{told}"' in junit_xml(merged).decode()
    # Merging keeps it, also in Parquet.
    records, _ = parquet_and_back(merged)
    assert merge(records, merged.plans).records == merged.records


def test_cells_on_which_all_runs_agree_have_nothing_to_tell() -> None:
    merged = merge([record(run="a"), record(run="b", cached=True)], [])
    assert list(frame(merged)["others"]) == [""]
    assert "Other runs" not in matrix_markdown(frame(merged))
    assert "properties" not in junit_xml(merged).decode()


@pytest.mark.parametrize("silent", ["unavailable", "missing"])
def test_a_device_that_was_not_there_does_not_hide_what_was_compiled(silent: str) -> None:
    one = cell(backend="nvrtc", library="", target="sm_90")
    other = replace(one, toolchain=replace(one.toolchain, device="NVIDIA H200"))
    gone = Outcome(status=Status.UNAVAILABLE, reason="no device")
    records = [record(one), *([record(other, gone)] if silent == "unavailable" else [])]
    table = frame(merge(records, [plan(one, other)]))
    assert list(table["status"]) == ["built"]
