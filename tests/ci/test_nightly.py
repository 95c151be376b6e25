"""The steps of the nightly workflow, run as it runs them. gh is a fake, which writes down what it was asked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .steps import ROOT, Run, program

WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = {
    "include": [
        {"tier": "cpu", "shard": 1, "environments": "nvrtc,cupy13"},
        {"tier": "gpu", "shard": 1, "environments": "nvrtc,cupy13"},
    ]
}

TOX = """
import sys, pathlib
if sys.argv[1] == "list":
    print("nvrtc-cuda130\\ncupy13\\ntorch211")
else:
    name = sys.argv[sys.argv.index("-e") + 1]
    pathlib.Path("reports").mkdir(exist_ok=True)
    pathlib.Path("reports", "argv").open("a").write(" ".join(sys.argv[1:]) + "\\n")
    if name != "silent":
        pathlib.Path("reports", name + ".jsonl").write_text("{}\\n")
    sys.exit(name == "bad")
"""


def test_every_environment_is_in_one_job_of_each_tier(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    jobs = json.loads(run("matrix", "--runner", "h200", "--shards", "2").stdout)["include"]
    assert [(job["tier"], job["shard"], job["environments"]) for job in jobs] == [
        ("cpu", 1, "nvrtc-cuda130,torch211"), ("cpu", 2, "cupy13"),
        ("gpu", 1, "nvrtc-cuda130,torch211"), ("gpu", 2, "cupy13"),
    ]  # fmt: skip
    assert [job["runner"] for job in jobs[1:3]] == ["ubuntu-latest", ["self-hosted", "h200"]]


def test_environments_can_be_chosen(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    jobs = json.loads(run("matrix", "--only", "^cupy").stdout)["include"]
    assert [job["environments"] for job in jobs] == ["cupy13", "cupy13"]
    nothing = run("matrix", "--only", "^opencl")
    assert (nothing.returncode, nothing.stdout) == (3, "")
    assert run("matrix", "--only", "(").returncode == 1


def test_the_label_is_in_tox_ini() -> None:
    assert re.search(r"^    nightly = \w", (ROOT / "tox.ini").read_text(), re.MULTILINE)


def test_cells_that_are_not_as_expected_are_not_the_jobs_failure(run: Run, tools: Path, work: Path) -> None:
    program(tools, "tox", TOX)
    assert run("run", "nvrtc,bad", "--", "-a", "native").returncode == 0
    assert (work / "reports/argv").read_text() == "run -e nvrtc -- -a native\nrun -e bad -- -a native\n"


def test_an_environment_without_records_is(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    done = run("run", "silent,nvrtc", "--", "--device", "none")
    assert (done.returncode, done.stderr) == (1, "nightly.py: no records from silent\n")


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
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{path.name}: {action}"
        for script in re.findall(r"run: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)", text):
            assert "${{" not in "".join(script), f"{path.name}: {script}"
        assert re.search(r"^permissions:", text, re.MULTILINE), path.name


def test_a_release_needs_the_same_version_everywhere(tmp_path: Path) -> None:
    script = tmp_path / ".ci" / "release.py"
    script.parent.mkdir()
    shutil.copyfile(ROOT / ".ci/release.py", script)
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness/__init__.py").write_text('__version__ = "1.2.3"\n')
    changelog = tmp_path / "CHANGELOG.md"

    def check(tag: str) -> tuple[int, str]:
        done = subprocess.run([sys.executable, str(script), tag], capture_output=True, text=True, timeout=800)
        return done.returncode, done.stderr

    changelog.write_text("## [Unreleased]\n")
    assert "the tag is v1.2.4" in check("v1.2.4")[1]
    assert "has no section" in check("v1.2.3")[1]
    changelog.write_text("## [Unreleased]\n\n## [1.2.3] - 2026-11-21\n")
    assert check("v1.2.3") == (0, "")
