"""A report is complete, or the earlier report stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from record_builders import cell, plan, record, rejected

from harness.records import RecordError, RecordWriter
from harness.report import build
from harness.report.build import NothingToReport, ReportError, build_report

FILES = [
    *(
        "api",
        "assets",
        "badges",
        "card.png",
        "cases",
        "coverage.html",
        "data",
        "disagreements.html",
        "features",
        "index.html",
        "junit.xml",
    ),
    *("matrix.csv", "matrix.html", "matrix.json", "matrix.md", "pictures.html", "results.parquet", "support.html"),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    path = tmp_path / "results" / "r.jsonl"
    with RecordWriter(path, plan(cell(), cell(target="sm_90"), cell(target="sm_100"))) as writer:
        writer.append(record())
        writer.append(record(cell(target="sm_90"), rejected()))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_writes_everything_and_sums_up(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "html"
    summary = build_report([results.parent], out)
    assert names(out) == FILES
    assert (summary.out, summary.cells, summary.not_as_expected, summary.missing) == (out, 3, 2, 1)
    assert summary.totals == {"built": 1, "fail": 1, "missing": 1}
    assert str(summary) == "3 cells: 1 built, 1 not as expected, 1 missing"
    assert names(out.parent) == ["html"]
    assert out.stat().st_mode & 0o777 == 0o777 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_same_records_give_the_same_bytes(results: Path, tmp_path: Path) -> None:
    build_report([results], tmp_path / "a")
    build_report([results.parent], tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_replaces_an_earlier_report_completely(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "html"
    (out / "cases").mkdir(parents=True)
    (out / "cases" / "gone.html").write_text("old")
    build_report([results], out)
    assert names(out / "cases") == ["wmma-fragments.html"]


@pytest.mark.parametrize("broken", ["results_parquet", "case_files_of"])
def test_failure_leaves_the_earlier_report(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    out = tmp_path / "html"
    build_report([results], out)
    before = contents(out)

    def fail(*args: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(build, broken, fail)
    with pytest.raises(OSError, match="no space"):
        build_report([results], out)
    assert contents(out) == before
    assert names(tmp_path) == ["html", "results"]


def test_failed_swap_puts_the_earlier_report_back(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "html"
    build_report([results], out)
    before = contents(out)
    real = Path.rename

    def rename(source: Path, target: Path) -> Path:
        if source.name == "new":
            raise OSError("cannot rename")
        return real(source, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="cannot rename"):
        build_report([results], out)
    assert contents(out) == before


def test_refuses_to_replace_what_is_no_report(results: Path, tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"r\.jsonl, which is not part of a report") as caught:
        build_report([results], results.parent)
    assert caught.value.exit_code == 2
    assert results.exists()
    with pytest.raises(ReportError, match="is a file"):
        build_report([results], results)


def test_nothing_to_report(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToReport) as caught:
        build_report([tmp_path / "empty"], tmp_path / "html")
    assert caught.value.exit_code == 3
    assert not (tmp_path / "html").exists()


def test_damaged_records_make_no_report(results: Path, tmp_path: Path) -> None:
    results.write_bytes(results.read_bytes() + b"{}\n")
    with pytest.raises(RecordError, match="line 3: schema: missing"):
        build_report([results], tmp_path / "html")
    assert not (tmp_path / "html").exists()


def test_run_that_was_killed_is_reported_with_a_warning(results: Path, tmp_path: Path) -> None:
    results.write_bytes(results.read_bytes()[:-20])
    summary = build_report([results], tmp_path / "html")
    assert (summary.totals, summary.missing) == ({"built": 1, "missing": 2}, 2)
    assert "line 2: cut off" in summary.warnings[0]
    assert "line 2: cut off" in (tmp_path / "html" / "matrix.html").read_text()


def test_verdicts_can_be_given_anew(results: Path, tmp_path: Path) -> None:
    summary = build_report([results], tmp_path / "html", rejudge=lambda item: {**item, "verdict": "xfail"})
    assert summary.totals == {"xfail": 2, "missing": 1}
