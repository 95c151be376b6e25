"""The page in Firefox: the initial content, typed questions, the matrix, and no violation of its own policy.

Everything else about the page is tested in Chromium.
"""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.report.build import build_report

from .firefox import Firefox

ANSWERS = Path(__file__).parents[1] / "answers"
QUESTIONS = tomllib.loads((ANSWERS / "questions.toml").read_text())["question"]
SETTLED = """(async () => {
    const frames = async () => { for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame); };
    await frames();
    while (timers.pending > 0) await new Promise((done) => setTimeout(done, 10));
    await frames();
})()"""
ROWS = """[...document.querySelectorAll("#answers tbody tr")].map((row) => [...row.children].map((cell) => cell.innerText))"""


@contextmanager
def started(home: Path, *, dark: bool = False) -> Iterator[Firefox]:
    """Return the Firefox of the machine; skip the tests without one, except if CI requires it."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("CI has no Firefox: apt-get install firefox-esr")
        pytest.skip("no Firefox on the PATH: apt-get install firefox-esr")
    with Firefox(program, home, dark=dark) as browser:
        yield browser


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    """Open a window with light pages."""
    with started(tmp_path_factory.mktemp("firefox")) as browser:
        yield browser


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the report of compiled cells."""
    folder = tmp_path_factory.mktemp("answers") / "html"
    build_report([ANSWERS / "cells.parquet"], folder)
    return folder.as_uri()


def ready(firefox: Firefox, address: str) -> Firefox:
    firefox.errors.clear()
    firefox.goto(address)
    # The page's data is decompressed asynchronously.
    ready = "new Promise(done => { const look = () => document.documentElement.dataset.ready ? done(document.documentElement.dataset.ready) : setTimeout(look, 20); look(); })"
    assert firefox.evaluate(ready) == "true"
    firefox.evaluate(SETTLED)
    return firefox


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_first_view_and_questions(firefox: Firefox, answers: str) -> None:
    page = ready(firefox, f"{answers}/index.html")
    assert page.evaluate("document.querySelector('h1').innerText") == "What works where"
    first = page.evaluate(ROWS)
    assert len(first) > 5
    assert any("builds since 13.6.0" in words(cell) for row in first for cell in row)
    titles: dict[str, str] = page.evaluate(
        "cumatrix.load('answers').then((data) => Object.fromEntries(data.features.map((of) => [of.case, of.title])))"
    )
    for question in QUESTIONS[::6]:
        page.type("#ask", question["asked"])
        page.evaluate(SETTLED)
        columns = page.evaluate("[...document.querySelectorAll('#answers thead th')].map((head) => head.innerText)")
        cell = _answer(page.evaluate(ROWS), question, titles[question["case"]], columns)
        assert cell.startswith(question["says"]), question["asked"]
        assert question.get("note", "") in cell, question["asked"]
    assert page.errors == []


def _answer(rows: list[list[str]], question: dict[str, Any], title: str, columns: list[str]) -> str:
    label = question.get("label", "")
    named = ""
    for row in rows:
        # Lines below the first line of a feature name the feature for screen readers.
        named = row[0]
        if title in words(named) and label in words(named):
            return words(row[columns.index(question["tool"])])
    raise AssertionError(f"{question['asked']}: no line of {title} {label}, the last is {named}")


def test_the_matrix_is_filtered_and_a_cell_is_told(firefox: Firefox, answers: str) -> None:
    page = ready(firefox, f"{answers}/matrix.html")
    every = page.evaluate("document.querySelector('#status').innerText")
    page.type("#q", 'backend == "nvrtc" and cc >= "9.0" ')
    page.evaluate(SETTLED)
    shown = page.evaluate("document.querySelector('#status').innerText")
    assert shown.endswith(f"of {every}")
    assert page.evaluate("location.hash") == "#q=backend+==+%22nvrtc%22+and+cc+%3E=+%229.0%22+"
    assert page.evaluate("document.querySelectorAll('#viewport tbody tr.leaf').length") > 3
    page.evaluate("document.querySelector('#viewport tbody tr.leaf td[data-line]').click()")
    page.evaluate(SETTLED)
    assert page.evaluate("document.querySelector('#cell').hidden") is False
    assert page.errors == []


def test_pages_fit_the_window(firefox: Firefox, answers: str) -> None:
    firefox.errors.clear()
    for name in ("index", "matrix", "support", "cases/wmma-fragments"):
        firefox.goto(f"{answers}/{name}.html")
        for width in (390, 1440):
            firefox.resize(width, 900)
            assert firefox.evaluate("document.documentElement.scrollWidth") <= width, name
    assert firefox.errors == []


PAGES = ("index", "matrix", "cases/wmma-fragments")


def violations(page: Firefox) -> list[str]:
    """Return axe's findings on a page; fail if axe has checked little."""
    axe = pytest.importorskip("axe_playwright_python.base")
    page.run((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    # Browsers lay out, and axe checks, hidden parts only on request.
    page.evaluate("document.querySelectorAll('*').forEach((each) => (each.style.contentVisibility = 'visible'))")
    options = {"preload": False, "rules": {"label-content-name-mismatch": {"enabled": True}}}
    found = page.evaluate(f"axe.run(document, {json.dumps(options)})")
    assert len(found["passes"]) > 10
    return [f"{each['id']}: {node['html'][:200]}" for each in found["violations"] for node in each["nodes"][:3]]


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_accessibility_has_no_violations(
    request: pytest.FixtureRequest, tmp_path: Path, answers: str, scheme: str
) -> None:
    with ExitStack() as stack:
        if scheme == "dark":
            page = stack.enter_context(started(tmp_path, dark=True))
        else:
            page = request.getfixturevalue("firefox")
        for width in (390, 1440):
            page.resize(width, 900)
            for name in PAGES:
                show = page.goto if name.startswith("cases/") else partial(ready, page)
                show(f"{answers}/{name}.html")
                assert page.evaluate(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
                assert violations(page) == [], f"{name} at {width} px"
