"""Checkouts, and version numbers of builds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version
from repositories import Repository

from harness.git import Checkout, GitError, build_of, checkout_of, git, number_of, with_local
from harness.matrix.axes import version_key

COMMIT = "3f2a9c1d" * 5


def test_the_state_of_a_checkout(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "a")
    commit = repository.commit({"package/__init__.py": "", ".gitignore": "*.so\n"})
    package = repository.folder / "package"
    clean = Checkout(repository.folder, commit, dirty=False, number=1)
    assert checkout_of(package) == checkout_of(package / "__init__.py") == clean
    # Files of Python, installers and compilers do not make a checkout dirty.
    repository.write({"package/__pycache__/x.pyc": "", "a.egg-info/PKG-INFO": "", "package/core.so": ""})
    assert checkout_of(package) == clean
    repository.write({"package/new.py": ""})
    assert checkout_of(package) == Checkout(repository.folder, commit, dirty=True, number=1)
    (package / "new.py").unlink()
    repository.write({"package/__init__.py": "x = 1\n"})
    assert checkout_of(package) == Checkout(repository.folder, commit, dirty=True, number=1)


def test_an_environment_within_a_checkout_is_no_part_of_it(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "a")
    repository.commit({"package/__init__.py": "", ".gitignore": ".venv\n"})
    repository.write({".venv/site-packages/cupy/__init__.py": ""})
    assert checkout_of(repository.folder / ".venv" / "site-packages" / "cupy") is None
    assert checkout_of(tmp_path) is None


def test_before_the_first_commit_there_is_none(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "a")
    repository.write({"package/__init__.py": ""})
    repository.git("add", "--all")
    assert checkout_of(repository.folder / "package") == Checkout(repository.folder, "", dirty=True)


def test_a_hook_of_git_does_not_lead_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, other = Repository(tmp_path / "here"), Repository(tmp_path / "other")
    commit = here.commit({"a/b": ""})
    other.commit({"c": ""})
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    assert checkout_of(here.folder / "a") == Checkout(here.folder, commit, dirty=False, number=1)


def test_what_git_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not a git repository"):
        git("status", folder=tmp_path)
    with pytest.raises(GitError, match="not installed, or the folder is missing"):
        git("status", folder=tmp_path / "nowhere")


def test_without_git_the_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match="git is not installed"):
        git("status", folder=tmp_path)


@pytest.mark.parametrize(
    ("version", "told", "build"),
    [
        ("0.15.0", {"commit": COMMIT}, r"0\.15\.0\+git\.3f2a9c1"),
        ("0.15.0", {"commit": COMMIT, "number": 12}, r"0\.15\.0\+git\.12\.3f2a9c1"),
        ("0.15.0", {"commit": COMMIT, "dirty": True, "place": "/a"}, r"0\.15\.0\+git\.3f2a9c1\.dirty\.[0-9a-f]{4}"),
        ("0.16.dev3+g3f2a9c1", {"commit": COMMIT}, r"0\.16\.dev3\+g3f2a9c1"),
        ("2.6.0+cu124", {"commit": COMMIT}, r"2\.6\.0\+cu124\.git\.3f2a9c1"),
        ("0.15.0", {"digest": COMMIT}, r"0\.15\.0\+build\.3f2a9c1"),
        ("0.15.0", {"place": "/a"}, r"0\.15\.0\+local\.[0-9a-f]{6}"),
    ],
)
def test_the_number_of_a_build_is_a_version(version: str, told: dict[str, Any], build: str) -> None:
    made = build_of(version, **told)
    assert re.fullmatch(build, made)
    assert SpecifierSet(f"=={Version(version).public}").contains(Version(made), prereleases=True)
    assert made != build_of(version, **{**told, "place": "/b", "digest": "0" * 40}) or "place" not in told


def test_builds_of_one_version_sort_by_history(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "a")
    commits = [repository.commit() for _ in range(4)]
    # A merged branch with more commits than the first parents of the merge.
    repository.git("checkout", "--quiet", "-b", "side", commits[1])
    commits += [repository.commit({"side": str(number)}) for number in range(8)]
    repository.git("checkout", "--quiet", "main")
    repository.git("merge", "--quiet", "--no-ff", "side")
    commits.append(repository.commit())
    builds = [
        build_of("1.0", commit=commit, number=number_of(commit, folder=repository.folder))
        for commit in (*commits[:2], *commits[4:])
    ]
    assert sorted(builds, key=version_key) == builds
    git("clone", "--quiet", "--depth=1", repository.folder.as_uri(), tmp_path / "shallow")
    assert number_of("HEAD", folder=tmp_path / "shallow") == 0


def test_two_changed_checkouts_of_one_commit_are_two_builds() -> None:
    builds = {build_of("1.0", commit=COMMIT, dirty=True, place=place) for place in ("/a", "/b")}
    assert len(builds) == 2


def test_words_are_added_to_what_is_there() -> None:
    assert with_local("14.2.0", []) == "14.2.0"
    assert with_local("14.2.0", ["wheels"]) == "14.2.0+wheels"
    assert with_local("14.2.0+git.3f2a9c1", ["wheels"]) == "14.2.0+git.3f2a9c1.wheels"
