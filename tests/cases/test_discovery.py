"""Selection of cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cases.discovery import find_cases, load_cases, names_of
from harness.cases.toml import CaseError

from .conftest import GOOD, Write


@pytest.fixture
def library(root: Path, write: Write) -> Path:
    for name in ("wmma/fragments", "wmma/accumulator", "exceptions/throw"):
        write(GOOD, name)
    return root


def names(root: Path, *selection: str) -> list[str]:
    return [case.name for case in load_cases(root, selection)]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ((), ["exceptions/throw", "wmma/accumulator", "wmma/fragments"]),
        (("wmma/fragments",), ["wmma/fragments"]),
        (("wmma",), ["wmma/accumulator", "wmma/fragments"]),
        (("wmma/",), ["wmma/accumulator", "wmma/fragments"]),
        (("*/f*",), ["wmma/fragments"]),
        (
            ("wmma", "exceptions/throw", "wmma/fragments"),
            ["exceptions/throw", "wmma/accumulator", "wmma/fragments"],
        ),
        (("cases/exceptions",), ["exceptions/throw"]),
        (("cases/wmma/fragments/case.toml",), ["wmma/fragments"]),
        (("cases",), ["exceptions/throw", "wmma/accumulator", "wmma/fragments"]),
    ],
)
def test_selection(
    library: Path, monkeypatch: pytest.MonkeyPatch, selection: tuple[str, ...], expected: list[str]
) -> None:
    monkeypatch.chdir(library.parent)
    assert names(library, *selection) == expected


@pytest.mark.parametrize(
    ("item", "hint"),
    [
        ("wmma/fragment", 'did you mean "wmma/fragments"'),
        ("throw", 'did you mean "exceptions/throw"'),
        ("exeptions", 'did you mean "exceptions"'),
        ("zzzzzzzz", "known are exceptions, exceptions/throw, wmma"),
        ("", "no case is called"),
        ("../..", "no case is called"),
        ("a\0b", "no case is called"),
        ("x" * 5000, "no case is called"),
    ],
)
def test_a_selection_that_chooses_nothing(library: Path, item: str, hint: str) -> None:
    with pytest.raises(CaseError) as caught:
        find_cases(library, [item])
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_case_that_was_not_chosen_does_not_matter(library: Path, write: Write) -> None:
    write("title = 1", "broken/one")
    assert names(library, "wmma/fragments") == ["wmma/fragments"]
    with pytest.raises(CaseError, match="broken/one") as caught:
        load_cases(library)
    assert {problem.key for problem in caught.value.problems} == {"title", "source"}


def test_hidden_folders_and_linked_ones_are_not_entered(library: Path, write: Write, tmp_path: Path) -> None:
    write(GOOD, ".git/some")
    (tmp_path / "far" / "one").mkdir(parents=True)
    (tmp_path / "far" / "one" / "case.toml").write_text("title = 1")
    (library / "far").symlink_to(tmp_path / "far")
    assert len(find_cases(library)) == 3


def test_no_folder_of_cases(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="there is no folder of cases"):
        load_cases(tmp_path / "nowhere")


def test_names_are_those_of_cumatrix_s_own_cases_where_there_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (case,) = load_cases([Path("cases")], ["atomics/double"])
    assert (case.name, names_of(Path("cases"), ["atomics/double"])) == ("atomics/double", ["atomics/double"])
    with pytest.raises(CaseError, match="there is no folder of cases at other"):
        load_cases([Path("other")], ["atomics/double"])
    with pytest.raises(CaseError, match="there is no folder of cases"):
        load_cases([Path("cases")])
    (tmp_path / "cases").mkdir()
    with pytest.raises(CaseError, match="no case is called"):
        load_cases([Path("cases")], ["atomics/double"])
