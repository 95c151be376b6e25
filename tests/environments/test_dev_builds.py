"""Users' names of development builds."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from repositories import Repository

from harness.environments.dev_builds import Development, _of_extras, split_with
from harness.errors import PartUnavailable, UsageError

PROJECT = '[project]\nname = "Numba_CUDA"\nversion = "0.15.0"\n'


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))


@pytest.fixture
def sources(tmp_path: Path) -> Repository:
    """Write a project in a checkout."""
    repository = Repository(tmp_path / "sources")
    repository.commit({"pyproject.toml": PROJECT, "numba_cuda/__init__.py": ""}, tag="v1.0")
    return repository


def only(text: str, base: Path) -> Development:
    """Return the only build that a text names."""
    releases, (build,) = split_with([text], base)
    assert releases == []
    return build


def test_releases_are_left_as_they_are(tmp_path: Path) -> None:
    assert split_with(["cupy=12,13.1..14", "numba=all"], tmp_path) == (["cupy=12,13.1..14", "numba=all"], [])


@pytest.mark.parametrize("text", ["-e ./sources", "-e sources", "--editable=./sources", "-e {uri}"])
def test_an_editable_install(tmp_path: Path, sources: Repository, text: str) -> None:
    build = only(text.format(uri=sources.folder.as_uri()), tmp_path)
    assert (build.library, build.distribution, build.requirement, build.editable) == (
        "numba-cuda", "numba-cuda", str(sources.folder), True,
    )  # fmt: skip
    # Other files in the folder do not change the environment; the project's files do.
    sources.write({"numba_cuda/new.py": ""})
    assert only("-e ./sources", tmp_path).identity == build.identity
    sources.write({"pyproject.toml": PROJECT + 'dependencies = ["numba"]\n'})
    assert only("-e ./sources", tmp_path).identity != build.identity


@pytest.mark.parametrize(
    "text", ["-e ./sources[cu12, test]", "numba-cuda[test,cu12] @ ./sources", "numba_cuda[cu12,test]@./sources@v1.0"]
)
def test_extras(tmp_path: Path, sources: Repository, text: str) -> None:
    build = only(text, tmp_path)
    assert build.extras == ("cu12", "test")
    plain = only(text.partition("[")[0] + text.partition("]")[2], tmp_path)
    assert (plain.requirement, plain.extras) == (build.requirement, ())
    assert plain.identity != build.identity


def test_the_requirements_of_extras(tmp_path: Path, sources: Repository) -> None:
    named = [Requirement(text) for text in ("numba>=0.60", 'nvcc==12.*; extra == "cu12"', 'pytest; extra == "test"')]
    assert list(_of_extras(named, only("-e ./sources[cu12]", tmp_path))) == ["nvcc==12.*"]


def test_a_folder_is_built_again_when_a_file_has_changed(tmp_path: Path, sources: Repository) -> None:
    first = only("numba-cuda @ ./sources", tmp_path)
    assert (first.requirement, first.editable) == (f"numba-cuda @ {sources.folder.as_uri()}", False)
    sources.write({"build/x": "", "numba_cuda/__pycache__/x.pyc": "", "numba_cuda.egg-info/PKG-INFO": ""})
    assert only("numba-cuda @ ./sources", tmp_path) == first
    sources.write({"numba_cuda/__init__.py": "x = 1\n"})
    assert only("numba-cuda @ ./sources", tmp_path).identity != first.identity


@pytest.mark.parametrize(
    "text", ["numba-cuda @ git+{uri}@v1.0", "numba_cuda@git+{uri}@v1.0", "numba-cuda @ ./sources@v1.0"]
)
def test_a_revision_is_the_commit_that_it_is_now(tmp_path: Path, sources: Repository, text: str) -> None:
    uri, commit = sources.folder.as_uri(), sources.git("rev-parse", "v1.0")
    assert only(text.format(uri=uri), tmp_path).requirement == f"numba-cuda @ git+{uri}@{commit}"


def test_a_branch_moves_and_a_range_is_one_build_a_commit(tmp_path: Path, sources: Repository) -> None:
    commits = [sources.git("rev-parse", "main"), sources.commit({"a": ""}), sources.commit({"b": ""})]
    assert only("numba-cuda @ ./sources@main", tmp_path).requirement.endswith(commits[-1])
    _, builds = split_with(["numba-cuda @ ./sources@v1.0..main"], tmp_path)
    assert [build.requirement.rpartition("@")[2] for build in builds] == commits


def test_a_wheel_by_its_content(tmp_path: Path) -> None:
    wheel = tmp_path / "dist" / "cupy_cuda12x-14.0.0-cp311-cp311-manylinux2014_x86_64.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"a wheel")
    build = only(f"cupy @ ./dist/{wheel.name}", tmp_path)
    assert build.requirement == f"cupy-cuda12x @ {wheel.as_uri()}"
    assert (build.identity, build.cuda) == (hashlib.sha256(b"a wheel").hexdigest(), 12)
    address = f"https://example.org/{wheel.name}"
    assert only(f"cupy @ {address}", tmp_path).requirement == f"cupy-cuda12x @ {address}"


def test_environments_that_are_there_stand_among_releases(tmp_path: Path) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    releases, builds = split_with([f"cupy=13,./venv,{python},14.0"], tmp_path)
    assert releases == ["cupy=13,14.0"]
    assert [(build.library, build.python) for build in builds] == [("cupy", str(python))] * 2
    assert split_with(["numba=./venv"], tmp_path)[0] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-e ./nowhere", "there is no folder '.*/nowhere'"),
        ("-e ./empty", "holds no Python project: it has neither pyproject.toml nor setup.py"),
        ("-e ./other", "the project in '.*/other' is requests, and none of cupy, numba, numba-cuda, "),
        ("-e ./broken", r"broken/pyproject\.toml cannot be read"),
        ("cupy @ ./sources", "the project in '.*/sources' is numba-cuda, not cupy"),
        ("requests @ git+https://example.org/a@main", "unknown library 'requests'"),
        ("cupy @ ./file.txt", "'file.txt' is no wheel"),
        ("cupy @ ./numba_cuda-1.0-py3-none-any.whl", "is a wheel of numba-cuda, not of cupy"),
        ("cupy @ ./nowhere@main", "there is no folder"),
        ("numba-cuda @ ./sources@nope", "has no commit, tag or branch 'nope'"),
        ("numba-cuda @ ./sources@--x", "'--x' is no commit, tag or branch"),
        ("cupy @ git+https://token@h/cupy@main", "'git.https://h/cupy@main': an address with a password"),
        ("cupy @ https://token@h/cupy-1.0-py3-none-any.whl", "'https://h/cupy-1.0-py3-none-any.whl': an address with"),
        ("cupy=./nowhere", "there is no Python at '.*/nowhere'"),
        ("cupyy=./sources", r'unknown library .cupyy. .did you mean "cupy"'),
    ],
)
def test_what_cannot_be_is_told(tmp_path: Path, sources: Repository, text: str, words: str) -> None:
    files = {
        "empty/a.txt": "", "other/pyproject.toml": '[project]\nname = "requests"\n', "broken/pyproject.toml": "[",
        "file.txt": "", "numba_cuda-1.0-py3-none-any.whl": "",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=words) as caught:
        split_with([text], tmp_path)
    assert str(caught.value).startswith("--with ")
    assert "token" not in str(caught.value)


def test_offline_no_repository_is_asked(tmp_path: Path) -> None:
    with pytest.raises(PartUnavailable, match="is not copied, and --offline downloads nothing"):
        split_with(["cupy @ git+https://example.org/cupy@main"], tmp_path, offline=True)
