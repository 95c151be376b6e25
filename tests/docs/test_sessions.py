"""Every session in the documentation is run, with real compilers, and says what is written."""

from __future__ import annotations

import doctest
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cumatrix

from .sessions import Command, blocks, commands, differs, run

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


def _with(kind: str) -> list[Any]:
    return [
        pytest.param(page, id=str(page.relative_to(ROOT)))
        for page in PAGES
        if any(True for _ in blocks(page.read_text(), kind))
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolkit: Callable[[str], object]) -> Path:
    """Where a reader types: a folder of theirs, with the library of cases."""
    for release in ("12.9", "13.0"):
        toolkit(release)
    place = tmp_path / "project"
    place.mkdir()
    (place / "cases").symlink_to(ROOT / "cases")
    (place / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(place)
    return place


@pytest.mark.compilers
@pytest.mark.parametrize("page", _with("console"))
def test_a_session_of_the_shell(page: Path, folder: Path) -> None:
    for command in commands(page.read_text()):
        assert not differs(command, run(command, folder), folder)


@pytest.mark.compilers
@pytest.mark.parametrize("page", _with("pycon"))
def test_a_session_of_python(page: Path, folder: Path) -> None:
    # One namespace for the page; what stands between the blocks is prose.
    text = page.read_text()
    lines = [""] * (text.count("\n") + 1)
    for first, block in blocks(text, "pycon"):
        each = block.splitlines()
        lines[first - 1 : first - 1 + len(each)] = each
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    test = doctest.DocTestParser().get_doctest("\n".join(lines), {}, page.name, str(page), 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=said.append)
    assert tried > 0
    assert failed == 0, "".join(said)


def test_the_page_of_the_api_names_every_function_and_keyword() -> None:
    text = (ROOT / "docs" / "api.md").read_text()
    keywords = set(cumatrix.TryOptions.__annotations__)
    functions = {"run", "iter_run", "try_", "iter_try", "read", "explain"}
    assert [name for name in sorted(keywords | functions) if f"`{name}`" not in text] == []


@pytest.mark.parametrize(
    ("said", "came", "right"),
    [
        ("one\ntwo", "one\ntwo\n", True),
        ("one\n...\nfour", "one\ntwo\nthree\nfour\n", True),
        ("one ... three", "one two three\n", True),
        ("took 3 s (4 from earlier runs)", "took 0.2 s\n", True),
        ("one\ntwo", "one\n", False),
        ("one", "one\nand more\n", False),
        ("", "something\n", False),
    ],
)
def test_what_is_compared(tmp_path: Path, said: str, came: str, right: bool) -> None:
    assert bool(differs(Command(1, "x", said), came, tmp_path)) is not right


def test_sessions_are_read_and_run(tmp_path: Path) -> None:
    text = "prose\n\n```console\n$ cat > a <<'END'\n> hello\n> END\n$ cat a; echo $?\nhello\n0\n```\n\n```\n$ not this\n```\n"
    first, second = commands(text)
    assert (first.line, second.line) == (4, 7)
    assert not differs(first, run(first, tmp_path), tmp_path)
    assert not differs(second, run(second, tmp_path), tmp_path)
    assert (tmp_path / "a").read_text() == "hello\n"
    assert os.listdir(tmp_path) == ["a"]
