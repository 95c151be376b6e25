"""Reading without JavaScript, with a screen reader, on paper, in the dark, on a small screen; and the size of the page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.records.parquet import results_parquet
from harness.report.build import build_report

from .browsing import Visit, settled
from .site_builders import cells

PAGES = (
    "matrix.html",
    "index.html",
    "support.html",
    "disagreements.html",
    "changes.html",
    "history.html",
    "coverage.html",
    "pictures.html",
)
if TYPE_CHECKING:
    from playwright.sync_api import Page

MB = 1_000_000


def test_everything_can_be_read_without_javascript(visit: Visit) -> None:
    page = visit(script=False)
    assert page.locator("#explorer").is_hidden()
    assert "each case has a page of its own" in page.inner_text("main")
    assert "not as expected" in page.inner_text(".lead")
    page.click("#cases ~ details a:has-text('wmma/fragments')")
    assert page.inner_text("h1") == "Fragments of every shape"
    assert page.inner_text(".lead") == "wmma/fragments"
    told = page.locator("details.outcome", has=page.locator("summary", has_text="crashed"))
    assert "crashed at compile, by signal 11 (SIGSEGV)" in " ".join((told.text_content() or "").split())
    for name in PAGES[1:]:
        page.click(f"nav a[href$='{name}']")
        assert len(page.inner_text("main")) > 100


@pytest.mark.parametrize("name", ["index.html", "pictures.html"])
def test_pages_are_one_line_on_a_phone_with_the_shown_one_in_view(visit: Visit, name: str) -> None:
    page = visit(name, script=False, viewport={"width": 390, "height": 844})
    links = page.locator("header nav a")
    boxes = [link.bounding_box() for link in links.all()]
    assert len({box and box["y"] for box in boxes}) == 1
    assert sum(box["width"] for box in boxes if box) > 390
    shown = page.locator("header nav a[aria-current]").bounding_box()
    assert shown is not None
    assert shown["x"] >= 0
    assert shown["x"] + shown["width"] <= 390
    links.last.focus()
    last = links.last.bounding_box()
    assert last is not None
    assert last["x"] + last["width"] <= 390


def test_statements_and_disagreements_are_searched(visit: Visit) -> None:
    page = visit("support.html")
    statements = page.locator("li[data-kind]")
    all_of_them = statements.count()
    page.fill("#find", "fragments NUMBA crashes")
    settled(page)
    assert page.inner_text("#found") == f"1 of {all_of_them}"
    assert page.locator("li[data-kind]:visible").inner_text().startswith("in part")
    assert [page.get_attribute(f"section >> nth={at}", "hidden") is None for at in range(3)].count(True) == 1
    page.select_option("#backend", "nvrtc")
    settled(page)
    assert page.inner_text("#found") == f"0 of {all_of_them}"
    page.fill("#find", "")
    page.select_option("#kind", "built")
    settled(page)
    assert page.locator("li[data-kind]:visible .badge").all_inner_texts() == ["builds"]
    assert page.evaluate("location.hash") == "#backend=nvrtc&kind=built"
    page = visit("disagreements.html#find=numba+crashed")
    shown = page.locator("li[data-kind]:visible")
    assert 0 < shown.count() < page.locator("li[data-kind]").count()
    assert all("numba" in text and "crashed" in text for text in shown.all_inner_texts())


@pytest.mark.slow
def test_statements_disagreements_changes_history_and_coverage_say_what_happened(visit: Visit) -> None:
    assert "builds on sm_75–sm_90, compute_80, crashes at compile on sm_90a" in visit("support.html").inner_text("main")
    sides = visit("disagreements.html").inner_text("main")
    assert "rejected at compile" in sides
    assert "incomplete type is not allowed" in sides
    page = visit("changes.html")
    row = page.locator("tbody tr").first.locator("td").all_inner_texts()
    assert row[2:4] == ["2", "0"]
    page.locator("section a:has-text('numba@0.59.0')").first.click()
    page.wait_for_selector("#cell section")
    assert "crashed at compile" in page.inner_text("#cell")
    history = visit("history.html").inner_text("main")
    assert "run-1" in history
    assert "2026-01-02 12:00" in history
    coverage = visit("coverage.html").inner_text("main")
    assert "3 cells" in coverage
    assert "never planned" in coverage


CELL = "matrix.html#cell=wmma/fragments;shape=m16n16k8;numba;0.59.0;12.4;sm_90a"
ALL_PAGES = (*PAGES, "cases/wmma-fragments.html", "features/wmma-fragments.html", CELL)


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        *((address, "light") for address in ALL_PAGES),
        # All pages use the colours of one style sheet: between two nights, the pages with most kinds of elements suffice.
        *(
            pytest.param(address, "dark", marks=() if address in ("index.html", CELL) else pytest.mark.slow)
            for address in ALL_PAGES
        ),
    ],
)
def test_accessibility_has_no_violations(visit: Visit, address: str, scheme: str) -> None:
    page = visit(address, color_scheme=scheme, bypass_csp=True)
    if "cell=" in address:
        page.wait_for_selector("#cell section")
        page.click("summary:has-text('backend')")
        page.click("summary:has-text('Help')")
    check_accessibility(page)


@pytest.mark.parametrize(
    "address", ["index.html", "matrix.html", "matrix.html#fold=*&across=none&down=topic,case,backend"]
)
def test_accessibility_has_no_violations_on_a_narrow_screen(visit: Visit, address: str) -> None:
    check_accessibility(visit(address, viewport={"width": 390, "height": 844}, bypass_csp=True))


def check_accessibility(page: Page) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    # Browsers lay out, and axe checks, hidden parts only on request.
    page.add_style_tag(content="* { content-visibility: visible !important }")
    rules = {"label-content-name-mismatch": {"enabled": True}}
    results = axe.Axe().run(page, options={"preload": False, "rules": rules})
    assert results.violations_count == 0, results.generate_report()
    assert len(results.response["passes"]) > 10


@pytest.mark.parametrize("address", [*PAGES, "cases/wmma-fragments.html"])
def test_small_screens_scroll_in_one_direction(visit: Visit, address: str) -> None:
    page = visit(address, viewport={"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_paper_gets_the_whole_table(visit: Visit) -> None:
    page = visit()
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tbody td.c").count() >= len(cells())
    assert page.locator(".query").is_hidden()


def test_paper_gets_what_the_filter_selects_and_no_more(visit: Visit) -> None:
    page = visit()
    page.emulate_media(media="print")
    assert page.locator("#cases").is_visible()
    page = visit("matrix.html#q=backend+==+%22numba%22")
    page.emulate_media(media="print")
    assert page.locator("#explorer tbody td.c").first.is_visible()
    assert not any(section.is_visible() for section in page.locator("main > section:not(#explorer)").all())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a report of 20,000 generated cells."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    from made_up import made_up, made_up_plan

    folder = tmp_path_factory.mktemp("large")
    records = list(made_up(20_000))
    (folder / "r.parquet").write_bytes(results_parquet(records, [made_up_plan(records)]))
    build_report([folder / "r.parquet"], folder / "html")
    return folder / "html"


@pytest.mark.slow
def test_first_load_of_many_cells_is_small(large: Path) -> None:
    first = [large / "matrix.html", large / "data" / "matrix.js", *(large / "assets").iterdir()]
    assert sum(path.stat().st_size for path in first) < 3 * MB / 5
    assert max(path.stat().st_size for path in (large / "data").iterdir()) < MB


@pytest.mark.slow
def test_many_cells_are_all_there_and_only_those_in_view_are_drawn(visit: Visit, large: Path) -> None:
    page = visit(folder=large)
    assert page.inner_text("#status") == "20,000 cells"
    page.select_option("#across", "backend,library,toolkit,target")
    page.click("#unfold") if page.locator("#unfold").is_visible() else None
    assert page.locator("tbody td.c").count() < 8_000
    assert page.get_attribute("#viewport table", "aria-colcount") == "251"
    page.focus("#viewport [tabindex='0']")
    page.keyboard.press("Control+End")
    focused = "document.activeElement.getAttribute('aria-colindex')"
    assert page.evaluate(focused) == "251"
    # Drawing ahead replaces the elements a moment later: the focus stays.
    settled(page)
    assert page.evaluate(focused) == "251"
    page.keyboard.press("Enter")
    page.wait_for_selector("#cell section")
    page.fill("#q", '"case-003" in case and target == "sm_90"')
    page.wait_for_function("document.querySelector('#status').textContent === '200 of 20,000 cells'")
