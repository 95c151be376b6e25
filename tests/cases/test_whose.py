"""The name of a case's project: the same in every checkout, another one in another project."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cases.load import load_case, project_at
from harness.cases.sources import packaged_cases

CASE = 'title = "A kernel"\nsource = { cuda = "kernel.cu" }\n'
COPIED = "exceptions/throw"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a project with a case and without a name."""
    case = tmp_path / "attention" / "cases" / "fast" / "softmax"
    case.mkdir(parents=True)
    (case / "case.toml").write_text(CASE)
    (case / "kernel.cu").write_text("__global__ void k() {}")
    return tmp_path / "attention"


def whose(folder: Path, name: str = "fast/softmax") -> str:
    cases = folder / "cases"
    return load_case(cases / name / "case.toml", cases).project


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_the_first_that_says_it_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert whose(folder) == ""
    (folder / "pyproject.toml").write_text('[project]\nname = "Flash Attention"\n')
    assert whose(folder) == "Flash-Attention"
    (folder / "cumatrix.toml").write_text('project = "fa"\n')
    assert whose(folder) == "fa"
    monkeypatch.setenv("CUMATRIX_PROJECT", "fa2")
    assert whose(folder) == "fa2"
    monkeypatch.setenv("CUMATRIX_PROJECT", "none")
    assert whose(folder) == ""


def test_a_table_of_pyproject_says_it_too(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "a"\n[tool.cumatrix]\nproject = "b"\n')
    assert whose(folder) == "b"


def test_what_is_damaged_says_nothing(folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project\nname = "a"\n')
    (folder / "cumatrix.toml").write_text("project = 4\n")
    assert whose(folder) == ""


def test_a_repository_is_called_by_its_remote_in_every_checkout(folder: Path, tmp_path: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    assert whose(folder) == ""  # the folder can have another name in each place
    git(folder.parent, "clone", "-q", "attention", "clone")
    shutil.copytree(folder / "cases", tmp_path / "clone" / "cases")
    assert whose(tmp_path / "clone") == "attention"
    git(tmp_path / "clone", "remote", "set-url", "origin", "git@example.org:me/flash-attn.git")
    git(tmp_path / "clone", "worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    shutil.copytree(folder / "cases", tmp_path / "other" / "cases")
    (tmp_path / "clone").rename(tmp_path / "renamed")
    assert whose(tmp_path / "renamed") == "flash-attn"
    git(tmp_path / "renamed", "worktree", "repair", str(tmp_path / "other"))
    assert whose(tmp_path / "other") == "flash-attn"


def test_cumatrix_itself_has_no_name(tmp_path: Path) -> None:
    assert whose(packaged_cases().parent, COPIED) == ""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "cumatrix"\n')
    assert project_at(tmp_path) == ""


def test_a_copy_of_an_own_case_is_one_until_its_program_changes(folder: Path) -> None:
    (folder / "cumatrix.toml").write_text('project = "attention"\n')
    case = folder / "cases" / COPIED
    shutil.copytree(packaged_cases() / COPIED, case)
    assert whose(folder, COPIED) == ""
    text = (case / "case.toml").read_text()
    (case / "case.toml").write_text(text.replace('title = "', 'title = "Mine: ', 1))
    assert whose(folder, COPIED) == ""
    (case / "kernel.cu").write_text("// changed\n" + (case / "kernel.cu").read_text())
    assert whose(folder, COPIED) == "attention"
