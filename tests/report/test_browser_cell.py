"""The page of a cell in a real browser; hostile texts have no effect."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from record_builders import cell, changed, plan, record, rejected

from harness.protocol.text import clean
from harness.records import Record, RecordWriter
from harness.report.build import build_report

from .browsing import Visit
from .site_builders import HOSTILE, cells

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CELL = "matrix.html#cell=wmma/fragments;shape=m16n16k8;{}"
TOLD = clean(HOSTILE)


def panel(page: Page) -> str:
    page.wait_for_selector("#cell section, #cell [role=alert]")
    return " ".join(page.inner_text("#cell").split())


def test_cell_tells_everything_that_is_known(visit: Visit) -> None:
    text = panel(visit(CELL.format("cupy-jitify;12.3.0;12.4;sm_80")))
    for words in (
        "known failure",
        "wmma/fragments [shape=m16n16k8] cupy-jitify 12.3.0 · CUDA 12.4 · sm_80",
        "compile stopped here assemble not run",
        "Outcome rejected at compile",
        "Expected rejected, a known failure told upstream https://example.com/1",
        "error 70 incomplete type is not allowed kernel.cu:12",
        "▶ 12 __global__ void kernel() { <b>tile</b> } error: incomplete type is not allowed 13 // end",
        "Known cause",
        "Remedy:",
        "kernel.cu(12): error: incomplete type is not allowed",
        "cumatrix run wmma/fragments -b cupy-jitify -t 12.4 -a sm_80 --no-cache --where 'variant == \"shape=m16n16k8\"'",
        "What Requested Observed",
        "nvrtc – 12.4.127",
        "library 12.3.0 –",
        "Run run-2",
    ):
        assert words in text, words


def test_cell_says_what_to_do_next(visit: Visit) -> None:
    page = visit(CELL.format("cupy-jitify;12.3.0;12.4;sm_80"))
    panel(page)
    steps = page.locator("details.next")
    assert steps.locator("summary").all_inner_texts() == [
        "Show it without cumatrix",
        "Try your own program",
        "Find out since when",
        "Report it upstream",
        "Change what is expected",
    ]
    steps.nth(3).locator("summary").click()
    address = urlsplit(steps.locator("a").get_attribute("href") or "")
    assert f"{address.scheme}://{address.netloc}{address.path}" == "https://github.com/cupy/cupy/issues/new"
    asked = parse_qs(address.query)
    assert asked["title"][0].startswith("incomplete type is not allowed (cupy-jitify 12.3.0 · CUDA 12.4 · sm_80)")
    assert "__global__ void kernel() { <b>tile</b> }" in asked["body"][0]
    # A built cell is nothing to report, and NVRTC has no tracker.
    page = visit(CELL.format("nvrtc;;12.4;sm_80"))
    assert "Find out since when" in panel(page)
    assert "Report it upstream" not in panel(page)
    page = visit("matrix.html#cell=zz/hostile;;cupy-nvrtc;13.6.0;12.4;sm_80")
    panel(page)
    page.locator("details.next summary:has-text('Report')").click()
    assert "javascript:" not in (page.locator("details.next a").get_attribute("href") or "")


def test_resources_history_and_unknown_facts_are_shown(visit: Visit) -> None:
    text = panel(visit(CELL.format("numba;0.59.0;12.4;sm_90a")))
    assert "crashed at compile, by signal 11 (SIGSEGV)" in text
    assert "History C crashed at compile 2026-01-02, run run-2 ✓ built 2026-01-01, run run-1" in text
    page = visit(CELL.format("nvrtc;;12.4;sm_80"))
    assert "cubin for sm_80, 4,312 bytes" in panel(page)
    cells = page.locator("#cell table").first.locator("tr").all_inner_texts()
    assert [text.split() for text in cells] == [
        ["Kernel", "Registers", "Shared", "Spills", "Tensor", "cores"],
        ["kernel", "40", "1,024", "0", "none"],
    ]
    assert "novelty libraries cutlass 3.5" in panel(visit(CELL.format("nvrtc;;12.4;sm_75")))


def test_missing_cell_says_so(visit: Visit) -> None:
    text = panel(visit("matrix.html#cell=atomics/add;;nvrtc;;12.4;compute_80"))
    assert "planned, but no record of it ever arrived" in text
    assert "cumatrix run atomics/add -b nvrtc -t 12.4 -a compute_80" in text


def test_clicking_opens_and_the_link_is_in_the_address(visit: Visit) -> None:
    page = visit('matrix.html#q=topic == "atomics"')
    page.locator("tbody td[aria-label='not available']").first.click()
    assert "CuPy 13.6.0 is not installed" in panel(page)
    assert page.url.endswith("#q=topic+==+%22atomics%22&cell=atomics/add;;cupy-nvrtc;13.6.0;12.4;sm_75")
    assert page.locator("td[aria-selected=true]").count() == 1
    page.go_back()
    page.wait_for_selector("#cell", state="hidden")
    page.go_forward()
    page.wait_for_selector("#cell section")
    page.click("#cell .close")
    page.wait_for_selector("#cell", state="hidden")
    assert page.url.endswith("#q=topic+==+%22atomics%22")


def test_place_that_stands_for_several_lists_them(visit: Visit) -> None:
    page = visit('matrix.html#q=topic+==+"wmma"+and+backend+==+"numba"&across=backend')
    page.locator("tbody td.c:not(.open)").first.click()
    assert page.inner_text("#cell h2").strip() == "5 cells"
    links = page.locator("#cell a")
    links.first.click()
    assert "crashed at compile" in panel(page)


def test_data_that_is_gone_is_told(visit: Visit, site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "html"
    shutil.copytree(site, folder)
    for path in (folder / "data").glob("cells-*.js"):
        path.unlink()
    page = visit("matrix.html", folder=folder, may_say="ERR_FILE_NOT_FOUND")
    page.locator("tbody td[aria-label=built]").first.click()
    page.wait_for_selector("#cell [role=alert]")
    assert "data/cells-0.js cannot be loaded" in page.inner_text("#cell")


def test_hostile_texts_are_shown_and_do_nothing(visit: Visit) -> None:
    page = visit("matrix.html#cell=zz/hostile;;cupy-nvrtc;13.6.0;12.4;sm_80")
    text = panel(page)
    shown = " ".join(TOLD.split())
    # Message, excerpt, log, command, note, reason, versions by name and value, expectation.
    assert text.count(shown) >= 8
    assert "javascript:alert(4)" in text
    assert page.locator("a[href^=javascript]").count() == 0
    assert page.locator("#cell img, #cell script").count() == 0
    assert page.evaluate("({}).x") is None
    page.fill("#q", '"<img src=x onerror=alert(5)>"')
    page.wait_for_selector("#nothing:not([hidden])")
    page.fill("#q", "title == ")
    page.hover("#q-list [role=option] >> nth=-1")
    page.fill("#q", '"hostile" in case')
    page.hover("tbody td[aria-label='not as expected']")


@pytest.mark.parametrize(
    "name", ["support", "disagreements", "changes", "history", "coverage", "pictures", "cases/zz-hostile"]
)
def test_hostile_texts_do_nothing_on_other_pages(visit: Visit, name: str) -> None:
    page = visit(f"{name}.html")
    assert page.locator("img, script:not([src^='assets/'])").count() == 0
    if name in ("support", "cases/zz-hostile"):
        assert "<img src=x onerror=alert(2)>" in page.inner_text("main")


def test_policy_refuses_scripts_and_markup(browser: Browser, site: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site.as_uri()}/matrix.html")
    page.wait_for_selector("html[data-ready]")
    page.evaluate("""async () => {
        window.acted = [];
        const ended = [];
        const end = (element, number) => ended.push(new Promise((resolve) => {
            element.onload = () => { acted.push(number); resolve(); };
            element.onerror = resolve;
        }));
        const inline = document.createElement('div');
        try { inline.setAttribute('onclick', 'acted.push(1)'); } catch {}
        document.body.append(inline);
        inline.click();
        try { document.body.innerHTML += '<b>x</b>'; acted.push(2); } catch {}
        try { const script = document.createElement('script'); script.textContent = 'acted.push(3)'; document.head.append(script); } catch {}
        try { const script = document.createElement('script'); script.src = 'data:text/javascript,acted.push(4)'; end(script, 4); document.head.append(script); } catch {}
        const image = new Image();
        end(image, 5);
        image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=';
        await Promise.all(ended);
    }""")
    assert page.evaluate("acted") == []
    context.close()


def test_every_cell_can_be_linked_to(visit: Visit) -> None:
    page = visit()
    found = page.evaluate("""async () => {
        const matrix = new Matrix(await cumatrix.load('matrix'));
        return [...Array(matrix.size).keys()].map(cell => matrix.find(matrix.address(cell)) === cell);
    }""")
    assert len(found) == len(cells())
    assert all(found)


def test_what_other_runs_told_and_how_to_try_a_program_again(visit: Visit, tmp_path: Path) -> None:
    program = {"case": "kernel.cu", "variant": "-std=c++17 '-DX=a b'", "program": "3fa9c1000000"}
    name = "kernel.cu[-std=c++17 '-DX=a b'] cupy-nvrtc@13.6.0 cuda12.4 sm_80"
    runs = [
        changed(record(run="old"), **program, cell=name),
        changed(record(outcome=rejected(HOSTILE), run="new"), **program, cell=name),
    ]
    plans = [plan(run="old", day=1), plan(run="new", day=2)]
    for item, planned in zip(runs, plans, strict=True):
        with RecordWriter(tmp_path / f"{item['run']}.jsonl", planned) as writer:
            writer.append(item)
    build_report([tmp_path], tmp_path / "html")
    cell = quote("kernel.cu;-std=c++17 '-DX=a b';cupy-nvrtc;13.6.0;12.4;sm_80")
    text = panel(visit(f"matrix.html#cell={cell}", folder=tmp_path / "html"))
    assert "Other runs built in run old" in text
    assert "cumatrix try kernel.cu -std=c++17 '-DX=a b' -b cupy-nvrtc -t 12.4 -a sm_80 --no-cache" in text
    assert "cumatrix run" not in text


def test_a_cell_says_both_where_a_device_tells_something_else(visit: Visit, tmp_path: Path) -> None:
    virtual = record(cell(target="sm_90"), run="one")
    device = {"virtual": False, "name": "NVIDIA H200"}
    real: Record = {**record(cell(target="sm_90"), rejected(), run="one"), "device": device}
    with RecordWriter(tmp_path / "one.jsonl", plan(cell(target="sm_90"), run="one")) as writer:
        writer.append({**virtual, "device": {"virtual": True}})
        writer.append({**real, "cell": f"{real['cell']} on NVIDIA H200"})
    build_report([tmp_path], tmp_path / "html")
    name = quote("wmma/fragments;;cupy-nvrtc;13.6.0;12.4;sm_90")
    text = panel(visit(f"matrix.html#cell={name}", folder=tmp_path / "html"))
    assert "Outcome rejected at compile" in text
    assert "Other runs built without a device in run one" in text
