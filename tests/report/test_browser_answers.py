"""The answer page in a browser: typed questions, edited chips, and the initial content."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from page_scripts import handed_over

from harness.analysis.frame import cells_frame
from harness.published import RECORDS, published_folder
from harness.records import merge
from harness.records.parquet import read_parquet
from harness.report.build import build_report
from harness.report.site import Site, front_files

from .browsing import Visit, settled

ANSWERS = Path(__file__).parents[1] / "answers"
CASES = Path(__file__).parents[2] / "cases"
UPSTREAM = tomllib.loads((ANSWERS / "upstream.toml").read_text())["question"]
QUESTIONS = tomllib.loads((ANSWERS / "questions.toml").read_text())["question"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the report of compiled cells."""
    folder = tmp_path_factory.mktemp("answers") / "html"
    build_report([ANSWERS / "cells.parquet"], folder)
    return folder


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.slow
def test_twenty_questions_are_answered_as_they_are_typed(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers)
    for question in QUESTIONS:
        page.fill("#ask", question["asked"])
        settled(page)
        columns = page.locator("#answers thead th").all_inner_texts()
        rows = page.locator("#answers tbody tr")
        feature = page.evaluate("cases => cumatrix.load('answers').then(d => d.features.find(f => f.case === cases).title)", question["case"])  # fmt: skip
        found = rows.filter(has_text=feature).filter(has_text=question.get("label", ""))
        cell = words(found.first.locator("td").nth(columns.index(question["tool"]) - 1).inner_text())
        assert cell.startswith(question["says"]), question["asked"]
        # The page puts the architectures between the statement about other versions and its qualification.
        assert all(part.removeprefix("builds ") in cell for part in question.get("note", "").split("; ")), question[
            "asked"
        ]


def test_a_verdict_leads_to_the_cells_that_show_it(visit: Visit, answers: Path) -> None:
    page = visit("index.html#ask=wgmma&on=sm_120", folder=answers)
    page.click("#answers tbody td a")
    page.wait_for_selector("html[data-ready]")
    settled(page)
    assert page.input_value("#q") == 'case == "instructions/wgmma" and backend == "nvrtc" and target == "sm_120"'
    assert page.inner_text("#status").endswith("cells")
    assert not page.inner_text("#status").startswith("0")


def test_chips_are_mended(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers)
    page.fill("#ask", "wmma cuda 13.9 Blackwell")
    settled(page)
    assert page.input_value("#on") == "sm_100"
    assert "Nothing is known as cuda 13.9; the nearest: 13.5." in page.inner_text("#sentence")
    page.click("#chips .is-unknown button:has-text('13.5')")
    settled(page)
    assert page.input_value("#ask") == "wmma cuda 13.5 Blackwell"
    assert page.locator("#chips .is-unknown").count() == 0
    page.click("#chips .is-target button:has-text('sm_120')")
    settled(page)
    assert page.input_value("#ask") == "wmma cuda 13.5 sm_120"
    page.select_option("#on", "sm_90")
    settled(page)
    assert page.input_value("#ask") == "wmma cuda 13.5 sm_90"
    page.click("[aria-label='Without cuda 13.5']")
    settled(page)
    assert page.input_value("#ask") == "wmma sm_90"
    assert page.evaluate("location.hash") == "#ask=wmma+sm_90&on=sm_90"


def test_columns_are_tools_unless_a_header_library_is_asked_for(visit: Visit, answers: Path) -> None:
    page = visit("index.html#on=sm_90", folder=answers)
    settled(page)
    headings = page.locator("#answers thead th").all_inner_texts()
    assert not [heading for heading in headings if " with " in heading]
    row = page.locator("#answers tbody tr", has_text="CUTLASS: accumulators").first
    assert "NVRTC with cutlass" in row.locator("td").nth(headings.index("NVRTC") - 1).inner_text()
    page.fill("#ask", "cutlass 3.5.1")
    settled(page)
    assert "NVRTC with cutlass" in page.locator("#answers thead th").all_inner_texts()


@pytest.mark.slow
def test_a_question_without_an_architecture_finds_one_that_was_tried(visit: Visit, tmp_path: Path) -> None:
    """The initial architecture is no part of the question."""
    build_report([ANSWERS / "cells.parquet"], tmp_path, where='case != "instructions/wgmma" or cc >= "9.0"')
    page = visit("index.html", folder=tmp_path)
    page.fill("#ask", "wgmma")
    settled(page)
    assert page.input_value("#on") == "sm_80"
    assert page.inner_text("#sentence").startswith(
        "Not tried on sm_80; this is sm_90. On sm_90: No. NVRTC: never (0 of 5) (builds on sm_90a; 0 of 3 others)."
    )
    assert page.locator("#answers tbody tr", has_text="wgmma").count() >= 1
    page.fill("#ask", "wgmma numba")
    settled(page)
    assert page.inner_text("#sentence").startswith(
        "Not tried with numba; this is what is known of others. On sm_90: No."
    )
    assert page.locator("#answers tbody tr", has_text="wgmma").count() >= 1
    page.fill("#ask", "wgmma sm_80")
    settled(page)
    assert page.inner_text("#sentence").startswith("Not tried on sm_80: cumatrix try kernel.cu")
    # Other features of tensor cores have answers on sm_80, and match all words of the question but one.
    page.fill("#ask", "wgmma tensor cores")
    settled(page)
    assert page.inner_text("#sentence").startswith("Not tried on sm_80; this is sm_90.")
    page.fill("#ask", "tensor cores")
    settled(page)
    assert "Not tried on sm_80" not in page.inner_text("#sentence")


def test_an_architecture_alone_is_answered_by_what_is_compiled_for_it(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers)
    page.fill("#ask", "RTX 4090")
    settled(page)
    first = page.locator("#answers tbody tr").first
    assert words(first.locator("th").inner_text()) == "The architecture itself: whether anything is compiled for it"
    assert first.locator("th .v").count() == 0  # text for screen readers
    assert words(first.locator("td").first.inner_text()).startswith("builds since CUDA 11.8")
    assert page.locator("#answers tbody tr").count() > 5


def test_the_first_view_tells_what_works_without_a_script(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers, script=False)
    text = words(page.inner_text("main"))
    assert re.search(r"[\d,]+ build [\d,]+ do not build \d+ known fault", text)
    assert "builds since 13.6.0" in text
    assert "Latest changes" in text
    with_script = visit("index.html", folder=answers)
    for button in with_script.locator("#answers th button").all():
        button.click()
    shown, drawn = (
        [
            list(map(words, view.locator("#answers thead th").all_inner_texts())),
            [
                (cell.get_attribute("data-tool"), words(cell.inner_text()))
                for cell in view.locator("#answers td[data-tool]").all()
            ],
        ]
        for view in (page, with_script)
    )
    assert shown == drawn


def test_the_first_view_is_short_until_a_reader_wants_more(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers)
    notes = page.locator("#answers td .fine")
    assert notes.count() > 0 and notes.first.is_hidden()
    page.check("#fine")
    assert notes.first.is_visible()
    topics = page.locator("#answers .topic").all_inner_texts()
    assert len(topics) == len(set(topics)) > 1
    assert page.locator("#latest").is_visible()
    page.fill("#ask", "wmma")
    settled(page)
    assert page.locator("#latest").is_hidden() and page.locator("#answers .topic").count() == 0
    assert page.locator("#answers td .fine").first.is_visible()


def test_topics_are_folded_on_a_narrow_screen(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers, viewport={"width": 390, "height": 844})
    buttons = page.locator("#answers .topic button")
    assert buttons.count() > 1
    links = page.locator("#answers tbody a")
    assert not any(link.is_visible() for link in links.all())
    buttons.first.click()
    assert buttons.first.get_attribute("aria-expanded") == "true"
    assert links.first.is_visible() and not links.last.is_visible()
    # Another architecture leaves it open, and the answers stay above the new releases.
    page.select_option("#on", index=1)
    settled(page)
    assert links.first.is_visible() and not links.last.is_visible()
    before = "document.querySelector('#answers').compareDocumentPosition(document.querySelector('#now'))"
    assert page.evaluate(before) == 4
    page.emulate_media(media="print")
    assert links.last.is_visible()
    page = visit("index.html", folder=answers)
    assert page.locator("#answers .topic button").count() == 0
    assert page.locator("#answers tbody a").last.is_visible()
    assert page.evaluate(before) == 2


def test_a_feature_has_one_row_and_shows_its_other_variants_on_demand(visit: Visit, answers: Path) -> None:
    page = visit("index.html", folder=answers)
    buttons = page.locator("#answers th button", has_text="more variant")
    count = page.locator("#answers tbody tr:visible").count()
    more = int(buttons.first.inner_text().partition(" ")[0])
    assert buttons.first.get_attribute("aria-expanded") == "false"
    buttons.first.click()
    assert buttons.first.get_attribute("aria-expanded") == "true"
    assert page.locator("#answers tbody tr:visible").count() == count + more
    page.select_option("#on", index=1)
    page.select_option("#on", index=0)
    settled(page)
    assert buttons.first.get_attribute("aria-expanded") == "true"
    page.fill("#ask", "wmma")
    settled(page)
    assert buttons.count() == 0 and page.locator("#answers tr.spare").count() == 0
    page = visit("index.html", folder=answers, script=False)
    assert page.locator("#answers tbody tr:visible").count() > count


def test_links_of_earlier_reports_find_the_matrix(visit: Visit, answers: Path) -> None:
    page = visit("matrix.html", folder=answers)
    page.goto(f"{answers.as_uri()}/index.html#q=backend+==+%22numba%22")
    page.wait_for_url("**/matrix.html*")
    page.wait_for_selector("html[data-ready]")
    settled(page)
    assert page.input_value("#q") == 'backend == "numba"'


def test_the_page_of_a_feature_says_who_may_use_it(visit: Visit, answers: Path) -> None:
    page = visit("cases/cooperative-numba-9432.html", folder=answers)
    text = words(page.inner_text("main"))
    assert "builds except 0.59.0" in text
    assert "https://github.com/numba/numba/issues/9432" in text
    assert re.search(r"Untried: .*numba 0\.60\.0", text)
    page = visit("cases/wmma-fragments.html", folder=answers)
    assert page.locator(".versions-table tbody tr", has_text="NVRTC").first.locator("td.is-part").first.inner_text().endswith("from sm_80")  # fmt: skip


def test_the_first_view_is_small(answers: Path) -> None:
    text = (answers / "index.html").read_text()
    loaded = re.findall(r'(?:src|href)="((?:assets|data)/[^"]+)"', text)
    sizes = [(answers / name).stat().st_size for name in ("index.html", *loaded)]
    assert len(loaded) > 5
    assert sum(sizes) < 300_000


def test_features_of_a_topic_have_those_with_more_upstream_threads_first(answers: Path) -> None:
    _, data = handed_over((answers / "data" / "answers.js").read_text())
    ranks = {
        feature["page"] or f"{feature['case'].replace('/', '-')}.html": (feature["rank"], feature["topic"])
        for feature in data["features"]
    }
    text = (answers / "index.html").read_text()
    shown = [ranks[page] for page in re.findall(r'class="first"><th scope="row"><a href="cases/([^"]+)"', text)]
    assert shown == sorted(shown)
    assert len({rank for rank, _ in shown}) > len({topic for _, topic in shown}) > 1


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the answer page of the published matrix, without the pages of its cells."""
    folder, matrix = tmp_path_factory.mktemp("published"), published_folder()
    assert matrix is not None
    merged = merge(*read_parquet(matrix / RECORDS))
    for name, data in front_files(Site(merged=merged, table=cells_frame(merged), cases=(CASES,))):
        if name.startswith(("index.html", "assets/", "data/answers", "data/replies", "data/causes")):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        elif name.endswith(".html"):
            break
    return folder


@pytest.mark.slow
def test_questions_of_upstream_reports_are_answered(visit: Visit, published: Path) -> None:
    """The answers of tests/answers/test_upstream.py; a question without an architecture uses the displayed one."""
    page = visit("index.html", folder=published)
    wrong = []
    for question in UPSTREAM:
        page.fill("#ask", question["asked"])
        settled(page)
        said = re.sub(r"^(Not tried on sm_80; this is sm_\w+\. )?On sm_\w+: ", "", page.inner_text("#sentence"))
        known = question.get("page_known", question.get("known", True))
        if not re.search(question.get("page", question["sentence"]), said) or said.startswith("Not ") is known:
            wrong.append((question["asked"], said))
    assert not wrong, "\n".join(map(str, wrong))
