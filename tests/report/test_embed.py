"""Parts for other pages about a feature: a table, badges and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from record_builders import cell, plan, record, rejected

from harness.records import RecordWriter
from harness.report.build import build_report

HOSTILE = 'wmma/"><script>alert(1)</script>'


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("embed")
    nvrtc = [cell(backend="nvrtc", library="", toolkit=toolkit) for toolkit in ("12.4", "13.0")]
    odd = cell(HOSTILE, title="</pre><b>odd")
    with RecordWriter(folder / "r.jsonl", plan(*nvrtc, cell(), odd)) as writer:
        for of, outcome in ((nvrtc[0], rejected()), (nvrtc[1], None), (cell(), rejected()), (odd, None)):
            writer.append(record(of, outcome))
    build_report([folder / "r.jsonl"], folder / "html", address="https://example.org/x")
    return folder / "html"


def test_there_is_a_badge_for_each_tool_and_markdown_for_it(page: Path) -> None:
    case = (page / "cases" / "wmma-fragments.html").read_text()
    markdown = re.findall(r"\[!\[(.*?)\]\((.*?)\)\]\((.*?)\)", case)
    assert [address for _, address, _ in markdown] == [
        "https://example.org/x/badges/wmma-fragments--nvrtc.svg",
        "https://example.org/x/badges/wmma-fragments--cupy-nvrtc.svg",
    ]
    said = {address: (page / address.removeprefix("https://example.org/x/")).read_text() for _, address, _ in markdown}
    titles = [text.partition("<title>")[2].partition("</title>")[0] for text in said.values()]
    assert [title.rpartition(": ")[2] for title in titles] == ["builds since CUDA 13.0", "0 of 1"]
    assert {link for *_, link in markdown} == {"https://example.org/x/features/wmma-fragments.html"}
    assert '&lt;iframe src="https://example.org/x/features/wmma-fragments.html"' in case


def test_the_table_stands_alone_and_the_data_say_the_same(page: Path) -> None:
    table = (page / "features" / "wmma-fragments.html").read_text()
    assert "<nav" not in table
    assert 'href="../cases/wmma-fragments.html"' in table
    assert "Content-Security-Policy" in table
    data = json.loads((page / "api/v1/features/wmma-fragments.json").read_text())
    assert [(said["tool"], said["answer"]) for said in data["statements"]] == [("NVRTC", "builds since CUDA 13.0"), ("CuPy", "0 of 1")]  # fmt: skip
    assert data["statements"][0]["cells"][0] == "wmma/fragments nvrtc cuda13.0 sm_80"
    assert data["summary"] == {"nvrtc": "builds since CUDA 13.0", "cupy-nvrtc": "0 of 1"}


def test_hostile_names_stay_text(page: Path) -> None:
    found = [path for path in page.rglob("*script*") if path.suffix in (".html", ".svg")]
    assert {path.suffix for path in found} == {".html", ".svg"}
    for path in found:
        text = path.read_text()
        assert "<script>alert" not in text
        assert "<b>odd" not in text
