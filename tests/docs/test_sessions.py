"""Sessions in the documentation, run with real compilers and compared with their pages."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import pytest
import yaml

import cumatrix
from harness.cli.main import cumatrix as cumatrix_command

from .given import GIVEN
from .not_run import NOT_RUN
from .sessions import Command, blocks, differs, run, sessions

ROOT = Path(__file__).parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("reports/**/*.md"), ROOT / "benchmarks" / "README.md"]
    )
    # `cumatrix publish` writes it, and tests/report/test_publish.py tests that; its commands compile for hours.
    if page != ROOT / "reports" / "matrix" / "README.md"
}  # fmt: skip
# Pages that most people read first, for runs between two nights; each command of the other pages takes a second or more, too.
QUICK = {"README.md", "docs/tutorial.md", "docs/ci.md", "docs/records.md"}
LANGUAGES = {"console", "sh", "text", "pycon", "python", "toml", "json", "yaml", "ini", "cpp", "dockerfile"}


def _first(session: list[Command]) -> str:
    return re.sub(r" +# .*", "", session[0].typed.splitlines()[0])


def _runs(page: str) -> list[list[Command]]:
    return [session for session in sessions(PAGES[page]) if _first(session) not in NOT_RUN.get(page, {})]


@pytest.fixture
def folder(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolkit: Callable[[str], object]) -> Path:
    """The reader's folder: a project of their own, or a folder with the library of cases."""
    for release in ("12.9", "13.0"):
        toolkit(release)
    place = tmp_path / "project"
    place.mkdir()
    for name, text in GIVEN.get(page, {}).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    if page not in GIVEN:
        for name in ("cases", "examples"):
            (place / name).symlink_to(ROOT / name)
    monkeypatch.chdir(place)
    return place


@pytest.mark.compilers
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page in QUICK else pytest.mark.slow) for page in PAGES if _runs(page)]
)
def test_a_session_of_the_shell(page: str, folder: Path) -> None:
    for session in _runs(page):
        for command in session:
            assert not differs(command, run(command, folder), folder)


def test_every_session_is_run_or_there_is_a_reason() -> None:
    """The list has exactly the sessions that are not run; all others have output."""
    seen = {page: {_first(session) for session in sessions(text)} for page, text in PAGES.items()}
    assert {page: sorted(set(listed) - seen.get(page, set())) for page, listed in NOT_RUN.items()} == {
        page: [] for page in NOT_RUN
    }
    silent = [f"{page}:{session[0].line}" for page in PAGES for session in _runs(page) if session[0].said is None]
    assert silent == [], "a block of commands that is not in tests/docs/not_run.py is a console session, with output"


def test_commands_stand_in_blocks_of_a_shell() -> None:
    """Every block has a known language, and no `text` block contains a command."""
    kinds = {f"{page}:{line}": kind for page, text in PAGES.items() for line, kind, _ in blocks(text)}
    assert {place: kind for place, kind in kinds.items() if kind not in {"", *LANGUAGES}} == {}
    hidden = [
        f"{page}:{first + number}"
        for page, text in PAGES.items()
        for first, _, block in blocks(text, "text")
        for number, line in enumerate(block.splitlines())
        if re.match(r"(\$ |cumatrix |pytest |tox |pip )", line)
    ]
    assert hidden == []


@pytest.mark.parametrize(
    "page", [page for page in PAGES if list(blocks(PAGES[page], "toml", "json", "python", "yaml"))]
)
def test_what_is_shown_of_files_can_be_read(page: str) -> None:
    for line, kind, block in blocks(PAGES[page], "toml", "json", "python", "yaml"):
        try:
            _READ[kind](block)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            pytest.fail(f"{page}:{line}: {error}")


_READ: Mapping[str, Callable[[str], object]] = {
    "toml": tomllib.loads, "json": json.loads, "python": ast.parse, "yaml": yaml.safe_load,
}  # fmt: skip


@pytest.mark.parametrize("page", NOT_RUN)
def test_commands_that_are_not_run_have_the_options_that_are_written(page: str) -> None:
    for session in sessions(PAGES[page]):
        for command in session:
            for words in _of_cumatrix(command.typed):
                inner: click.Command = cumatrix_command
                context, rest = click.Context(inner), words
                while isinstance(inner, click.Group):
                    found = inner.get_command(context, rest[0])
                    assert found is not None, f"{page}:{command.line}: there is no command {rest[0]}"
                    inner, context, rest = found, click.Context(found), rest[1:]
                try:
                    inner.make_parser(context).parse_args(list(rest))
                except click.UsageError as error:
                    pytest.fail(f"{page}:{command.line}: {error.message}")


def _of_cumatrix(typed: str) -> Iterator[list[str]]:
    """Return the words after each ``cumatrix`` of a line."""
    for part in re.split(r"&&|\|\||[|;\n]", typed.replace("\\\n", " ")):
        words = shlex.split(part, comments=True) if part.count("'") % 2 == 0 and part.count('"') % 2 == 0 else []
        if words and words[0] == "cumatrix" and len(words) > 1:
            yield words[1:]


@pytest.mark.compilers
@pytest.mark.parametrize("page", [page for page in PAGES if list(blocks(PAGES[page], "pycon"))])
def test_a_session_of_python(page: str, folder: Path) -> None:
    # The blocks of a page share a namespace; the text between the blocks is prose.
    text = PAGES[page]
    lines = [""] * (text.count("\n") + 1)
    for first, _, block in blocks(text, "pycon"):
        each = block.splitlines()
        lines[first - 1 : first - 1 + len(each)] = each
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    test = doctest.DocTestParser().get_doctest("\n".join(lines), {}, page, page, 0)
    said: list[str] = []
    failed, tried = doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=said.append)
    assert tried > 0
    assert failed == 0, "".join(said)


def test_the_page_of_the_api_names_every_function_and_keyword() -> None:
    text = PAGES["docs/api.md"]
    keywords = set(cumatrix.TryOptions.__annotations__)
    functions = {name for name in cumatrix.__all__ if inspect.isfunction(getattr(cumatrix, name))}
    assert {"run", "iter_run", "try_", "iter_try", "read", "explain", "ask"} <= functions
    assert [name for name in sorted(keywords | functions) if f"`{name}`" not in text] == []


def test_the_reference_has_every_public_name() -> None:
    text = (ROOT / ".ci" / "pages.py").read_text()
    names = [name for name in cumatrix.__all__ if not name.startswith("_")]
    assert [name for name in names if f'"{name}"' not in text] == []


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
    text = "prose\n\n```console\n$ cat > a <<'END'\n> hello\n> END\n$ cat a; echo $?\nhello\n0\n```\n\n```sh\necho \\\n  b\nls  # all\n```\n"
    (first, second), (third, fourth) = sessions(text)
    assert [command.line for command in (first, second, third, fourth)] == [4, 7, 13, 15]
    assert not differs(first, run(first, tmp_path), tmp_path)
    assert not differs(second, run(second, tmp_path), tmp_path)
    assert (third.typed, third.said, fourth.typed) == ("echo \\\n  b", None, "ls  # all")
    assert (tmp_path / "a").read_text() == "hello\n"
    assert os.listdir(tmp_path) == ["a"]
