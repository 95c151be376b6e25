"""The workflows and the action, parsed strictly to find errors that GitHub reports only at run time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FILES = [*WORKFLOWS, ROOT / "action.yml", ROOT / ".github" / "dependabot.yml", ROOT / ".pre-commit-hooks.yaml", *ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")]  # fmt: skip
PINNED = re.compile(r"uses: (?P<name>[\w-]+/[\w/-]+)@(?P<commit>[0-9a-f]{40}) # (?P<version>v\d+\.\d+\.\d+)$")
STEP = {
    "id",
    "if",
    "name",
    "uses",
    "with",
    "run",
    "env",
    "shell",
    "working-directory",
    "continue-on-error",
    "timeout-minutes",
}
JOB = {
    "name", "needs", "if", "runs-on", "timeout-minutes", "permissions", "strategy", "steps", "outputs", "environment", "container", "defaults",
}  # fmt: skip


class Strict(yaml.SafeLoader):  # type: ignore[misc]
    """A duplicate key is an error, as for GitHub."""


def _once(loader: Strict, node: yaml.MappingNode) -> dict[str, Any]:
    names = [loader.construct_object(key) for key, _ in node.value]
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    assert twice == [], f"{node.start_mark}: {twice} twice"
    return {name: loader.construct_object(value, deep=True) for name, (_, value) in zip(names, node.value, strict=True)}


Strict.add_constructor("tag:yaml.org,2002:map", _once)


def _read(path: Path) -> dict[Any, Any]:
    read: dict[Any, Any] = yaml.load(path.read_text(), Strict)
    return read


def _steps(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    read = _read(path)
    if "runs" in read:
        yield path.name, read["runs"]["steps"]
    for name, job in read.get("jobs", {}).items():
        if "uses" not in job:
            yield f"{path.name}: {name}", job["steps"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_key_stands_twice(path: Path) -> None:
    assert _read(path)


def test_actions_of_others_are_pinned_by_commit_and_named_by_release() -> None:
    """Each action has one commit everywhere, which lets dependabot move all uses together."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in (*WORKFLOWS, ROOT / "action.yml"):
        for line in path.read_text().splitlines():
            if "uses:" in line and "uses: ./" not in line:
                match = PINNED.search(line)
                assert match is not None, f"{path.name}: {line}"
                found.setdefault(match["name"], set()).add((match["commit"], match["version"]))
    assert len(found) > 5
    assert {name: pins for name, pins in found.items() if len(pins) > 1} == {}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_have_limits_and_no_more_rights_than_they_need(path: Path) -> None:
    read = _read(path)
    assert "permissions" in read, "rights are said for the whole file, and are few"
    assert "write" not in str(read["permissions"])
    for name, job in read["jobs"].items():
        if "uses" in job:  # a workflow of this repository, which has its own limits
            assert set(job) <= {"name", "needs", "uses", "permissions"} and (ROOT / job["uses"]).is_file(), name
            continue
        assert set(job) <= JOB, name
        assert job["timeout-minutes"] <= 240, name
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(read["jobs"]), name
        for other in re.findall(r"needs\.([\w-]+)\.", str(job)):
            assert other in (needs if isinstance(needs, list) else [needs]), f"{name} does not wait for {other}"


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: path.name)
def test_steps_name_what_is_there(path: Path) -> None:
    for where, steps in _steps(path):
        ids = [step["id"] for step in steps if "id" in step]
        assert len(ids) == len(set(ids)), where
        seen: list[str] = []
        for step in steps:
            assert set(step) <= STEP, where
            assert ("run" in step) != ("uses" in step), f"{where}: {step}"
            assert "${{" not in step.get("run", ""), f"{where}: what others write must not become a part of a script"
            for other in re.findall(r"steps\.([\w-]+)\.", str(step)):
                assert other in seen, f"{where}: no step before this one is called {other}"
            seen += [step["id"]] if "id" in step else []


INSTALLED = re.compile(r"\bpip install\b(?P<words>.*)")


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml", ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_tools_of_ci_are_installed_by_hash(path: Path) -> None:
    """Every requirement except cumatrix itself, which the user of the action chooses."""
    for line in path.read_text().splitlines():
        found = INSTALLED.search(line)
        if found and not re.search(r"'\.\[[a-z,]+\]'|--python|\"\$REQUIREMENT\"$", found["words"]):
            assert "--require-hashes" in found["words"], line
    for file in (ROOT / ".ci" / "requirements").glob("*.txt"):
        text = file.read_text().replace("\\\n", "")
        pins = [pin for pin in text.splitlines() if pin and not pin.startswith("#")]
        assert pins and all("==" in pin and "--hash=sha256:" in pin for pin in pins), file


def test_a_release_waits_for_the_tests_of_its_commit() -> None:
    jobs = _read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    (tests,) = [name for name, job in jobs.items() if job.get("uses") == "./.github/workflows/ci.yml"]
    called = _read(ROOT / ".github" / "workflows" / "ci.yml")[True]  # YAML reads "on" as true
    assert "workflow_call" in called
    for name, job in jobs.items():
        if job["permissions"].get("id-token") == "write":
            assert tests in job["needs"], name


def test_the_action_uses_its_inputs_and_only_those() -> None:
    text, action = (ROOT / "action.yml").read_text(), _read(ROOT / "action.yml")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(action["inputs"])
    assert all("shell" in step for step in action["runs"]["steps"] if "run" in step), (
        "a composite action names its shell"
    )
    guide = (ROOT / "docs" / "ci.md").read_text()
    assert [name for name in action["inputs"] if f"| `{name}` |" not in guide] == []
    assert [name for name in action["outputs"] if f"`{name}`" not in guide] == []
