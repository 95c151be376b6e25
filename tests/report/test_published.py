"""A published matrix together with your own results: joined on the page, separate in numbers and exports."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from page_scripts import handed_over
from record_builders import cell, plan, record, rejected

from harness.cli.report import report
from harness.errors import UsageError
from harness.model import Cell, Outcome, Status
from harness.published import ENVIRONMENT
from harness.records import Merged, Record, RecordWriter, merge
from harness.report.build import build_report
from harness.report.publish import of_own, publish, side_by_side

from .browsing import Visit

CASES = Path(__file__).parents[2] / "cases"


def nvrtc(toolkit: str, target: str = "sm_80") -> Cell:
    return cell(backend="nvrtc", library="", toolkit=toolkit, target=target)


def published(*records: Record) -> Merged:
    theirs: list[Record] = [{**item, "environment": ENVIRONMENT, "run": "theirs"} for item in records]
    return merge(theirs, [plan(run="theirs", environment=ENVIRONMENT)])


def test_own_answers_come_first_and_no_answer_is_hidden() -> None:
    of = [nvrtc(toolkit) for toolkit in ("12.4", "12.9", "13.0", "13.5")]
    own = merge(
        [record(of[0]), record(of[1], Outcome(status=Status.UNAVAILABLE, reason="there is none"))], [plan(*of[:3])]
    )
    both = side_by_side(own, published(record(of[0], rejected()), record(of[1]), record(of[2]), record(of[3])))
    found = {item["toolkit"]: (item["environment"], item["status"]) for item in both.records}
    # The third was planned and never arrived, and the report shows that.
    assert found == {"12.4": ("cupy13", "built"), "12.9": (ENVIRONMENT, "built"), "13.5": (ENVIRONMENT, "built")}
    assert [item["cell"] for item in both.missing] == [of[2].id]
    (conflict,) = both.conflicts
    assert (conflict.cell, conflict.kept["others"][0]["run"]) == (of[0].id, "theirs")
    alone = of_own(both)
    assert alone is not None
    assert [item["toolkit"] for item in alone.records] == ["12.4"]
    assert of_own(published(record(of[3]))) is None


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    for name, of in (
        ("theirs", [nvrtc(toolkit, target) for toolkit in ("12.4", "13.0") for target in ("sm_75", "sm_80")]),
        ("own", [nvrtc("12.9", "sm_80")]),
    ):
        with RecordWriter(folder / f"{name}.jsonl", plan(*of, run=name)) as writer:
            for item in of:
                outcome = rejected() if str(item.target) == "sm_75" or name == "own" else None
                writer.append(record(item, outcome, run=name))
    publish([folder / "theirs.jsonl"], folder / "matrix", CASES)
    build_report([folder / "own.jsonl"], folder / "html", published=folder / "matrix")
    return folder / "html"


def test_numbers_and_exports_are_ones_own(page: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((page / "matrix.csv").read_text())))
    assert [(row["toolkit"], row["environment"]) for row in rows] == [("12.9", "cupy13")]
    assert 'tests="1"' in (page / "junit.xml").read_text()
    index = (page / "index.html").read_text()
    assert re.search(r'aria-label="Yours: cells by what they mean">.*?<b>1</b> surprise', index, re.DOTALL)
    assert re.search(r'aria-label="Published 2026-01-01: cells by what they mean">.*?<b>2</b> build', index, re.DOTALL)


def test_a_published_matrix_alone_is_its_own_export(page: Path, tmp_path: Path) -> None:
    matrix = page.parent / "matrix"
    report.main([str(matrix), "--out", str(tmp_path / "alone")], standalone_mode=False)
    alone = {path.name for path in (tmp_path / "alone").iterdir()}
    assert not alone & {"matrix.json", "matrix.csv", "matrix.md", "results.parquet", "junit.xml"}
    assert "reports/matrix/results.parquet" in (tmp_path / "alone" / "index.html").read_text()
    files = sorted((tmp_path / "alone" / "data").glob("cells-*.js"))
    details = json.dumps([handed_over(path.read_text()) for path in files])
    assert "incomplete type is not allowed" in details
    assert not re.search(r"[0-9a-f]{64}", details)
    report.main([str(matrix), "--no-published", "--out", str(tmp_path / "own")], standalone_mode=False)
    assert (tmp_path / "own" / "matrix.csv").read_text().count("\n") == 5


def test_before_a_run_every_page_says_that_own_cells_are_coming_until_the_report(page: Path, tmp_path: Path) -> None:
    html, folder = tmp_path / "html", page.parent
    coming = ["--coming", "--matrix", str(folder / "matrix"), "--out", str(html)]
    assert report.main(coming, standalone_mode=False) == 0
    pages = sorted(html.rglob("*.html"))
    assert html / "index.html" in pages and html / "cases" / "wmma-fragments.html" in pages
    assert all("Your cells are coming" in path.read_text() for path in pages)
    assert re.search("<b>2</b> build", (html / "index.html").read_text())
    both = [str(folder / "own.jsonl"), "--matrix", str(folder / "matrix"), "--out", str(html)]
    report.main(both, standalone_mode=False)
    reported = (html / "index.html").read_text()
    assert 'aria-label="Yours: cells' in reported
    assert not any("are coming" in path.read_text() for path in html.rglob("*.html"))
    # The next run leaves the report unchanged.
    assert report.main(coming, standalone_mode=False) == 0
    assert (html / "index.html").read_text() == reported
    with pytest.raises(UsageError, match="published matrix alone"):
        report.main([*coming, str(folder / "own.jsonl")], standalone_mode=False)


def test_a_field_says_what_is_known_and_what_ones_own_cells_say(page: Path) -> None:
    index = (page / "index.html").read_text()
    assert re.search(r'builds.*?<small class="yours">yours: 0 of 1</small>', index, re.DOTALL)
    script = (page / "data" / "answers-sm_80.js").read_text()
    _, data = handed_over(script)
    ((_, verdict, _, own),) = data["lines"][0][3]
    assert data["verdicts"][own][1] == "0 of 1" != data["verdicts"][verdict][1]
    case = (page / "cases" / "wmma-fragments.html").read_text()
    assert "yours: 0 of 1" in case
    matrix = (page / "matrix.html").read_text()
    assert '<a href="#q=environment+!=+%22published%22">your own cells only</a>' in matrix


def test_a_folder_of_results_does_not_take_a_published_matrix_for_ones_own(tmp_path: Path, page: Path) -> None:
    folder = page.parent / "reports"
    folder.mkdir(exist_ok=True)
    publish([page.parent / "theirs.jsonl"], folder / "matrix", CASES)
    with RecordWriter(folder / "own.jsonl", plan(nvrtc("12.9"))) as writer:
        writer.append(record(nvrtc("12.9")))
    assert build_report([folder], tmp_path / "a").cells == 1
    assert build_report([folder / "matrix"], tmp_path / "b").cells == 4
    assert build_report([], tmp_path / "c", published=folder / "matrix").cells == 4


@pytest.mark.slow
def test_the_page_of_the_published_matrix_is_small(visit: Visit, tmp_path: Path) -> None:
    report.main(["reports/matrix", "--out", str(tmp_path / "page")], standalone_mode=False)
    files = {
        str(path.relative_to(tmp_path / "page")): path for path in (tmp_path / "page").rglob("*") if path.is_file()
    }
    sizes = {name: path.stat().st_size for name, path in files.items()}
    assert sum(sizes.values()) < 15_000_000
    assert len(sizes) < 2_000
    first = re.findall(r'(?:src|href)="((?:assets|data)/[^"]+)"', files["index.html"].read_text())
    assert sum(sizes[name] for name in ("index.html", *first)) < 250_000
    pages = {name: 5_500 for name in files if name.startswith("cases/")}
    for name, most in ({"matrix.html": 4_000, "index.html": 6_000} | pages).items():
        page = visit(name, folder=tmp_path / "page", viewport={"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollHeight") <= most, name
