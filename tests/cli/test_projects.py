"""Two projects with a case of one name: two rows in every merged result."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command import Command

pytestmark = pytest.mark.called

CASE = 'title = "A softmax"\nsource = {{ cuda = "kernel.cu" }}\n{}'
REJECTED = '[[expect]]\nstatus = "rejected"\nstage = "compile"\ndiagnostic = "nothing"\nreason = "so"\n'
AXES = ("-b", "nvrtc", "-t", "12.9", "-a", "sm_80")
BOTH = {"demo/same@left nvrtc cuda12.9 sm_80": "built", "demo/same@right nvrtc cuda12.9 sm_80": "rejected"}


@pytest.fixture
def projects(cumatrix: Command) -> tuple[Command, Command]:
    """Two projects: one with a case that builds; one with a rejected case of the same name, and a program in its configuration."""
    found = []
    for name, rules, line in (("left", "", "*x = 1;"), ("other", REJECTED, "*x = nothing;")):
        case = cumatrix.folder / name / "cases" / "demo" / "same"
        case.mkdir(parents=True)
        (case / "case.toml").write_text(CASE.format(rules))
        (case / "kernel.cu").write_text(f'extern "C" __global__ void k(float *x) {{ {line} }}\n')
        found.append(Command(cumatrix.folder / name))
    (cumatrix.folder / "left" / "cumatrix.toml").write_text('project = "left"\n')
    (cumatrix.folder / "other" / "cumatrix.toml").write_text('project = "right"\nsources = ["*.cu"]\n')
    (cumatrix.folder / "other" / "more.cu").write_text("__global__ void more() {}\n")
    return found[0], found[1]


def cells(path: Path) -> dict[str, str]:
    with open(path, newline="") as file:
        return {row["cell"]: row["status"] for row in csv.DictReader(file)}


@pytest.mark.slow
@pytest.mark.compilers
def test_from_run_to_answers(cumatrix: Command, projects: tuple[Command, Command]) -> None:
    left, right = projects
    (one,) = left.records("run", *AXES, "--out", "r.jsonl")
    two, program = right.records("run", *AXES, "--out", "r.jsonl")
    assert (one["case"], one["project"], two["case"], two["project"]) == ("demo/same", "left", "demo/same", "right")
    assert (program["cell"], program["project"]) == ("more.cu nvrtc cuda12.9 sm_80", "right")
    assert one["cell"] == two["cell"] == "demo/same nvrtc cuda12.9 sm_80"
    assert one["fingerprint"] != two["fingerprint"]

    done = cumatrix("merge", "left/r.jsonl", "other/r.jsonl", "--out", "both.jsonl")
    assert (done.returncode, done.stderr) == (0, "3 cells, 0 never arrived, 0 disagreed\n")
    done = cumatrix("merge", "both.jsonl", "left/r.jsonl", "--where", 'case == "demo/same"', "--out", "again.jsonl")
    assert done.stderr == "2 cells, 0 never arrived, 0 disagreed\n"
    done = cumatrix("merge", "both.jsonl", "--where", 'project == "left"', "--out", "left.jsonl")
    assert done.stderr == "1 cells, 0 never arrived, 0 disagreed\n"

    # The verdict is that of the own case: a case of the same name in another project does not judge it.
    for folder in (left, right):
        out = folder.folder / "html"
        done = folder("report", cumatrix.folder / "both.jsonl", "--out", out)
        assert done.returncode == 0, done.stderr
        assert {cell: cells(out / "matrix.csv")[cell] for cell in BOTH} == BOTH
    assert "@left" in (out / "matrix.html").read_text() and "@right" in (out / "matrix.html").read_text()

    done = cumatrix("ask", "softmax sm_80", "--results", "both.jsonl", "--json")
    assert {each["case"] for each in json.loads(done.stdout)["findings"]} == {"demo/same@left", "demo/same@right"}
    said = cumatrix("ask", "softmax sm_80", "--results", "both.jsonl").stdout
    assert "A softmax (left)" in said and "A softmax (right)" in said

    # A user with a project and its fork compares their cells.
    done = cumatrix("diff", "left/r.jsonl", "other/r.jsonl", "--json")
    assert [each["kind"] for each in json.loads(done.stdout)["changes"]] == ["changed", "appeared"]
    for name, place in (("demo/same", "left.jsonl"), ("demo/same@left", "both.jsonl")):
        assert cumatrix("explain", name, "--results", place).returncode == 0
    assert "demo/same@right" in cumatrix("explain", "demo/same", "--results", "both.jsonl").stderr

    cumatrix("history", "add", "both.jsonl", "--history", "h")
    assert cumatrix("history", "cell", "demo/same@left", "--history", "h").returncode == 0

    # The case of another project gives no estimate.
    assert left("bless", "../other/r.jsonl", "--diff").returncode == 3
    assert left("bless", "../both.jsonl", "--diff").returncode == 0
    done = left("repro", "demo/same@right", "--results", "../both.jsonl", "--out", "x")
    assert (done.returncode, "is a case of right" in done.stderr) == (2, True)
    assert right("repro", "demo/same@right", "--results", "../both.jsonl", "--out", "x").returncode == 0


def test_a_name_that_is_none_is_told_with_its_line(projects: tuple[Command, Command]) -> None:
    _, right = projects
    (right.folder / "cumatrix.toml").write_text('project = "fast softmax"\n')
    done = right("config")
    assert (done.returncode, done.stdout) == (2, "")
    assert "cumatrix.toml:1: project: must be a name such as" in done.stderr
