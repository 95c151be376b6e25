"""The page "Which GPU runs what", and answers about packages in the question field."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from record_builders import cell, plan, record
from wheels_builders import PACKAGES, library, package

from harness.answers.wheels import WheelReplies
from harness.records import RecordWriter
from harness.report.build import build_report
from harness.report.gpus import wheels_schema
from harness.report.publish import publish
from harness.wheels.published import WHEELS, packed

from .browsing import Visit, settled
from .site_builders import HOSTILE
from .test_browser_reading import check_accessibility

CASES = Path(__file__).parents[2] / "cases"
BAD = replace(package(HOSTILE, "bad", v1_0=(library(HOSTILE, "sm_80"), library("b.so", "sm_90"))), source=HOSTILE)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a report of a published matrix with wheels, including a hostile one."""
    folder = tmp_path_factory.mktemp("gpus")
    of = cell(backend="nvrtc", library="", toolkit="13.0", target="sm_90")
    with RecordWriter(folder / "theirs.jsonl", plan(of)) as writer:
        writer.append(record(of))
    publish([folder / "theirs.jsonl"], folder / "matrix", CASES)
    (folder / "matrix" / WHEELS).write_bytes(packed([*PACKAGES, BAD]))
    build_report([], folder / "html", published=folder / "matrix")
    return folder / "html"


def test_packages_by_gpu(visit: Visit, page: Path) -> None:
    shown = visit("index.html", folder=page)
    shown.click("nav a:has-text('GPUs')")
    rows = shown.locator("table tbody tr")
    told = {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows.all()}
    assert told["cupy-cuda12x 14.0.0"] == ["no", "native", "native", "no", "no", "no", "no", *(f"JIT {driver}" for driver in (570, 570, 575, 580, 570, 575))]  # fmt: skip
    assert told["vllm 0.2.0"][3:5] == ["in part", "in part"]
    text = shown.inner_text("main")
    assert "sm_120, sm_121: in part, 1 of 2 libraries, since 0.2.0" in text
    assert "so the build decides: flash-attn 9.0" in text
    shown.fill("#find", "cupy native")
    settled(shown)
    assert shown.inner_text("#found") == "2 of 4"
    assert rows.filter(visible=True).count() == 2


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible(visit: Visit, page: Path, width: int, scheme: str) -> None:
    shown = visit("gpus.html", folder=page, viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)  # fmt: skip
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    check_accessibility(shown)


def test_it_can_be_read_without_javascript(visit: Visit, page: Path) -> None:
    assert "in part" in visit("gpus.html", folder=page, script=False).inner_text("table")


def test_the_question_field_says_what_ask_says(visit: Visit, page: Path) -> None:
    shown = visit("index.html#ask=does+vllm+run+on+5090", folder=page)
    reply = WheelReplies(PACKAGES).of("runs vllm 120")
    assert reply
    assert shown.inner_text("#sentence") == reply.sentence
    assert "b.so: no SASS for 12.x, no PTX" in shown.inner_text("#answers")
    assert shown.locator("#chips li small").all_inner_texts() == ["package", "architecture"]
    shown.click("#answers a[href='gpus.html#vllm']")
    assert shown.inner_text("h1") == "Which GPU runs what"
    older = visit("index.html#ask=vllm+0.1.0+on+h100", folder=page)
    assert older.inner_text("#sentence") == 'Not here: cumatrix ask "vllm 0.1.0 on h100"'


def test_the_document_is_that_of_its_schema(page: Path) -> None:
    value = json.loads((page / "api/v1/wheels.json").read_bytes())
    jsonschema.validate(value, wheels_schema())
    vllm = next(each for each in value["packages"] if each["name"] == "vllm")
    assert [outcome["versions"] for outcome in vllm["outcomes"]] == [["0.2.0"], ["0.1.0"]]
    assert vllm["since"] == {"0.1.0": ["sm_80", "sm_86", "sm_89", "sm_90"], "0.2.0": ["sm_120", "sm_121"]}
    assert not any("\x1b" in each["name"] + each["source"] for each in value["packages"])


def test_a_report_with_the_page_is_replaced(page: Path) -> None:
    before = (page / "gpus.html").stat().st_ino
    build_report([], page, published=page.parent / "matrix")
    assert (page / "gpus.html").stat().st_ino != before
