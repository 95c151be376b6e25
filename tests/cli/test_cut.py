"""An incomplete record file of an interrupted run: each command that reads it reports that, and uses the rest."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Command
from record_builders import cell, plan, record, rejected

from harness.records import RecordWriter

pytestmark = pytest.mark.called

SAID = "cumatrix: cut.jsonl: line 2: cut off: the line is incomplete, probably because the run was interrupted or the disk was full; "


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Write a record and the beginning of another, and a second file in which both are complete."""
    cells = [cell(target=target) for target in ("sm_80", "sm_90")]
    for name in ("cut.jsonl", "whole.jsonl"):
        with RecordWriter(tmp_path / name, plan(*cells)) as writer:
            writer.append(record(cells[0], rejected()))
            writer.append(record(cells[1]))
    path = tmp_path / "cut.jsonl"
    path.write_bytes(path.read_bytes()[:-200])
    return path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("report cut.jsonl", 0),
        ("merge cut.jsonl --out all.jsonl", 1),
        ("diff whole.jsonl cut.jsonl", 0),
        ("explain sm_80 --results cut.jsonl", 0),
        ("history add cut.jsonl", 0),
    ],
)
def test_each_command_says_what_was_cut_and_uses_the_rest(
    cumatrix: Command, cut: Path, command: str, code: int
) -> None:
    done = cumatrix(*command.split())
    assert "Traceback" not in done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "incomplete" in line]
    assert said == (
        f"{SAID}the record of wmma/fragments cupy-nvrtc@13.6.0 cuda12.4 sm_90 is left out, all before it are used; "
        "run the same command again to complete the file"
    )
    assert done.returncode == code


def test_a_report_of_nothing_else_says_why_there_is_nothing(cumatrix: Command, cut: Path) -> None:
    cut.with_name("cut.plan.json").unlink()
    cut.write_bytes(cut.read_bytes()[:100])
    done = cumatrix("report", "cut.jsonl")
    assert done.returncode == 3
    (said,) = done.stderr.splitlines()
    assert "no records in cut.jsonl (cut.jsonl: line 1: cut off: the line is incomplete" in said
