"""Badges, JUnit XML and the feed: valid, deterministic, and compiler output never becomes markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from record_builders import BUILT, built, cell, plan, record, rejected

from harness.analysis import cells_frame as frame
from harness.analysis.history import History, append, read_history
from harness.model import Expectation, Outcome, Status
from harness.records import Merged, merge
from harness.report.api import badge, badges
from harness.report.feed import atom_feed, entries_of
from harness.report.junit import junit_xml

from .markup import text_of

HOSTILE = "</text><script>alert(1)</script>&\x1b[31m\x00\ufffe'\""
SVG = "{http://www.w3.org/2000/svg}"
ATOM = "{http://www.w3.org/2005/Atom}"
UNSUPPORTED = Outcome(status=Status.UNSUPPORTED, reason="no such architecture")
UNAVAILABLE = Outcome(status=Status.UNAVAILABLE, reason="not installed")
XFAIL = replace(BUILT, status=Status.REJECTED, xfail=True, reason="known")


def texts(svg: bytes | str) -> list[str | None]:
    return [item.text for item in ET.fromstring(svg).iter(f"{SVG}text")]


def test_badges() -> None:
    cells = {
        "cupy13": [built(), built(), UNSUPPORTED],
        "numba/059": [built(), rejected()],
        "numba 059": [UNSUPPORTED],
    }
    records = [
        record(cell(case=f"a/{name[-3:]}-{place}", environment=name), outcome)
        for name, outcomes in cells.items()
        for place, outcome in enumerate(outcomes)
    ]
    records.append(record(cell(case="a/known", environment="old"), rejected(), XFAIL))
    records = [
        {**item, "cell": f"{item['environment']} {item['cell']}", "toolkit": f"12.{n}"}
        for n, item in enumerate(records)
    ]
    found = badges(frame(merge(records, [])))
    assert {name: texts(svg) for name, svg in found.items()} == {
        "all.svg": ["cumatrix", "1 of 5 not as expected"],
        "cupy13.svg": ["cupy13", "2 of 2 build"],
        "numba-059.svg": ["numba 059", "no results"],
        "numba-059-2.svg": ["numba/059", "1 of 2 not as expected"],
        "old.svg": ["old", "0 of 1 build, 1 known failure"],
    }
    assert badges(frame(merge(list(reversed(records)), []))) == found


def test_badges_are_named_and_hold_any_text() -> None:
    svg = badge(HOSTILE, "2 as expected", "#2e7d32")
    root = ET.fromstring(svg)
    assert {item.tag.removeprefix(SVG) for item in root.iter()} == {"svg", "title", "clipPath", "rect", "g", "text"}
    assert root.get("role") == "img"
    assert root.get("aria-label") == text_of(root, f"{SVG}title")
    assert "2 as expected" in root.attrib["aria-label"]


@pytest.fixture
def merged() -> Merged:
    cells = [cell(target=target) for target in ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")]
    outcomes: list[tuple[Outcome] | tuple[Outcome, Expectation]] = [
        (built("sm_75"),),
        (rejected(HOSTILE, log=HOSTILE * 2000),),
        (UNSUPPORTED,),
        (UNAVAILABLE,),
        (rejected(), XFAIL),
    ]
    records = [record(of, *outcome) for of, outcome in zip(cells, outcomes, strict=False)]
    other = record(cell(backend="nvrtc", library="", environment="other"))
    return merge([*records, other], [plan(*cells)])


def test_junit(merged: Merged) -> None:
    data = junit_xml(merged)
    root = ET.fromstring(data)
    assert [suite.get("name") for suite in root] == ["cupy13: cupy-nvrtc 13.6.0, CUDA 12.4", "other: nvrtc, CUDA 12.4"]
    counts = ("tests", "failures", "errors", "skipped")
    assert [root.get(name) for name in counts] == ["7", "1", "2", "2"]
    assert [root[0].get(name) for name in counts] == ["6", "1", "2", "2"]
    kinds = {test.get("name"): next((f"{item.tag} {item.get('type')}" for item in test), "") for test in root[0]}
    assert kinds == {
        "sm_75": "",
        "sm_80": "failure fail",
        "sm_86": "skipped unsupported",
        "sm_90": "error unavailable",
        "sm_100": "skipped xfail",
        "sm_120": "error missing",
    }
    assert {test.get("classname") for test in root[0]} == {"wmma.fragments"}
    assert root[0][4][0].get("message") == "known"
    failure = text_of(root[0][1], "failure")
    assert "expected: built" in failure
    assert "<script>" in failure  # as text
    assert len(text_of(root[0][1], "system-out")) < 9000
    assert {item.tag for item in root.iter()} == {
        "testsuites",
        "testsuite",
        "testcase",
        "failure",
        "error",
        "skipped",
        "system-out",
    }
    assert data == junit_xml(merged)


def test_junit_is_read_by_others(merged: Merged, tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    (tmp_path / "junit.xml").write_bytes(junit_xml(merged))
    read = junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))
    assert (read.tests, read.failures, read.errors, read.skipped) == (7, 1, 2, 2)


@pytest.fixture
def history(tmp_path: Path) -> History:
    for day, outcome in enumerate(
        [built(), rejected(HOSTILE), rejected(HOSTILE), Outcome(status=Status.CRASHED, signal=11)], 1
    ):
        of = cell()
        append(
            tmp_path,
            [record(of, outcome, run=f"run-{day}")],
            [plan(of, run=f"run-{day}", day=day, commit="0123456789abcdef")],
        )
        elsewhere = cell(environment="other", backend="nvrtc", library="")
        append(tmp_path, [record(elsewhere, run=f"other-{day}")], [plan(elsewhere, run=f"other-{day}", day=day)])
    return read_history(tmp_path)


def test_feed(history: History) -> None:
    entries = entries_of(history)
    assert [(entry.run, entry.before, len(entry.regressions)) for entry in entries] == [
        ("run-4", "run-3", 1),
        ("run-2", "run-1", 1),
    ]
    data = atom_feed(entries, address="https://example.org/matrix/")
    root = ET.fromstring(data)
    # Requirements of RFC 4287 for a feed and its entries.
    for element in (root, *root.findall(f"{ATOM}entry")):
        for name in ("title", "id", "updated"):
            assert len(element.findall(f"{ATOM}{name}")) == 1
    assert text_of(root, f"{ATOM}author/{ATOM}name") == "cumatrix"
    assert [item.get("href") for item in root.findall(f"{ATOM}link")] == [
        "https://example.org/matrix/",
        "https://example.org/matrix/regressions.atom",
    ]
    assert text_of(root, f"{ATOM}updated") == "2026-01-04T12:00:00+00:00"
    ids = [item.text or "" for item in root.iter(f"{ATOM}id")]
    assert len(set(ids)) == 3
    assert all(name.startswith("urn:uuid:") for name in ids)
    first, second = root.findall(f"{ATOM}entry")
    assert text_of(first, f"{ATOM}title") == "1 regression in cupy13, commit 0123456789ab"
    assert [item.get("type") for item in second.findall(f"{ATOM}content")] == ["html"]
    content = text_of(second, f"{ATOM}content")
    assert "<script" not in content
    assert "&lt;script&gt;" in content
    assert "built → rejected at compile" in content
    assert atom_feed(entries_of(history), address="https://example.org/matrix/") == data


def test_feed_of_nothing_is_a_feed(tmp_path: Path) -> None:
    root = ET.fromstring(atom_feed(entries_of(read_history(tmp_path)), address="javascript:alert(1)"))
    assert text_of(root, f"{ATOM}updated") == "1970-01-01T00:00:00+00:00"
    assert root.findall(f"{ATOM}link") == []
