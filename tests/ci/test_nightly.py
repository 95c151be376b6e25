"""The steps of the nightly workflow, run as the workflow runs them. A fake gh writes down its calls."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cells import write_case

from harness.toolkits import Installed

from .steps import ROOT, Run, program

WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = {
    "include": [
        {"tier": "cpu", "shard": 1, "environments": "nvrtc,cupy13"},
        {"tier": "gpu", "shard": 1, "environments": "nvrtc,cupy13"},
    ]
}

# A fake of tox, whose environments leave the files of the real record writer: "silent" none, the others a cell per target.
TOX = f"""
import sys, pathlib, uuid
if sys.argv[1] == "list":
    print("nvrtc-cuda130\\ncupy13\\ntorch211")
    sys.exit()
name = sys.argv[sys.argv.index("-e") + 1]
pathlib.Path("reports").mkdir(exist_ok=True)
pathlib.Path("reports", "argv").open("a").write(" ".join(sys.argv[1:]) + "\\n")
if name != "silent":
    sys.path.insert(0, {str(ROOT / "tests")!r})
    from harness.records import RecordWriter
    from record_builders import cell, plan, record
    cells, run = [cell(target=target) for target in ("sm_80", "sm_90")], uuid.uuid4().hex
    with RecordWriter(pathlib.Path("reports", name + ".jsonl"), plan(*cells, run=run)) as writer:
        for each in cells:
            writer.append(record(each, run=run))
sys.exit(name == "bad")
"""

# Another fake, which runs cumatrix itself and kills it after the first cell.
KILLED = """
import pathlib, subprocess, sys, time
out = pathlib.Path("reports", "nvrtc.jsonl")
argv = ["cumatrix", "run", "--cases", "cases", "-b", "nvrtc", "-t", "13.0", "-a", "sm_80", "-j", "1", "--out", str(out)]
run = subprocess.Popen(argv)
while run.poll() is None and not (out.is_file() and out.stat().st_size):
    time.sleep(0.02)
run.kill()
sys.exit(run.wait())
"""


def test_every_job_has_its_part_of_all_environments(run: Run) -> None:
    jobs = json.loads(run("matrix", "--runner", "h200", "--shards", "2").stdout)["include"]
    assert [(job["tier"], job["shard"], job["options"]) for job in jobs] == [
        ("cpu", 1, "--shard 1/2 --device none *"), ("cpu", 2, "--shard 2/2 --device none *"),
        ("gpu", 1, "--shard 1/2 -a native *"), ("gpu", 2, "--shard 2/2 -a native *"),
    ]  # fmt: skip
    (environments,) = {job["environments"] for job in jobs}
    assert {"nvrtc-cuda130", "cupy13", "torch211"} <= set(environments.split(","))
    alone = json.loads(run("matrix", "--shards", "1").stdout)["include"]
    assert [job["options"] for job in alone] == ["--device none *", "-a native *"]
    assert [job["runner"] for job in jobs[1:3]] == ["ubuntu-latest", ["self-hosted", "h200"]]


def test_environments_can_be_chosen(run: Run) -> None:
    jobs = json.loads(run("matrix", "--only", "^cupy13$").stdout)["include"]
    assert [job["environments"] for job in jobs] == ["cupy13"] * 4
    nothing = run("matrix", "--only", "^opencl")
    assert (nothing.returncode, nothing.stdout) == (3, "")
    assert run("matrix", "--only", "(").returncode == 1


def test_every_environment_is_one_of_tox_ini(run: Run) -> None:
    pytest.importorskip("tox")
    (jobs, *_) = json.loads(run("matrix").stdout)["include"]
    argv = [sys.executable, "-m", "tox", "config", "-e", jobs["environments"], "-k", "commands"]
    assert subprocess.run(argv, cwd=ROOT, capture_output=True, timeout=300).returncode == 0


def test_cells_that_are_not_as_expected_are_not_the_jobs_failure(run: Run, tools: Path, work: Path) -> None:
    program(tools, "tox", TOX)
    assert run("run", "nvrtc,bad", "--", "-a", "native").returncode == 0
    assert (work / "reports/argv").read_text() == "run -e nvrtc -- -a native\nrun -e bad -- -a native\n"


def test_an_environment_without_records_is(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    done = run("run", "silent,nvrtc", "--", "--device", "none")
    assert (done.returncode, done.stderr) == (1, "nightly.py: no records from silent\n")


def test_records_of_an_earlier_run_are_none_of_this_one(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    assert run("run", "nvrtc").returncode == 0
    program(tools, "tox", "")
    done = run("run", "nvrtc")
    assert (done.returncode, done.stderr) == (1, "nightly.py: no records from nvrtc\n")


@pytest.mark.compilers
def test_an_environment_that_died_half_way_is_told(
    run: Run, tools: Path, work: Path, toolkit: Callable[[str], Installed]
) -> None:
    toolkit("13.0")
    cases = work / "cases"
    write_case(cases, "a/quick", "__global__ void quick(int *a) { *a = 1; }")
    write_case(cases, "b/stuck", '#include "never.h"\n__global__ void stuck(int *a) { *a = 1; }')
    write_case(cases, "c/after", "__global__ void after(int *a) { *a = 1; }")
    os.mkfifo(cases / "b/stuck/never.h")  # opening it blocks
    program(tools, "tox", KILLED)
    done = run("run", "nvrtc")
    assert done.returncode == 1
    assert (
        "nightly.py: nvrtc ended early: 2 cells of 3 never arrived: b/stuck nvrtc cuda13.0 sm_80, c/after nvrtc cuda13.0 sm_80\n"
        in done.stderr
    )


def send(work: Path, tier: str, name: str) -> None:
    folder = work / "artifacts" / f"records-{tier}-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("{}\n")
    (folder / f"{name}.plan.json").write_text("{}\n")


def test_what_arrived_is_counted(run: Run, work: Path) -> None:
    send(work, "cpu", "nvrtc")
    send(work, "gpu", "cupy13")
    assert run("collect", "artifacts", "--jobs", json.dumps(JOBS)).returncode == 0
    assert (work / "night/gpu/cupy13.jsonl").is_file()
    assert (work / "night/cpu/nvrtc.plan.json").is_file()
    assert (work / "summary.md").read_text() == "Records of 2 of 4 environments.\n"


def test_a_night_without_results_shouts(run: Run, work: Path) -> None:
    work.joinpath("artifacts").mkdir()
    done = run("collect", "artifacts", "--jobs", json.dumps(JOBS))
    assert (done.returncode, done.stderr) == (3, "nightly.py: the night has no results at all\n")


def test_actions_are_pinned_and_no_input_is_put_into_a_script() -> None:
    for path in sorted(WORKFLOWS.glob("*.yml")):
        text = path.read_text()
        for action in re.findall(r"uses: (\S+)", text):
            own = action.startswith("./")  # this repository's, of the same commit
            assert own or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"
        for script in re.findall(r"run: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", text):
            assert "${{" not in "".join(script), f"{path.name}: {script}"
        assert re.search(r"^permissions:", text, re.MULTILINE), path.name


CUMATRIX = """
import json, sys
from pathlib import Path

argv = sys.argv[1:]
with open("asked", "a") as file:
    print(*argv, file=file)
if argv[0] == "publish" and "--next" in argv:
    print("cumatrix: new on the index: Numba 99.1.0", file=sys.stderr)
    if Path("nothing").exists():
        sys.exit(3)
    runs = [["run", "a", "-b", "nvrtc"], ["run", "b", "-b", "nvcc"]]
    print(json.dumps([{"argv": each, "cells": 1000, "seconds": 1.0, "separates": 1.0} for each in runs]))
elif argv[:2] == ["publish", "--wheels"]:
    folder = Path(argv[argv.index("--out") + 1])
    known = (folder / "wheels.json").read_text()
    (folder / "wheels.json").write_text(f"{known}, and vllm 99.0")
    print("cumatrix: new on the index: vllm 99.0", file=sys.stderr)
elif argv[0] == "publish":
    Path(argv[argv.index("--out") + 1]).mkdir(parents=True)
elif argv[1] == "a":
    out = Path(argv[argv.index("--out") + 1])
    out.parent.mkdir(exist_ok=True)
    out.write_text("{}\\n")
    sys.exit(1)  # a cell is not as expected
elif argv[0] == "run":
    sys.exit(4)
"""
"""A fake cumatrix that records the commands of the step, without compiling."""


def test_the_missing_cells_of_the_plan_are_run_and_published(run: Run, tools: Path, work: Path) -> None:
    program(tools, "cumatrix", CUMATRIX)
    matrix = work / "reports" / "matrix"
    matrix.mkdir(parents=True)
    (matrix / "plan.toml").touch()
    (matrix / "wheels.json").write_text("what was read")
    done = run("next", "--seconds", "60")
    assert done.returncode == 1, done.stderr  # one command left no records
    asked = (work / "asked").read_text().splitlines()
    assert asked == [
        "publish reports/matrix --next 200 --seconds 60 --watch --json",
        "run a -b nvrtc --out next/000.jsonl",
        "run b -b nvcc --out next/001.jsonl",
        "publish --wheels --out next/wheels",
    ]
    summary = (work / "summary.md").read_text()
    assert "2,000 missing cells of the plan in 2 commands." in summary
    assert "- new on the index: Numba 99.1.0\n- new on the index: vllm 99.0\n" in summary
    assert "- no records: `cumatrix run b -b nvcc`" in summary and "run a" not in summary
    assert run("extend").returncode == 0
    assert (work / "asked").read_text().splitlines()[-1] == "publish reports/matrix night/cpu next --out after/matrix"
    assert (work / "after" / "matrix" / "wheels.json").read_text() == "what was read, and vllm 99.0"


def test_a_plan_without_missing_cells_is_no_failure(run: Run, tools: Path, work: Path) -> None:
    program(tools, "cumatrix", CUMATRIX)
    (work / "nothing").touch()
    done = run("next")
    assert done.returncode == 0, done.stderr
    assert "0 missing cells of the plan in 0 commands." in (work / "summary.md").read_text()
