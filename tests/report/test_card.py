"""The preview of a shared link: tags, and a picture with the report's own numbers."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from record_builders import built, cell, plan, record, rejected

from harness.analysis import make_frame
from harness.records import Record, RecordWriter
from harness.report.build import build_report
from harness.report.plots import HEIGHT, NAME, WIDTH, card, described

HOSTILE = '$\\frac{"><script>alert(1)</script>\x1b]0;x\u202e' + "long " * 90


def records() -> list[Record]:
    tools = [("nvrtc", ""), ("cupy-nvrtc", "13.6.0"), ("numba", "0.59.0")]
    cells = [
        cell(case, backend=backend, library=library, target=target)
        for case in ("wmma/fragments", "atomics/add")
        for backend, library in tools
        for target in ("sm_80", "sm_90")
    ]
    return [record(of, rejected() if of.toolchain.backend == "numba" else built(str(of.target))) for of in cells]


def pixels(table: pd.DataFrame, title: str = "A matrix") -> Image.Image:
    return Image.open(io.BytesIO(card(table, title))).convert("RGB")


def test_the_picture_is_of_the_size_and_the_same_for_the_same_cells() -> None:
    table = make_frame(records())
    assert pixels(table).size == (WIDTH, HEIGHT)
    assert card(table, "A matrix") == card(table, "A matrix")
    assert card(table, "A matrix") != card(table, "Another")


def test_it_shows_what_works_and_what_does_not() -> None:
    table = make_frame(records())
    works, refused = (0, 158, 115), (213, 94, 0)
    colours = {colour: count for count, colour in pixels(table).getcolors(1 << 20) or ()}
    # Two topics; two tools support everything and one nothing: all fields have one size.
    assert colours[works] == pytest.approx(2 * colours[refused], rel=0.02)
    only_bad = table[table["backend"] == "numba"]
    assert works not in {colour for _, colour in pixels(only_bad).getcolors(1 << 20) or ()}


@pytest.mark.parametrize("title", [HOSTILE, "", "一" * 40])
def test_any_title_and_a_report_without_answers_are_drawn(title: str) -> None:
    assert pixels(make_frame(records()[:1]), title).size == (WIDTH, HEIGHT)
    assert pixels(make_frame([], [{**records()[0]}]), title).size == (WIDTH, HEIGHT)


def test_what_it_says_is_said_in_words_too() -> None:
    assert described(make_frame(records()), "Ours") == "Ours: 12 cells; 8 build, 4 surprise"


def tags(page: str) -> dict[str, str]:
    return dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)">', page))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("card")
    with RecordWriter(folder / "r.jsonl", plan()) as writer:
        for item in records():
            writer.append(item)
    return folder


def test_pages_name_the_picture_by_its_whole_address(made: Path) -> None:
    out = made / "html"
    build_report([made / "r.jsonl"], out, address="https://example.org/x", title="What <we> use")
    first = tags((out / "index.html").read_text())
    assert first["og:title"] == first["og:site_name"] == "What &lt;we&gt; use"
    assert first["og:url"] == "https://example.org/x/index.html"
    assert first["og:image"] == f"https://example.org/x/{NAME}"
    assert first["og:image:alt"] == "What &lt;we&gt; use: 12 cells; 8 build, 4 surprise"
    assert (out / NAME).read_bytes().startswith(b"\x89PNG")
    case = tags((out / "cases" / "atomics-add.html").read_text())
    assert case["og:title"] == "Fragments of every shape"
    assert case["og:description"] == "NVRTC: builds, CuPy: builds, Numba: 0 of 1"
    assert case["og:url"] == "https://example.org/x/cases/atomics-add.html"
    for page in out.glob("*.html"):
        assert "What &lt;we&gt; use" in page.read_text().partition("</title>")[0]


def test_without_an_address_it_lies_beside_the_page(made: Path) -> None:
    out = made / "plain"
    build_report([made / "r.jsonl"], out, address="javascript:alert(1)")
    assert tags((out / "index.html").read_text())["og:image"] == NAME
    case = tags((out / "cases" / "atomics-add.html").read_text())
    assert case["og:image"] == f"../{NAME}"
    assert "og:url" not in case
