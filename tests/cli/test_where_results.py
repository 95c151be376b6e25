"""``--where`` in commands that read results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command
from record_builders import cell, plan, record, rejected

from harness.records import plan_path

from .test_errors import sentence

pytestmark = pytest.mark.called

CELLS = {target: cell("demo/sum", {"size": 4}, target=target) for target in ("sm_75", "sm_80", "sm_90", "sm_100")}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return two cells that were built, one that was rejected, and one that never arrived."""
    path = tmp_path / "r.jsonl"
    outcomes = {"sm_75": rejected(), "sm_80": None, "sm_90": None}
    path.write_text("".join(json.dumps(record(CELLS[target], outcome)) + "\n" for target, outcome in outcomes.items()))
    plan_path(path).write_text(json.dumps(plan(*CELLS.values())))
    return path


def ids(path: Path) -> list[str]:
    return [json.loads(line)["cell"] for line in path.read_text().splitlines()]


def test_merge(cumatrix: Command, results: Path) -> None:
    done = cumatrix("merge", "r.jsonl", "--where", 'size == 4 and cc >= "8.0" and cc < "10.0"', "--out", "m.jsonl")
    assert (done.returncode, done.stderr) == (0, "2 cells, 0 never arrived, 0 disagreed\n")
    assert ids(results.with_name("m.jsonl")) == [CELLS["sm_80"].id, CELLS["sm_90"].id]
    done = cumatrix("merge", "m.jsonl", "--out", "again.jsonl")
    assert (done.returncode, done.stderr) == (0, "2 cells, 0 never arrived, 0 disagreed\n")
    done = cumatrix("merge", "r.jsonl", "--where", 'cc == "10.0"', "--out", "late.jsonl")
    assert (done.returncode, f"never arrived: {CELLS['sm_100'].id}" in done.stderr) == (1, True)
    sentence(cumatrix("merge", "r.jsonl", "--where", "virtual", "--out", "n.jsonl"), 3, "no cell is left of 4")
    sentence(
        cumatrix("merge", "r.jsonl", "--where", "sise == 4", "--out", "n.jsonl"), 2, "character 1", "did you mean size"
    )
    assert not results.with_name("n.jsonl").exists()


@pytest.mark.slow
def test_report(cumatrix: Command, results: Path) -> None:
    done = cumatrix("report", "r.jsonl", "--where", 'status == "rejected"', "--out", "html")
    assert done.returncode == 0, done.stderr
    assert "1 cell: 1 fail; 1 not as expected" in done.stderr
    assert "never arrived" not in done.stderr
    sentence(cumatrix("report", "r.jsonl", "--where", 'status == "rejectd"', "--out", "no"), 2, "did you mean rejected")
    sentence(
        cumatrix("report", "r.jsonl", "--where", 'status == "crashed"', "--out", "no"),
        3,
        "no cell is left of 4",
    )
    assert not results.with_name("no").exists()


def test_explain(cumatrix: Command, results: Path) -> None:
    chosen = ["--results", "r.jsonl", "--where", 'verdict == "fail"']
    for what in ([], ["demo/sum"], [CELLS["sm_75"].id]):
        done = cumatrix("explain", *what, *chosen, "--json")
        assert json.loads(done.stdout)["cell"] == CELLS["sm_75"].id
    sentence(
        cumatrix("explain", "--results", "r.jsonl", "--where", 'topic == "demo"'), 2, "there are 3 such cells, say more"
    )
    sentence(cumatrix("explain", "r.jsonl", "--where", 'topic == "demo"'), 2, "--where chooses a cell among records")
    sentence(cumatrix("explain"), 2, "name a cell or a log")


def test_history(cumatrix: Command, results: Path) -> None:
    assert cumatrix("history", "add", "r.jsonl").returncode == 0
    (row,) = json.loads(cumatrix("history", "list", "--where", 'status == "built"', "--json").stdout)
    assert (row["cells"], row["built"]) == (2, 2)
    broken = json.loads(cumatrix("history", "broken", "--where", 'target == "sm_75"', "--json").stdout)["broken"]
    assert [item["cell"] for item in broken] == [CELLS["sm_75"].id]
    done = cumatrix("history", "cell", "demo/sum", "--where", 'cc == "9.0"', "--json")
    assert json.loads(done.stdout)["cell"] == CELLS["sm_90"].id


def test_diff(cumatrix: Command, results: Path) -> None:
    done = cumatrix("diff", "r.jsonl", "r.jsonl", "--where", 'target == "sm_80"')
    assert (done.returncode, done.stdout) == (0, "nothing changed; 1 cells are the same\n")
