"""Programs and headers elsewhere in a project than in the case's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.load import load_case
from harness.cases.sources import matching, project_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("csrc/a.cu", "csrc/b.cu", "csrc/deep/c.cu", "csrc/.hidden/d.cu", "include/x.h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def _case(project: Path, text: str) -> Path:
    path = project / "cases" / "demo" / "all" / "case.toml"
    path.parent.mkdir(parents=True)
    path.write_text(f'title = "All of it"\n{text}')
    return path


def test_a_case_takes_its_program_and_headers_from_the_project(project: Path) -> None:
    path = _case(project, '[source]\ncuda = "../../../csrc/**/*.cu"\n[[options]]\ninclude = ["../../../include"]\n')
    case = load_case(path, project / "cases")
    files = [case.sources["cuda"], *case.together]
    assert [file.resolve().relative_to(project).as_posix() for file in files] == [
        "csrc/a.cu",
        "csrc/b.cu",
        "csrc/deep/c.cu",
    ]
    assert case.root == project


def test_a_case_of_its_own_folder_alone_belongs_to_no_project(project: Path) -> None:
    path = _case(project, '[source]\ncuda = "kernel.cu"\n')
    (path.parent / "kernel.cu").write_text("")
    case = load_case(path, project / "cases")
    assert case.root is None and case.together == ()


def test_headers_elsewhere_make_it_one_of_the_project(project: Path) -> None:
    path = _case(project, '[source]\ncuda = "kernel.cu"\n[[options]]\ninclude = ["../../../include"]\n')
    (path.parent / "kernel.cu").write_text("")
    assert load_case(path, project / "cases").root == project


def test_the_project_is_the_nearest_folder_with_a_mark(project: Path) -> None:
    assert project_of(project / "cases" / "demo" / "all") == project
    (project / "cases").mkdir()
    (project / "cases" / "cumatrix.toml").write_text("")
    assert project_of(project / "cases" / "demo" / "all") == project / "cases"


def test_without_a_mark_it_is_the_folder_that_holds_the_cases(tmp_path: Path) -> None:
    assert project_of(tmp_path / "cases" / "demo" / "all") == tmp_path


def test_patterns_pass_hidden_folders_and_name_each_file_once(project: Path) -> None:
    assert matching(project, ["csrc/b.cu", "csrc/*.cu", "csrc/**/*.cu"]) == ["csrc/b.cu", "csrc/a.cu", "csrc/deep/c.cu"]
    assert matching(project, ["**/c.cu", "csrc/**"]) == ["csrc/deep/c.cu", "csrc/a.cu", "csrc/b.cu"]
    assert matching(project, ["**/**/[bc].cu", "cs*/**/d?ep/*.cu"]) == ["csrc/b.cu", "csrc/deep/c.cu"]


def test_patterns_do_not_walk_through_links(project: Path) -> None:
    (project / "csrc" / "circle").symlink_to(project)
    (project / "machine").symlink_to("/")
    assert matching(project, ["**/*.cu"]) == ["csrc/a.cu", "csrc/b.cu", "csrc/deep/c.cu"]
    # A link that is named directly is followed.
    assert matching(project, ["csrc/circle/csrc/*.cu"]) == ["csrc/circle/csrc/a.cu", "csrc/circle/csrc/b.cu"]
