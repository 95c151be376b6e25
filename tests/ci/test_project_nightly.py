"""The nightly workflow that other repositories call: the tests run its steps. A fake gh has the artifacts of a folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from .steps import ROOT, program
from .test_gate import BAD, GOOD, recipe, shell

pytestmark = [pytest.mark.compilers, pytest.mark.slow]

WORKFLOW = ROOT / ".github" / "workflows" / "project-nightly.yml"
# A fake of gh with one artifact, of run 7, whose files are in the folder "kept".
GH = """
import json, pathlib, shutil, sys
kept = pathlib.Path(__file__).parent / "kept"
if sys.argv[1] == "api":
    runs = [{"expired": False, "workflow_run": {"id": 6, "head_branch": "other"}}]
    runs += [{"expired": False, "workflow_run": {"id": 7, "head_branch": "main"}}] if kept.is_dir() else []
    print(json.dumps({"artifacts": runs}))
else:
    assert sys.argv[1:4] == ["run", "download", "7"], sys.argv
    shutil.copytree(kept, sys.argv[sys.argv.index("--dir") + 1], dirs_exist_ok=True)
"""


def _filled(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: known[match[1]], text)


class Night:
    """Runner of the workflow's script steps, as GitHub runs them; records become the artifact of the next night."""

    def __init__(self, project: Path, folder: Path, arguments: str) -> None:
        self.project, self.folder, self.arguments = project, folder, arguments
        folder.mkdir(exist_ok=True)
        program(folder, "gh", GH)

    def run(self) -> tuple[int, str, str]:
        """Return the exit code of the job, the id of the failed step, and the summary."""
        temporary = self.folder / "runner"
        temporary.mkdir()
        known = {
            "inputs.arguments": self.arguments, "inputs.name": "cumatrix-nightly", "github.token": "none", "github.ref_name": "main",
        }  # fmt: skip
        failed, where = 0, ""
        for step in yaml.safe_load(WORKFLOW.read_text())["jobs"]["night"]["steps"]:
            if "run" not in step or step["id"] == "install" or (failed and "!cancelled()" not in step.get("if", "")):
                continue
            assert "${{" not in step["run"], "what others write must not become a part of a script"
            out = temporary / "output"
            out.write_text("")
            env = {name: _filled(value, known) for name, value in step.get("env", {}).items()}
            path = f"{self.folder}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            variables = {
                "GITHUB_OUTPUT": str(out), "GITHUB_STEP_SUMMARY": str(temporary / "summary"), "RUNNER_TEMP": str(temporary),
                "GITHUB_REPOSITORY": "someone/project", "PATH": path,
            }  # fmt: skip
            done = shell(step["run"], self.project, **{**env, **variables})
            known |= {
                f"steps.{step['id']}.outputs.{name}": value
                for name, value in (line.split("=", 1) for line in out.read_text().splitlines())
            }
            if done.returncode and not failed:
                failed, where = done.returncode, f"{step['id']}: {done.stdout}{done.stderr}"
        summary = (temporary / "summary").read_text() if (temporary / "summary").is_file() else ""
        (temporary / "night").rename(self.folder / "kept") if not (self.folder / "kept").exists() else None
        temporary.rename(self.folder / f"runner-{len(list(self.folder.iterdir()))}")
        return failed, where, summary


def test_a_night_is_red_for_a_regression(tmp_path: Path, toolkit: Callable[[str], object]) -> None:
    toolkit("12.9")
    project = tmp_path / "project"
    project.mkdir()
    (project / "cumatrix.toml").write_text('sources = ["*.cu"]\nbackend = "nvrtc"\ntoolkit = "12.9"\n')
    (project / "good.cu").write_text(GOOD)
    (project / "bad.cu").write_text(BAD)
    night = Night(project, tmp_path / "nights", "-a sm_80")
    code, where, summary = night.run()
    assert (code, where.partition(":")[0]) == (1, "verdict"), "the first night has nothing to compare with"
    assert "bad.cu" in summary
    assert night.run()[:2] == (0, ""), "what failed the night before is no regression"
    (project / "good.cu").write_text(BAD)
    code, where, summary = night.run()
    assert (code, where.partition(":")[0]) == (1, "verdict")
    assert "good.cu" in where and "good.cu" in summary


def test_arguments_are_words_alone(tmp_path: Path, toolkit: Callable[[str], object]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    code, where, _ = Night(project, tmp_path / "nights", "$(touch run-by-a-shell) --no-such-option").run()
    assert (code, where.partition(":")[0]) == (1, "cells")
    assert not (project / "run-by-a-shell").exists()


def test_the_recipe_calls_it() -> None:
    (job,) = yaml.safe_load(recipe("nightly"))["jobs"].values()
    inputs = yaml.safe_load(WORKFLOW.read_text())[True]["workflow_call"]["inputs"]
    assert job["uses"].partition("@")[0].endswith(str(WORKFLOW.relative_to(ROOT)))
    assert set(job["with"]) <= set(inputs)
