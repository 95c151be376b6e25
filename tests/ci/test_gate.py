"""The recipes for CI: the tests run their steps as the CI does, on a project with one kernel."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.toolkits import ToolkitStore

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "ci.md").read_text()
GOOD = "__global__ void k(int *x) { *x = 1; }\n"
BAD = "__global__ void k(int *x) {\n    throw *x;\n}\n"

pytestmark = pytest.mark.compilers


def recipe(name: str) -> str:
    """Return the marked block of the guide."""
    found = re.search(rf"<!-- recipe: {name} -->\n```\w+\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def project(tmp_path: Path, toolkit: Callable[[str], object]) -> Path:
    for release in ("12.9", "13.0"):
        toolkit(release)
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kernel.cu").write_text(GOOD)
    return folder


def shell(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a CI does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", text], cwd=folder, text=True, capture_output=True, timeout=600, stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path, **variables},
    )  # fmt: skip


class Job:
    """Job that runs the script steps of the composite action with GitHub's variables.

    Without `only`, the steps use the cumatrix under test and verify no toolkit.
    """

    def __init__(self, project: Path, temporary: Path, only: Sequence[str] = (), **inputs: str) -> None:
        self.only = only
        self.action = yaml.safe_load((ROOT / "action.yml").read_text())
        self.inputs = {name: entry.get("default", "") for name, entry in self.action["inputs"].items()} | inputs
        self.project, self.temporary = project, temporary
        self.outputs = {"install": {"bin": str(Path(sys.executable).parent)}}
        self.summary = temporary / "summary"
        self.said: dict[str, subprocess.CompletedProcess[str]] = {}
        temporary.mkdir()

    def run(self) -> int:
        """Run the steps up to the first failure, as a job does; steps with ``!cancelled()`` always run."""
        failed = 0
        for step in self.action["runs"]["steps"]:
            if "run" not in step or not self._wanted(step.get("if", ""), failed):
                continue
            if step["id"] not in self.only if self.only else step["id"] in ("install", "verify"):
                continue
            out = self.temporary / "output"
            out.write_text("")
            env = {name: self._filled(value) for name, value in step["env"].items()}
            known = {
                "GITHUB_OUTPUT": str(out),
                "GITHUB_PATH": str(self.temporary / "path"),
                "GITHUB_STEP_SUMMARY": str(self.summary),
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_ACTIONS": "true",
            }
            assert "${{" not in step["run"], "what others write must not become a part of a script"
            done = self.said[step["id"]] = shell(step["run"], self.project, **known, **env)
            self.outputs[step["id"]] = dict(line.split("=", 1) for line in out.read_text().splitlines())
            failed = failed or done.returncode
        return failed

    def _filled(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: self._value(match[1]), text)

    def _value(self, name: str) -> str:
        if name == "github.action_path":
            return str(ROOT)
        kind, *rest = name.split(".")
        if kind == "inputs":
            return str(self.inputs[rest[0]])
        assert kind == "steps", name
        return self.outputs.get(rest[0], {}).get(rest[2], "")

    def _wanted(self, condition: str, failed: int) -> bool:
        inner = condition.removeprefix("${{").removesuffix("}}").strip()
        if failed and "!cancelled()" not in inner:
            return False
        parts = [part.strip() for part in inner.split("&&") if part.strip() not in ("", "!cancelled()")]
        return all(self._value(part.split(" != ")[0]) != "" for part in parts)


@pytest.mark.slow
def test_the_action_passes_what_is_as_expected(project: Path, tmp_path: Path) -> None:
    given = yaml.safe_load(recipe("github"))["jobs"]["matrix"]["steps"][-1]["with"]
    job = Job(project, tmp_path / "runner", **given)
    assert job.run() == 0, job.said
    assert job.outputs["gate"]["exit-code"] == "0"
    assert "4 cells, all as expected" in job.summary.read_text()
    assert (Path(job.outputs["report"]["page"]) / "index.html").is_file()
    assert json.loads(Path(job.outputs["report"]["sarif"]).read_text())["runs"][0]["results"] == []
    assert job.said["report"].stdout.count("::error") == 0


@pytest.mark.slow
def test_the_action_takes_what_the_projects_configuration_says(project: Path, tmp_path: Path) -> None:
    (project / "cumatrix.toml").write_text(
        'sources = "*.cu"\ncases = ["tests/cuda"]\nbackend = "nvrtc"\ntoolkit = "12.9"\ntarget = "sm_80"\n'
    )
    case = project / "tests" / "cuda" / "own" / "throws"
    case.mkdir(parents=True)
    (case / "throws.cu").write_text(BAD)
    (case / "case.toml").write_text('title = "throws"\n[source]\ncuda = "throws.cu"\n')
    job = Job(project, tmp_path / "runner")
    assert job.run() == 1, job.said
    lines = [line for line in job.said["report"].stdout.splitlines() if line.startswith("::")]
    assert [line.partition(",title")[0] for line in lines] == ["::error file=tests/cuda/own/throws/throws.cu,line=2"]
    assert "2 cells" in job.summary.read_text()


@pytest.mark.slow
def test_the_action_tells_what_is_not_at_its_line(project: Path, tmp_path: Path) -> None:
    (project / "kernel.cu").write_text(BAD)
    marker = tmp_path / "run"
    words = f"kernel.cu -b nvrtc -t 12.9 -a sm_80 --where 'target == \"sm_80\"' -D 'X=$(touch {marker})'"
    job = Job(project, tmp_path / "runner", command="try", arguments=words)
    assert job.run() == 1
    assert not marker.exists(), "arguments are words, and no script"
    (line,) = [line for line in job.said["report"].stdout.splitlines() if line.startswith("::")]
    assert line.startswith(
        "::error file=kernel.cu,line=2,title=kernel.cu%3A rejected at compile::device code does not support exception handling%0A"
    )
    (result,) = json.loads(Path(job.outputs["report"]["sarif"]).read_text())["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("kernel.cu", 2)
    assert "1 not as expected" in job.summary.read_text()


def test_the_action_reports_what_a_wheel_lacks(project: Path, tmp_path: Path) -> None:
    (project / "kernel.ptx").write_text(".version 8.0\n.target sm_90a\n")
    job = Job(project, tmp_path / "runner", command="wheel", arguments="kernel.ptx --require sm_90,sm_120")
    assert job.run() == 1, job.said
    assert job.outputs["gate"]["exit-code"] == "1" and "verdict" in job.said
    (line,) = [line for line in job.said["gate"].stdout.splitlines() if line.startswith("::")]
    assert line.startswith("::error title=kernel.ptx%3A not as required on sm_120::PTX of compute_90a (for 9.0 alone)")
    assert len(json.loads(Path(job.outputs["gate"]["sarif"]).read_text())["runs"][0]["results"]) == 1
    assert "    kernel.ptx" in job.summary.read_text()
    assert Job(project, tmp_path / "other", command="wheel", arguments="kernel.ptx --require sm_90").run() == 0


def test_bad_usage_ends_the_job_with_its_sentence(project: Path, tmp_path: Path) -> None:
    job = Job(project, tmp_path / "runner", command="try", arguments="kernel.cu -b nvrct")
    assert job.run() == 2
    assert "unknown backend 'nvrct'" in job.said["gate"].stderr
    assert Job(project, tmp_path / "other", command="rm").run() == 2


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"arguments": "kernel.cu 'unbalanced"}, "the input arguments is no list of words: No closing quotation"),
        ({"arguments": "kernel.cu \\"}, "the input arguments is no list of words: No escaped character"),
        ({"command": "run\n::stop-commands::x"}, "the input command is run, try or wheel"),
        *(
            ({"name": name}, "the input name has letters")
            for name in ("", "../../x", "a/b", "a\nfolder=/etc", "-x", "a:b")
        ),
    ],
)
def test_an_input_that_is_none_ends_the_job_before_anything_runs(
    project: Path, tmp_path: Path, inputs: dict[str, str], said: str
) -> None:
    job = Job(project, tmp_path / "runner", **{"command": "try", "arguments": "kernel.cu -b nvrtc -t 12.9", **inputs})
    assert job.run() == 2
    done = job.said["gate"]
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if line]
    assert line.startswith(f"::error::{said}")
    assert job.outputs["gate"] == {}
    assert list(tmp_path.rglob("results.jsonl")) == []


@pytest.mark.slow
def test_nothing_of_the_checkout_runs_before_cumatrix(project: Path, tmp_path: Path) -> None:
    """Modules in the working folder that shadow the standard library's and the installers', and settings of pip and uv there."""
    marker = tmp_path / "run"
    for name in ("shlex", "os", "re", "venv/__init__", "ensurepip/__init__", "pip/__init__", "pip/__main__", "sitecustomize", "usercustomize", "encodings/__init__", "harness/__init__", "cumatrix/__main__", "click", "rich/__init__"):  # fmt: skip
        path = project / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"open({str(marker)!r}, 'a').write({name!r})\nraise SystemExit(7)\n")
    (project / "uv.toml").write_text('index-url = "http://127.0.0.1:1/simple"\n')
    (project / "pyproject.toml").write_text('[tool.uv]\nindex-url = "http://127.0.0.1:1/simple"\n')
    for name in ("pip.conf", "setup.cfg"):
        (project / name).write_text("[global]\nindex-url = http://127.0.0.1:1/simple\n")
    job = Job(
        project, tmp_path / "runner", ["install", "gate", "report", "verdict"],
        command="try", arguments="kernel.cu -b nvrtc -t 12.9 -a sm_80",
    )  # fmt: skip
    assert job.run() == 0, job.said
    assert not marker.exists(), marker.read_text()
    (added,) = (tmp_path / "runner" / "path").read_text().splitlines()
    assert os.listdir(added) == ["cumatrix"], "later steps keep their own python3, pip and uv"
    assert "1 cell" in job.summary.read_text()


@pytest.mark.slow
def test_a_damaged_toolkit_of_the_cache_is_installed_again(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "data"))
    verify = Job(project, tmp_path / "empty", ["verify"])
    assert verify.run() == 0, "nothing was restored"
    assert shell("cumatrix toolkits install 12.9", project).returncode == 0
    (header,) = (tmp_path / "data").rglob("cuda_fp16.h")
    text = header.read_text()
    header.write_text(f"#error damaged\n{text}")
    verify = Job(project, tmp_path / "damaged", ["verify"])
    assert verify.run() == 0, verify.said
    assert header.read_text() == text
    header.write_text(f"#error damaged\n{text}")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "no-cache"))
    assert Job(project, tmp_path / "offline", ["verify"]).run() != 0


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 1)])
def test_the_recipe_for_gitlab(project: Path, text: str, code: int) -> None:
    (project / "kernel.cu").write_text(text)
    job = yaml.safe_load(recipe("gitlab"))["cuda-matrix"]
    assert shell("\n".join(job["script"]), project).returncode == code
    after = shell("\n".join(job["after_script"]), project)
    assert after.returncode == 0, after.stderr
    reports = job["artifacts"]["reports"]
    found = json.loads((project / reports["codequality"]).read_text())
    assert [entry["location"] for entry in found] == [{"path": "kernel.cu", "lines": {"begin": 2}}] * code
    assert (project / reports["junit"]).is_file()
    assert all((project / path).is_dir() for path in job["artifacts"]["paths"])


def _hooks() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    ours = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    for asked in yaml.safe_load(recipe("pre-commit"))["repos"][0]["hooks"]:
        yield ours[asked["id"]], asked


@pytest.mark.slow
def test_the_hooks_of_pre_commit(project: Path) -> None:
    (project / "cases").symlink_to(ROOT / "cases")
    for text, code in ((GOOD, 0), (BAD, 1)):
        (project / "kernel.cu").write_text(text)
        for hook, asked in _hooks():
            files = ["kernel.cu"] if hook.get("pass_filenames", True) else []
            words = [*shlex.split(hook["entry"]), *asked.get("args", hook.get("args", [])), *files]
            done = shell(shlex.join(words), project)
            assert done.returncode == (code if files else 0), done.stderr


def test_the_recipe_for_tox(project: Path) -> None:
    found = configparser.ConfigParser(interpolation=None)
    found.read_string(recipe("tox"))
    commands = found["testenv:cuda"]["commands"].replace("{/}", "/").strip().splitlines()
    for command in commands:
        done = shell(command, project)
        assert done.returncode == 0, done.stderr
    assert (project / "reports" / "html" / "index.html").is_file()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("a.cu kernel.cu z.cu -b nvrtc -t 12.9 -a sm_80", 1),  # the one in the middle
        ("z.cu -b nvrtc -t 13.0 -a sm_50", 3),  # no compiler answers
        ("z.cu -b nvrtc -t 11.7 -a sm_80 --offline", 4),  # not there
    ],
)
def test_the_action_ends_as_its_command_does(
    project: Path, tmp_path: Path, toolkit: Callable[[str], object], arguments: str, code: int
) -> None:
    """The steps after it still run, and none of them hides the failure."""
    home = tmp_path / "home" / "toolkits"
    home.mkdir(parents=True)
    for release in ("12.9", "13.0"):
        (home / release).symlink_to(ToolkitStore().root / release)
    for name, text in (("a.cu", GOOD), ("kernel.cu", BAD), ("z.cu", GOOD)):
        (project / name).write_text(text)
    job = Job(project, tmp_path / "runner", command="try", arguments=arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUMATRIX_HOME", str(home.parent))
        assert job.run() == code, job.said
    assert job.outputs["gate"]["exit-code"] == str(code)
    assert {step: done.returncode for step, done in job.said.items()} == {"gate": 0, "report": 0, "verdict": code}
