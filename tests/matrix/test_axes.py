"""A new axis needs two changes: an entry in `harness/matrix/axes.py`, and a key in `harness/records/record.py`."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from page_scripts import handed_over

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "harness"

ENTRY = """    Axis(
        key="cccl",
        title="CCCL",
        side="column",
        value=lambda cell: str(cell.variant.definitions.get("cccl", "")),
        about="release of CCCL",
        kind="version",
        filter=True,
        prefix="CCCL ",
        optional=True,
    ),
"""
KEY = """    cccl: NotRequired[Annotated[str, "release of CCCL; empty where the toolkit's own is taken"]]
"""

# Five programs of one row: two CCCLs, a toolchain's own CCCL, an old record without the key, a planned one.
WRITE = """
import json, sys
from dataclasses import replace
from pathlib import Path
from record_builders import cell, plan, record, rejected
from harness.model import Variant

def of(cccl, target="sm_80"):
    made = cell("wmma/fragments", backend="nvrtc", library="", toolkit="13.0", target=target)
    made = replace(made, variant=Variant(labels={}, definitions={"cccl": cccl} if cccl else {}))
    return made

folder = Path(sys.argv[1])
new, old, own = of("3.0.0"), of("2.8.0"), of("")
records = [record(new), record(old, rejected()), record(own), record(of("", "sm_90"))]
for one, name in zip(records, ("3.0.0", "2.8.0", "own", "early"), strict=True):
    one["cell"] = f"{one['cell']} {name}"
assert [one.pop("cccl") for one in records[3:]] == [""]
(folder / "r.jsonl").write_text("".join(json.dumps(one) + "\\n" for one in records))
planned = plan(of("3.0.0", "sm_100"))
assert planned["cells"][0]["cccl"] == "3.0.0"
(folder / "r.plan.json").write_text(json.dumps(planned))
"""


def run(folder: Path, *argv: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{folder / 'copy'}{os.pathsep}{TESTS}"}
    done = subprocess.run([sys.executable, *argv], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def cumatrix(folder: Path, *argv: str) -> str:
    return run(folder, "-c", "import sys; from harness.cli import main; sys.exit(main())", *argv)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a copy of the package in which those two files define the axis."""
    folder = tmp_path_factory.mktemp("axis")
    shutil.copytree(PACKAGE, folder / "copy" / "harness", ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, more in (
        ("matrix/axes.py", '    Axis(\n        key="target",\n', ENTRY),
        ("records/record.py", "    environment: Annotated[", KEY),
    ):
        file = folder / "copy" / "harness" / name
        text = file.read_text()
        assert text.count(before) == 1
        file.write_text(text.replace(before, more + before))
    run(folder, "-c", WRITE, str(folder))
    cumatrix(folder, "report", "r.jsonl", "--out", "report")
    return folder / "report"


def cells(report: Path) -> dict[str, tuple[str, str]]:
    with open(report / "matrix.csv", newline="") as file:
        return {row["cell"].split()[-1]: (row["cccl"], row["mark"]) for row in csv.DictReader(file)}


def data(report: Path) -> Any:
    name, value = handed_over((report / "data" / "matrix.js").read_text())
    assert name == "matrix"
    return value


def test_csv_and_json_have_a_column_of_it(report: Path) -> None:
    assert cells(report) == {
        "3.0.0": ("3.0.0", "built"),
        "2.8.0": ("2.8.0", "fail"),
        "own": ("", "built"),
        "early": ("", "built"),
        "sm_100": ("3.0.0", "missing"),
    }
    matrix = json.loads((report / "matrix.json").read_text())
    assert [item["cccl"] for item in matrix["axes"]["toolchains"]] == ["", "2.8.0", "3.0.0"]
    assert {cell["cell"].split()[-1]: cell["cccl"] for cell in matrix["cells"]}["2.8.0"] == "2.8.0"


def test_the_pages_script_is_handed_the_axis_with_its_filter(report: Path) -> None:
    found = data(report)
    assert [axis["key"] for axis in found["axes"]][-2:] == ["cccl", "target"]
    assert next(axis for axis in found["axes"] if axis["key"] == "cccl") == {
        "key": "cccl",
        "title": "CCCL",
        "side": "column",
        "about": "release of CCCL",
        "kind": "version",
        "filter": True,
        "prefix": "CCCL ",
        "optional": True,
    }
    assert found["names"]["cccl"] == ["", "2.8.0", "3.0.0"]
    assert len(found["columns"]["cccl"]) == len(found["columns"]["target"]) == 5


def test_tables_without_a_script_have_columns_of_it(report: Path) -> None:
    header = next(line for line in (report / "matrix.md").read_text().splitlines() if line.startswith("| Case"))
    assert re.sub(r"&#\d+;", "", header).count("CCCL") == 2
    (page,) = (report / "cases").glob("*.html")
    assert all(f"CUDA 13.0, CCCL {release}" in page.read_text() for release in ("2.8.0", "3.0.0"))
    assert "CUDA 13.0, CCCL 2.8.0" in (report / "matrix.html").read_text()
    assert "CUDA 13.0, CCCL 2.8.0" in (report / "junit.xml").read_text()


def test_analyses_keep_its_values_apart(report: Path) -> None:
    support = (report / "support.html").read_text()
    assert "nvrtc</b></a>, CCCL 3.0.0: builds" in support
    assert "nvrtc</b></a>, CCCL 2.8.0: rejected at compile" in support


def test_history_and_diff_know_it(report: Path) -> None:
    folder = report.parent
    cumatrix(folder, "history", "add", "r.jsonl", "--history", "history")
    (table,) = (folder / "history").glob("run=*/cells.parquet")
    assert set(pq.read_table(table)["cccl"].to_pylist()) == {"", "2.8.0", "3.0.0"}
    # In a comparison across an axis, its newest release counts: a new value compared with itself has not changed.
    found = cumatrix(folder, "diff", "r.jsonl", "r.jsonl", "--across", "cccl", "--json")
    assert json.loads(found)["changes"] == []
