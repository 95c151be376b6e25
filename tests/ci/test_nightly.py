"""The steps of the nightly workflow, run as it runs them. gh is a fake, which writes down what it was asked."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".ci" / "nightly.py"
WORKFLOWS = ROOT / ".github" / "workflows"
JOBS = {
    "include": [
        {"tier": "cpu", "shard": 1, "environments": "nvrtc,cupy13"},
        {"tier": "gpu", "shard": 1, "environments": "nvrtc,cupy13"},
    ]
}

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


@pytest.fixture
def run(tmp_path: Path, tools: Path) -> Run:
    """Run a step in an empty folder, as a job does."""
    work = tmp_path / "work"
    work.mkdir()

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        path = os.pathsep.join([str(tools), sysconfig.get_path("scripts"), os.environ["PATH"]])
        env = {**os.environ, "PATH": path, "GITHUB_OUTPUT": str(tmp_path / "output"), "ASKED": str(tmp_path / "asked")}
        return subprocess.run(
            [sys.executable, str(SCRIPT), *argv], cwd=work, env=env, capture_output=True, text=True, timeout=120
        )

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


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
    assert run("run", "nvrtc,bad", "--", "-a", "own").returncode == 0
    assert (work / "reports/argv").read_text() == "run -e nvrtc -- -a own\nrun -e bad -- -a own\n"


def test_an_environment_without_records_is(run: Run, tools: Path) -> None:
    program(tools, "tox", TOX)
    done = run("run", "silent,nvrtc", "--", "--device", "none")
    assert (done.returncode, done.stderr) == (1, "nightly.py: no records from silent\n")


def send(work: Path, tier: str, name: str) -> None:
    folder = work / "artifacts" / f"records-{tier}-1"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.jsonl").write_text("{}\n")
    (folder / f"{name}.plan.json").write_text("{}\n")


def test_what_did_not_arrive_is_told(run: Run, work: Path) -> None:
    send(work, "cpu", "nvrtc")
    send(work, "gpu", "cupy13")
    assert run("collect", "artifacts", "--jobs", json.dumps(JOBS)).returncode == 0
    assert (work / "night/gpu/cupy13.jsonl").is_file()
    assert (work / "night/cpu/nvrtc.plan.json").is_file()
    told = (work / "summary.md").read_text()
    assert "Records of 2 environments." in told
    assert "Nothing came from cupy13 (cpu, shard 1), nvrtc (gpu, shard 1)." in told


def test_a_night_without_results_shouts(run: Run, work: Path) -> None:
    work.joinpath("artifacts").mkdir()
    done = run("collect", "artifacts", "--jobs", json.dumps(JOBS))
    assert (done.returncode, done.stderr) == (3, "nightly.py: the night has no results at all\n")


GH = """
import json, os, sys
open(os.environ["ASKED"], "a").write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["issue", "list"]:
    print(OPEN)
"""


@pytest.mark.parametrize(
    ("state", "there", "calls"),
    [
        ("regression", [], ["issue list", "label create", "issue create"]),
        ("regression", [{"number": 7}], ["issue list", "issue comment"]),
        ("no results", [{"number": 7}], ["issue list", "issue comment"]),
        ("fine", [{"number": 7}], ["issue list", "issue close"]),
        ("fine", [], ["issue list"]),
    ],
)
def test_there_is_one_issue(
    run: Run, tools: Path, tmp_path: Path, state: str, there: list[object], calls: list[str]
) -> None:
    program(tools, "gh", GH.replace("OPEN", repr(json.dumps(there))))
    assert run("issue", "--state", state, "--link", "https://example.org/1").returncode == 0
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert [" ".join(argv[:2]) for argv in asked] == calls
    if len(calls) > 1:
        assert f"{state}: https://example.org/1" in asked[-1][-1]


def night(work: Path, folder: str, status: str) -> None:
    """Records of one cell, made by the real model, under that folder."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import json, pathlib, record_builders as b\n"
        "out = b.built() if sys.argv[3] == 'built' else b.rejected('``` @everyone')\n"
        "where = pathlib.Path(sys.argv[2]); where.mkdir(parents=True, exist_ok=True)\n"
        "cell = b.cell(); run = sys.argv[3]\n"
        "(where / 'cupy13.jsonl').write_text(json.dumps(b.record(cell, out, run=run)) + '\\n')\n"
        "(where / 'cupy13.plan.json').write_text(json.dumps({'plans': [b.plan(cell, run=run)]}))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(ROOT / "tests/records"), str(work / folder), status], check=True, timeout=60
    )


def test_the_first_night_has_a_page_and_a_history(run: Run, work: Path, tmp_path: Path) -> None:
    night(work, "night/gpu", "built")
    done = run("judge", "--address", "https://example.org/cumatrix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == "state=fine\n"
    assert (work / "site/index.html").is_file()
    assert (work / "after/night.jsonl").is_file()
    assert list((work / "after/history").rglob("*.parquet"))


def test_a_regression_is_told(run: Run, work: Path, tmp_path: Path) -> None:
    night(work, "night/gpu", "built")
    assert run("judge").returncode == 0
    shutil.move(work / "after", work / "before")
    shutil.rmtree(work / "night")
    night(work, "night/gpu", "rejected")
    done = run("judge")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == "state=fine\nstate=regression\n"
    told = (work / "summary.md").read_text()
    assert "Against the night before: regression." in told
    fence = re.search(r"^(`{3,})\n", told, re.MULTILINE)
    assert fence is not None
    assert told.count(fence[1] + "\n") == 2


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
        done = subprocess.run([sys.executable, str(script), tag], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    changelog.write_text("## [Unreleased]\n")
    assert "the tag is v1.2.4" in check("v1.2.4")[1]
    assert "has no section" in check("v1.2.3")[1]
    changelog.write_text("## [Unreleased]\n\n## [1.2.3] - 2026-11-21\n")
    assert check("v1.2.3") == (0, "")
