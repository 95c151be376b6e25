"""Headers from folders and repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from repositories import Repository, cutlass

from harness.errors import PartUnavailable, UsageError
from harness.model import HeaderLibrary, Headers
from harness.toolkits import LIBRARIES
from harness.toolkits.header_sources import MOST_COMMITS, headers_of, read_source


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUMATRIX_HOME", str(tmp_path / "home"))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Four commits, two of them tagged."""
    made = Repository(tmp_path / "cutlass")
    for version, tag in (("3.9.0", "v3.9.0"), ("4.0.0", ""), ("4.1.0", ""), ("4.1.1", "v4.1.1")):
        made.commit(cutlass(version), tag)
    return made


def found(text: str, base: Path, library: HeaderLibrary = LIBRARIES["cutlass"]) -> dict[str, Headers]:
    """Return the headers that a text names, by value of the axis."""
    return headers_of(library, read_source(text, base), tell=lambda _text: None)


def test_a_folder_is_used_as_it_stands(repository: Repository, tmp_path: Path) -> None:
    commit = repository.git("rev-parse", "HEAD")
    ((number, clean),) = found("./cutlass", tmp_path).items()
    assert number == f"4.1.1+git.4.{commit[:7]}"
    assert clean.include == (repository.folder / "include",)
    assert clean.origin == {"headers": "4.1.1", "path": str(repository.folder), "commit": commit}
    repository.write(cutlass("4.1.2"))
    ((number, dirty),) = found("./cutlass", tmp_path).items()
    assert number.startswith(f"4.1.2+git.4.{commit[:7]}.dirty.")
    assert dirty.origin["commit"] == f"{commit}+dirty"
    assert dirty.fingerprint != clean.fingerprint


def test_a_folder_without_a_repository(tmp_path: Path) -> None:
    (tmp_path / "own" / "cutlass").mkdir(parents=True)
    ((number, headers),) = found("./own", tmp_path).items()
    assert number.startswith("0+local.")
    assert (headers.include, dict(headers.origin)) == ((tmp_path / "own",), {"path": str(tmp_path / "own")})


def test_a_revision_is_checked_out_and_kept(repository: Repository, tmp_path: Path) -> None:
    commit = repository.git("rev-parse", "v3.9.0")
    ((number, headers),) = found("./cutlass@v3.9.0", tmp_path).items()
    assert number == f"3.9.0+git.1.{commit[:7]}"
    assert headers.origin == {"headers": "3.9.0", "commit": commit, "url": repository.folder.as_uri()}
    (include,) = headers.include
    assert include.is_relative_to(tmp_path / "home" / "checkouts" / "cutlass")
    assert "MINOR 9" in (include / "cutlass" / "version.h").read_text()
    # A known tag or commit needs no repository; a branch can have moved.
    repository.folder.rename(tmp_path / "away")
    for revision in ("v3.9.0", commit, commit[:9]):
        assert found(f"git+{repository.folder.as_uri()}@{revision}", tmp_path)[number] == headers
    with pytest.raises(PartUnavailable, match=r"cannot be copied: .*does not appear to be a git repository"):
        found(f"git+{repository.folder.as_uri()}@main", tmp_path)


def test_a_branch_is_what_it_is_now(repository: Repository, tmp_path: Path) -> None:
    assert list(found("./cutlass@main", tmp_path)) == [f"4.1.1+git.4.{repository.git('rev-parse', 'main')[:7]}"]
    commit = repository.commit(cutlass("4.2.0"))
    assert list(found("./cutlass@main", tmp_path)) == [f"4.2.0+git.5.{commit[:7]}"]


def test_a_range_has_both_its_ends(repository: Repository, tmp_path: Path) -> None:
    numbers = list(found("./cutlass@v3.9.0..main", tmp_path))
    assert [number.partition("+")[0] for number in numbers] == ["3.9.0", "4.0.0", "4.1.0", "4.1.1"]
    assert list(found("./cutlass@main..main", tmp_path)) == numbers[-1:]
    with pytest.raises(UsageError, match=r"main\.\.v3\.9\.0 is no range: v3\.9\.0 does not come after main"):
        found("./cutlass@main..v3.9.0", tmp_path)


def test_a_commit_of_a_range_without_the_headers_is_told(repository: Repository, tmp_path: Path) -> None:
    repository.git("rm", "-rq", "include")
    gone = repository.commit({"README": ""})
    repository.commit(cutlass("4.3.0"))
    made = found("./cutlass@v4.1.1..main", tmp_path)
    assert [bool(headers.problem) for headers in made.values()] == [False, True, False]
    assert made[f"0+git.5.{gone[:7]}"].problem.endswith(
        "has no headers of cutlass: there is no folder cutlass in it, nor below include"
    )


def test_a_range_may_have_so_many_commits(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "many")
    first = repository.commit(cutlass("1.0.0"))
    tree = repository.git("rev-parse", "HEAD^{tree}")
    last = first
    for _ in range(2):
        last = repository.git("commit-tree", tree, "-p", last, "-m", "one more")
    repository.git("branch", "few", last)
    # Many commits take a second as one stream, and half a minute one by one.
    lines = [
        f"commit refs/heads/more\ncommitter A <a@b> {n} +0000\ndata 0\n" + (f"from {last}\n" if n == 1 else "")
        for n in range(1, MOST_COMMITS + 1)
    ]
    subprocess.run(
        ["git", "fast-import", "--quiet"], cwd=repository.folder, input="\n".join(lines), text=True, check=True
    )
    assert len(found(f"./many@{first}..few", tmp_path)) == 3
    with pytest.raises(UsageError, match=f"has {MOST_COMMITS + 3} commits, and a range may have {MOST_COMMITS}"):
        found(f"./many@{first}..more", tmp_path)


@pytest.mark.parametrize("text", ["./cutlass@nope", "./cutlass@0123456789abcdef"])
def test_a_revision_that_there_is_not(repository: Repository, tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match="has no commit, tag or branch"):
        found(text, tmp_path)


def test_where_no_header_tells_the_nearest_tag_does(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "old")
    repository.commit({"include/cutlass/cutlass.h": ""}, "v3.3.0")
    commit = repository.commit({"README": ""})
    assert list(found("./old@main", tmp_path)) == [f"3.3.0+git.2.{commit[:7]}"]


def test_cccl_keeps_its_headers_in_three_places(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "cccl")
    files = {
        "cub/cub/version.cuh": "#define CUB_VERSION 300104 // 3.1.4\n",
        "libcudacxx/include/nv/target": "",
        "thrust/thrust/version.h": "",
        "docs/x": "",
    }
    commit = repository.commit(files)
    ((number, headers),) = found("./cccl@main", tmp_path, LIBRARIES["cccl"]).items()
    assert number == f"3.1.4+git.1.{commit[:7]}"
    tree = headers.include[0].parents[1]
    assert [str(folder.relative_to(tree)) for folder in headers.include] == ["libcudacxx/include", "cub", "thrust"]
    assert not (tree / "docs").exists()


def test_a_library_below_a_folder_of_the_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "several")
    repository.commit({"third/party/include/mine/version.h": "#define MINE 7\n"})
    mine = HeaderLibrary(name="mine", packages={}, include=("include",), header="mine/version.h", macros=("MINE",))
    text = f"git+{repository.folder.as_uri()}@main#subdirectory=third/party"
    ((number, headers),) = found(text, tmp_path, mine).items()
    assert number.startswith("7+git.") and (headers.include[0] / "mine" / "version.h").is_file()
    with pytest.raises(UsageError, match="below third, has no headers of mine"):
        found(text.removesuffix("/party"), tmp_path, mine)


def test_no_hook_runs_and_no_submodule_is_fetched(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, mark, hooks = Repository(tmp_path / "other"), tmp_path / "ran", tmp_path / "user" / "hooks"
    other.commit({"secret.h": ""})
    repository.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.folder), "include/third"
    )
    repository.commit(tag="v4.2.0")
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "post-merge", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {mark}\n")
        (hooks / name).chmod(0o755)
    (hooks.parent / ".gitconfig").write_text(f'[core]\nhooksPath = {hooks}\n[protocol "file"]\nallow = always\n')
    monkeypatch.setenv("HOME", str(hooks.parent))
    subprocess.run(["git", "-C", str(other.folder), "checkout", "--quiet", "-b", "side"], check=True)
    assert mark.exists(), "the hook does not work"
    mark.unlink()
    ((_, headers),) = found("./cutlass@v4.2.0", tmp_path).items()
    (include,) = headers.include
    assert (include / "cutlass" / "version.h").exists()
    assert not mark.exists()
    assert not (include / "third" / "secret.h").exists()
