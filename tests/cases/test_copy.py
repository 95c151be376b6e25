"""Copying the library of cases."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from command import Command

from harness.cases.discovery import find_cases, load_cases
from harness.cases.library import copy_cases
from harness.errors import UsageError

ROOT = Path(__file__).parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_copy_is_the_library_of_this_checkout(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "own cases"
    assert copy_cases(folder) == len(find_cases(folder)) > 10
    listed = subprocess.run(["git", "ls-files", "-z", "cases"], cwd=ROOT, capture_output=True, text=True, check=True)
    # Not yet committed cases are copied, too.
    assert set(listed.stdout.split("\0")) - {""} <= {f"cases/{name}" for name in contents(folder)}
    assert all(data == (ROOT / "cases" / name).read_bytes() for name, data in contents(folder).items())
    assert [path.name for path in folder.parent.iterdir()] == ["own cases"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    assert copy_cases(tmp_path / "cases")


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling"])
def test_what_is_there_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    folder, own = tmp_path / "cases", tmp_path / "own"
    own.mkdir()
    (own / "notes.txt").write_text("mine")
    if kind == "folder":
        own = own.rename(folder)
    elif kind == "file":
        folder.write_text("mine")
    else:
        folder.symlink_to(own if kind == "link" else tmp_path / "nowhere")
    before = contents(tmp_path)
    with pytest.raises(UsageError, match=r"cases is there already: name another folder"):
        copy_cases(folder)
    assert contents(tmp_path) == before


def test_nothing_is_left_of_a_copy_that_fails(cumatrix: Command, tmp_path: Path) -> None:
    argv = ["prlimit", "--fsize=1500", *cumatrix.argv("cases", "copy")]
    # coverage.py would write, too, and complain.
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    # Python would keep the first 1,500 bytes of compiled modules for every later process.
    unmeasured |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(tmp_path / "none")}
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=800, env=unmeasured)
    assert (done.returncode, done.stderr) == (2, "cumatrix: cannot copy the cases to cases: File too large\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.called
def test_what_users_see(cumatrix: Command) -> None:
    done = cumatrix("run")
    where = "there is no folder of cases at cases: `cumatrix cases copy` puts cumatrix's own cases there"
    where += ", and `cumatrix init` looks for programs in this project"
    assert (done.returncode, done.stderr) == (2, f"cumatrix: {where}\n")
    done = cumatrix("cases", "copy")
    assert done.returncode == 0
    assert done.stderr.endswith("cases copied to cases: `cumatrix run` runs them\n")
    assert cumatrix("cases", "check").returncode == 0
    done = cumatrix("cases", "copy")
    assert done.returncode == 2
    assert "cases is there already" in done.stderr
    done = cumatrix("cases", "copy", "my cases")
    assert done.stderr.endswith("cases copied to my cases: `cumatrix run --cases 'my cases'` runs them\n")


def test_cases_and_topics_by_name(cumatrix: Command) -> None:
    folder = cumatrix.folder / "cases"
    assert cumatrix("cases", "copy", "shared-memory/static").returncode == 0
    assert contents(folder / "shared-memory") == {
        f"static/{name}": data for name, data in contents(ROOT / "cases" / "shared-memory" / "static").items()
    }
    # The faults that all cases of the library share come with it, and so do expectations.
    (ours,) = load_cases(folder)
    (original,) = load_cases(ROOT / "cases", ["shared-memory/static"])
    assert ours.expectations == original.expectations
    assert cumatrix("cases", "copy", "exceptions", "shared-memory/dynamic").returncode == 0
    assert {path.parent.parent.name for path in find_cases(folder)} == {"shared-memory", "exceptions"}
    for words, problem in {
        ("shared-memory/static",): "static is there already: remove it, or name another folder with --to",
        (
            "shared-memory/statik",
            "wmma",
        ): "no case or topic of the library is called 'shared-memory/statik' (did you mean",
    }.items():
        done = cumatrix("cases", "copy", *words)
        assert (done.returncode, problem in done.stderr) == (2, True), done.stderr
