"""The matrix in a real browser: filters, addresses, pivots, keyboard."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from .browsing import Visit, settled
from .site_builders import cells, records

if TYPE_CHECKING:
    from playwright.sync_api import Page

ALL = len(cells())


def count(page: Page) -> int:
    """Return the number of cells that the page claims to show."""
    found = re.match(r"([\d,]+)", page.inner_text("#status"))
    assert found is not None
    return int(found[1].replace(",", ""))


def fill(page: Page, query: str) -> int:
    page.fill("#q", query)
    page.keyboard.press("Enter")
    page.wait_for_function(
        """query => decodeURIComponent(location.hash.replaceAll('+', ' ')).replace(/^#/, '').startsWith(query ? `q=${query}` : '')
            && (query || !location.hash.includes('q='))
            && !document.querySelector('#status').textContent.includes('loading')""",
        arg=query,
    )
    return count(page)


def number(**wanted: str) -> int:
    return sum(all(dict(item)[key] == value for key, value in wanted.items()) for item in records())


# Counted by hand from `site_builders`: 50 cells of wmma/fragments (2 shapes, 5 toolchains, 5 targets), 15 of atomics/add
# (3 toolchains; the 3 of compute_80 never arrived) and 1 of zz/hostile.
@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", 66),
        ('backend == "nvrtc"', 20 + 10),
        ('backend in ("nvrtc", "numba") and status == "built"', 16 + 8 + 8),
        ('status in ("rejected", "crashed")', 10 + 4 + 2 + 1),
        ('"8.0" <= cc <= "9.0" and suffix == "" and not virtual', 20 + 6 + 1),
        ('library >= "13" and headers < "13"', 10 + 5 + 1),
        ('library < "13"', 20),
        ("not expected", 4 + 4 + 4 + 3 + 1),
        ('mark == "crashed"', 2),
        ('"wmma/" in case', 50),
        ('topic == "atomics" or verdict == "xfail"', 15 + 8),
        ('(topic == "atomics" or verdict == "xfail") and backend == "nvrtc"', 10),
        ("registers > 64", 4),
        ("tensor_cores == 0", 14),
        ('"HMMA" in tensor_cores', 6),
        ('"incomplete" in message', 10),
        ("incomplete type", 10),
        ('"incomplete type"', 10),
    ],
)
def test_queries_choose_what_they_say(visit: Visit, query: str, shown: int) -> None:
    assert fill(visit(), query) == shown


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('bakend == "numba"', "character 1: unknown name 'bakend' (did you mean \"backend\"?)"),
        ('(status == "built"', "something is missing at its end"),
        ('cc >= "ampere"', "cc >= 'ampere' is not a comparison of versions (PEP 440)"),
        ('registers == "many"', "registers is a number"),
        ("backend:nvrtc", 'write backend == "…" instead of backend:…'),
    ],
)
def test_query_that_cannot_be_read_is_told_and_changes_nothing(visit: Visit, query: str, said: str) -> None:
    page = visit('matrix.html#q=backend == "numba"')
    page.fill("#q", query)
    page.wait_for_function("said => document.querySelector('#status').textContent.includes(said)", arg=said)
    assert page.get_attribute("#q", "aria-invalid") == "true"
    assert page.locator("tbody tr.leaf").count() == 2


def test_hostile_and_half_written_queries_do_no_harm(visit: Visit) -> None:
    page = visit()
    for query in (
        '"',
        "-",
        "a:",
        "backend ==",
        "::",
        "((((",
        "std::size_t",
        "<script>",
        "\\",
        "*",
        "target in (",
        "message == [",
        "🙂" * 50,
    ):
        page.fill("#q", query)
        page.keyboard.press("Enter")
    assert fill(page, "") == ALL


def test_counts_beside_filters_follow_and_tell_what_choosing_would_give(visit: Visit) -> None:
    page = visit()
    page.click("summary:has-text('backend')")
    choice = page.locator("details.facet:has(summary:has-text('backend')) label:has-text('nvrtc')").first
    assert choice.inner_text().split() == ["nvrtc", str(sum(c.toolchain.backend == "nvrtc" for c in cells()))]
    choice.click()
    assert page.input_value("#q") == 'backend == "nvrtc"'
    other = page.locator("details.facet label:has-text('numba')").first
    # Another backend would extend the selection: its count ignores the selection of backends.
    assert other.inner_text().split() == ["numba", str(number(backend="numba"))]
    other.click()
    assert page.input_value("#q") == 'backend in ("nvrtc", "numba")'
    choice.click()
    assert page.input_value("#q") == 'backend == "numba"'
    status = page.locator("details.facet:has(summary:has-text('status'))")
    status.locator("summary").click()
    assert status.locator("label:has-text('crashed')").inner_text().split() == ["crashed", "2"]
    assert page.locator("#legend button:has-text('crashed')").inner_text().split()[1] == "2"
    page.click("#legend button:has-text('crashed')")
    assert page.input_value("#q") == 'backend == "numba" and mark == "crashed"'
    assert count(page) == 2
    page.click("#clear")
    assert count(page) == ALL


def test_parameters_are_filtered_for_and_grouped_by(visit: Visit) -> None:
    page = visit()
    facet = page.locator("details.facet:has(summary:has-text('shape'))")
    assert facet.is_visible()  # most cells have one of two shapes
    of_shape = sum(bool(c.variant.labels) for c in cells())
    assert fill(page, 'shape == "m16n16k16"') == of_shape // 2
    facet.locator("summary").click()
    facet.locator("label:has-text('m16n16k8')").click()
    assert page.input_value("#q") == 'shape in ("m16n16k16", "m16n16k8")'
    assert fill(page, '"m16" in shape') == of_shape
    assert fill(page, 'not "k" in shape') == ALL - of_shape
    # Without a shape there is no filter for it.
    assert fill(page, 'topic == "atomics"') == sum(c.case.topic == "atomics" for c in cells())
    assert not facet.is_visible()
    fill(page, "")
    page.select_option("#across", label="By shape")
    settled(page)
    headings = page.locator("#viewport thead .leaf").all_inner_texts()
    assert headings == ["shape=m16n16k8", "shape=m16n16k16", "no shape"]
    page.select_option("#across", "backend")
    settled(page)
    page.select_option("#down", label="By shape, each with its cases")
    settled(page)
    groups = page.locator("#viewport tr.depth0 th").all_inner_texts()
    assert [text.strip("▾▸ ") for text in groups] == ["shape=m16n16k8", "shape=m16n16k16", "no shape"]
    assert page.evaluate("location.hash") == "#down=shape,case,variant&across=backend"
    page.locator("#viewport tr.depth0 th").first.click()
    settled(page)
    assert page.locator("#viewport tr.depth0").first.get_attribute("aria-expanded") == "false"


def test_completion_offers_names_and_values_and_is_taken_by_keyboard(visit: Visit) -> None:
    page = visit()
    page.focus("#q")
    page.keyboard.type("back")
    options = page.locator("#q-list [role=option]")
    assert options.first.inner_text().startswith("backend ==")
    assert page.get_attribute("#q", "aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    assert page.get_attribute("#q", "aria-activedescendant") == "offer-0"
    page.keyboard.press("Enter")
    page.keyboard.type('"num')
    assert [text.strip() for text in options.all_inner_texts()] == ['"numba"']
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.input_value("#q") == 'backend == "numba" '
    page.keyboard.type("and targ")
    options.first.click()
    assert page.input_value("#q") == 'backend == "numba" and target == '
    page.keyboard.press("Escape")
    assert page.locator("#q-list").is_hidden()
    page.keyboard.press("Escape")
    assert page.input_value("#q") == ""


def test_every_state_is_in_the_address_and_comes_back_from_it(visit: Visit) -> None:
    page = visit()
    fill(page, 'backend in ("numba", "nvrtc") and "a&b=c%" in text or topic == "wmma"')
    page.select_option("#across", "target,backend,library,toolkit")
    page.click("tbody tr.group th >> nth=1")
    page.locator("tbody td[aria-label=built]").first.click() if page.locator(
        "tbody td[aria-label=built]"
    ).count() else None
    address = page.url
    shown = settled(page).inner_text("#viewport")
    again = visit("matrix.html#" + address.partition("#")[2])
    assert again.input_value("#q") == 'backend in ("numba", "nvrtc") and "a&b=c%" in text or topic == "wmma"'
    assert again.input_value("#across") == "target,backend,library,toolkit"
    assert again.inner_text("#viewport") == shown
    assert again.url == address


def test_back_and_forward_go_through_what_was_chosen(visit: Visit) -> None:
    page = visit()
    page.select_option("#across", "target")
    page.click("#swap")
    assert page.input_value("#down") == "target"
    assert page.locator("tbody th").first.inner_text() == "sm_75"
    page.go_back()
    page.wait_for_function("document.querySelector('#across').value === 'target'")
    page.go_back()
    page.wait_for_function("document.querySelector('#across').value === 'backend,library,toolkit,target'")
    page.go_forward()
    page.wait_for_function("document.querySelector('#across').value === 'target'")


def test_the_corner_says_what_the_rows_are(visit: Visit) -> None:
    page = visit()
    for down, corner in (("topic,case", "Case"), ("topic", "Topic"), ("topic,case,variant", "Case, variant")):
        page.select_option("#down", down)
        assert page.inner_text(".matrix .corner") == corner
    page.click("#swap")
    assert page.inner_text(".matrix .corner") == "Backend, version, CUDA, target"


@pytest.mark.parametrize(
    "address", ["#q=%", "#down=x&across=y", "#down=case&across=case", "#cell=nothing", "#fold=a;b/c", "#a=b"]
)
def test_addresses_that_mean_nothing_show_everything(visit: Visit, address: str) -> None:
    page = visit(f"matrix.html{address}")
    assert page.locator("tbody tr").count() > 1
    if "cell" in address:
        assert "No such cell" in page.inner_text("#cell")


@pytest.mark.slow
def test_pivots_gather_cells_and_lose_none(visit: Visit) -> None:
    page = visit()
    for down in ("topic,case,variant", "topic,case", "topic"):
        page.select_option("#down", down)
        for across in page.eval_on_selector_all("#across option", "options => options.map(option => option.value)"):
            page.select_option("#across", across)
            settled(page)
            labels = page.eval_on_selector_all(
                "tbody tr[role=row] td:not(.open)", "cells => cells.map(c => c.getAttribute('aria-label'))"
            )
            told = [
                int(label.split()[0].replace(",", "")) if " cells:" in label else 1
                for label in labels
                if label and label != "not run"
            ]
            assert sum(told) == ALL, (down, across)


def test_kinds_tell_not_run_not_applicable_missing_and_unexpected_apart(visit: Visit) -> None:
    page = visit()
    for name in (
        "not run",
        "not applicable",
        "missing",
        "unexpectedly built",
        "crashed",
        "not available",
        "known failure",
    ):
        assert page.locator(f"tbody td[aria-label='{name}']").count(), name
    shapes = {
        name: page.locator(f"tbody td[aria-label='{name}']").first.evaluate(
            "m => [getComputedStyle(m).backgroundImage, getComputedStyle(m).outlineStyle, getComputedStyle(m).backgroundColor].join()"
        )
        for name in ("built", "not applicable", "missing", "crashed")
    }
    assert len(set(shapes.values())) == 4
    assert not page.locator("tbody td.c *").count(), "thousands of squares: each is one element"
    assert "linear-gradient" in shapes["crashed"], "cut at the corners"
    assert "linear-gradient" not in shapes["built"]
    assert "dashed" in shapes["missing"]


def test_a_square_shows_its_architectures_unless_they_are_columns(visit: Visit) -> None:
    page = visit("matrix.html#across=backend,library,toolkit")
    small = page.locator("tbody td.small")
    assert small.count() > 3
    assert page.locator("#small").is_visible()
    square = page.locator("tbody tr.leaf td.small").first
    assert square.inner_text() == ""
    label = str(square.get_attribute("aria-label"))
    assert re.fullmatch(r"5 cells: \d .*", label)
    assert "linear-gradient" in square.evaluate("square => getComputedStyle(square).backgroundImage")
    square.hover()
    title = str(square.get_attribute("title"))
    assert label in title
    assert "built: sm_90a, sm_90, sm_80, sm_75" in title.splitlines()
    square.click()
    assert page.locator("#cell li").count() >= 5
    page = visit("matrix.html#across=target")
    assert page.locator("tbody td.small").count() == 0
    assert page.locator("#small").is_hidden()
    assert page.locator("tbody td.many").first.inner_text()


def test_a_narrow_screen_has_a_list_of_cases(visit: Visit) -> None:
    page = visit(viewport={"width": 390, "height": 844})
    assert page.input_value("#across") == "none"
    assert page.locator("#viewport tbody th").all_inner_texts() == ["▸atomics", "▸wmma", "▸zz"]
    assert page.locator("#cases ~ details[open]").count() == 0
    page.click("#viewport tbody th:has-text('wmma')")
    settled(page)
    page.click("#viewport tbody th:has-text('wmma/fragments')")
    settled(page)
    leaves = page.locator("#viewport tbody tr.leaf")
    assert "nvrtc CUDA 12.4" in leaves.locator("th").all_inner_texts()
    assert leaves.locator("td.small").first.get_attribute("aria-label") != ""
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # The same cells on a wide screen, where a link without a view shows columns.
    wide = visit(f"matrix.html#{page.url.partition('#')[2]}")
    assert wide.input_value("#across") == "none"
    assert wide.locator("#viewport tbody th").all_inner_texts() == page.locator("#viewport tbody th").all_inner_texts()
    assert visit().locator("#cases ~ details:not([open])").count() == 0
    # A link that names a view shows that view on a narrow screen, too.
    page = visit("matrix.html#across=target", viewport={"width": 390, "height": 844})
    assert (page.input_value("#across"), page.input_value("#down")) == ("target", "topic,case,variant")


def test_keyboard_goes_everywhere(visit: Visit) -> None:
    page = visit('matrix.html#q=topic == "wmma"')
    focus = "[document.activeElement.dataset.line, document.activeElement.dataset.column ?? '-1'].join()"

    def press(*keys: str) -> str:
        for key in keys:
            page.keyboard.press(key)
        return str(page.evaluate(focus))

    assert page.locator("#viewport [tabindex='0']").count() == 1
    page.focus("#viewport [tabindex='0']")
    assert page.evaluate(focus) == "0,-1"
    assert press("ArrowDown", "ArrowDown") == "2,-1"
    assert press("ArrowRight", "ArrowRight") == "2,1"
    assert press("End") == "2,24"
    assert press("Control+Home") == "0,-1"
    assert press("Control+End") == "3,24"
    assert press("PageUp", "Home") == "0,-1"
    assert press("ArrowDown") == "1,-1"
    press("ArrowLeft")
    assert page.locator("tbody tr.leaf").count() == 0
    press("ArrowRight")
    assert page.locator("tbody tr.leaf").count() == 2
    press("ArrowDown", "ArrowRight", "ArrowRight", "Enter")
    page.wait_for_selector("#cell .stages")
    assert unquote(page.url).endswith("cell=wmma/fragments;shape=m16n16k8;nvrtc;;12.4;sm_80")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.keyboard.press("Escape")
    assert page.locator("#cell").is_hidden()
    assert page.evaluate(focus) == "2,1"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


def test_headings_stay_in_view(visit: Visit) -> None:
    page = visit("matrix.html#across=backend,library,toolkit,target", viewport={"width": 700, "height": 500})
    page.eval_on_selector("#viewport", "box => { box.scrollTop = 200; box.scrollLeft = 300; }")
    settled(page)
    places = """selectors => selectors.map(selector => {
        const { x, y } = document.querySelector(selector).getBoundingClientRect();
        return { x, y };
    })"""
    box, head, row = page.evaluate(places, ["#viewport", "thead .corner", "tbody tr.leaf th"])
    assert page.evaluate("document.querySelector('#viewport').scrollLeft") > 0
    assert abs(head["x"] - box["x"]) < 3
    assert abs(head["y"] - box["y"]) < 3
    assert abs(row["x"] - box["x"]) < 3
