"""Two commands that write to one file: the second fails and names the first."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from record_builders import cell, plan, record

from harness.analysis.history import HistoryError, append
from harness.records import RecordError, RecordWriter, merge, write_merged
from harness.report.build import ReportError, build_report

HOLD = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), fcntl.LOCK_SH); print(flush=True); sys.stdin.read()"


@pytest.fixture
def hold() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Start another process that locks a file or folder for its lifetime."""
    started = []

    def start(path: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_run_and_merge(tmp_path: Path, hold: Callable[[Path], subprocess.Popen[str]]) -> None:
    path = tmp_path / "r.jsonl"
    path.touch()
    other = hold(path)
    words = rf"r.jsonl: another run is writing to it \(process {other.pid}, since \d{{4}}-.*: python.*\): wait"
    with pytest.raises(RecordError, match=words), RecordWriter(path, plan(cell())):
        pass
    with pytest.raises(RecordError, match=words):
        write_merged(merge([record()], [plan(cell())]), path)
    other.kill()
    other.wait()
    write_merged(merge([record()], [plan(cell())]), path)
    with RecordWriter(path, plan(cell(), run="run-2")):
        pass


def test_history_add(tmp_path: Path, hold: Callable[[Path], subprocess.Popen[str]]) -> None:
    other = hold(tmp_path)
    with pytest.raises(HistoryError, match=rf"another history add is writing to it \(process {other.pid}, since"):
        append(tmp_path, [record()], [plan(cell())])
    assert list(tmp_path.iterdir()) == []
    other.kill()
    other.wait()
    assert append(tmp_path, [record()], [plan(cell())]) == ["run-1"]


def test_report(tmp_path: Path, hold: Callable[[Path], subprocess.Popen[str]]) -> None:
    path = tmp_path / "r.jsonl"
    write_merged(merge([record()], [plan(cell())]), path)
    beside = tmp_path / ".site.new"
    (beside / "new" / "assets").mkdir(parents=True)  # from a killed report
    (beside / "old").mkdir()
    (beside / "old" / "index.html").write_text("the last one")
    other = hold(beside)
    with pytest.raises(ReportError, match=rf"site: another report is written there \(process {other.pid}, since"):
        build_report([path], tmp_path / "site", None)
    assert not (tmp_path / "site").exists()
    other.kill()
    other.wait()
    assert build_report([path], tmp_path / "site", None).cells == 1
    assert not beside.exists()
    assert "the last one" not in (tmp_path / "site" / "index.html").read_text("utf-8")
