"""The pages: log text has no effect, and no link is broken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest
from record_builders import BUILT, built, cell, changed, plan, record, rejected

from harness.analysis import cells_frame as frame
from harness.answers.feature import VersionRow
from harness.matrix.axes import natural_key
from harness.model import Expectation, Outcome, Stage, Status
from harness.model.condition import Condition
from harness.protocol.text import clean, one_line, safe_link
from harness.published import ENVIRONMENT
from harness.records import Record, merge
from harness.records.plan import Plan
from harness.records.record_names import choose
from harness.report.case import excerpt, newest_first, page_names, short_of, split_newest, version_columns
from harness.report.pages import SHOWN, assets
from harness.report.site import Site, case_files_of, front_files

HOSTILE = (
    "\x1b[31m<script>alert(1)</script>\x1b]0;title\x07 <img src=x onerror=alert(2)> \"'&\u202e\x00\x08 {{ 7 * 7 }}"
)


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def values(self, name: str) -> list[str]:
        return [value or "" for _, key, value in self.attributes if key == name]


def pages(
    *records: Record, plans: Sequence[Plan] = (), warnings: Sequence[str] = (), cases: Path | None = None
) -> dict[str, str]:
    merged = merge(records, plans)
    site = Site(merged=merged, table=frame(merged), warnings=tuple(warnings), cases=(cases,) if cases else ())
    made = dict(chain(front_files(site), case_files_of(site)))
    return {name: data.decode() for name, data in made.items() if name.endswith(".html")}


def hostile_record() -> Record:
    of = cell(title=HOSTILE)
    of = replace(
        of,
        case=replace(
            of.case,
            features=(HOSTILE,),
            links=("javascript:alert(1)", "https://example.com/?a=1&b=2", HOSTILE),
        ),
    )
    expected = Expectation(
        when=Condition.always(),
        status=Status.REJECTED,
        diagnostic="something else",
        reason=HOSTILE,
        link="javascript:alert(3)",
    )
    outcome = rejected(
        HOSTILE,
        log=HOSTILE * 3,
        command=("nvrtc", HOSTILE),
        notes=(HOSTILE,),
        reason=HOSTILE,
        observed={HOSTILE: HOSTILE},
    )
    return {**record(of, outcome, expected), "variant": HOSTILE, "environment": HOSTILE, "library": HOSTILE}


def test_hostile_texts_are_shown_and_do_nothing() -> None:
    hostile = hostile_record()
    bad_plan = plan(cell(target="sm_90"), environment=HOSTILE, argv=[HOSTILE], machine={HOSTILE: HOSTILE})
    other: Record = {**record(outcome=built(), run="earlier"), "cell": hostile["cell"]}
    made = pages(hostile, other, plans=[bad_plan], warnings=[HOSTILE])
    assert set(made) == {
        *(
            "index.html",
            "matrix.html",
            "cases/wmma-fragments.html",
            "features/wmma-fragments.html",
            "support.html",
            "disagreements.html",
            "coverage.html",
            "pictures.html",
        )
    }
    for text in made.values():
        page = Page(text)
        assert not {"img", "iframe", "object", "form"} & set(page.tags)
        assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"]
        ours = r"https?://|#|(\.\./)?(api/v1|api/v1/features|cases|features|badges)/[\w.-]+|(\.\./)?(matrix|results|index|support|disagreements|coverage|pictures|assets/style|assets/matrix|assets/icon)\."
        assert all(re.match(ours, link) for link in page.values("href"))
        assert all(re.fullmatch(r"(assets|data)/[\w-]+\.js", address) for address in page.values("src"))
        assert not re.search(r"<script[^>]*>[^<]", text)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert "{{ 7 * 7 }}" in Page(made["matrix.html"]).text
    page = Page(made["cases/wmma-fragments.html"])
    assert "https://example.com/?a=1&b=2" in page.values("href")
    assert page.text.count("<script>alert(1)</script>") >= 8
    assert "javascript:alert(3)" in page.text  # as text: the reader sees the rejected content


def test_policy_lets_in_the_pages_own_files_and_nothing_else() -> None:
    for text in pages(record()).values():
        (policy,) = [value for value in Page(text).values("content") if "default-src" in value]
        rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
        assert rules["default-src"] == "'none'"
        assert {rules["script-src"], rules["style-src"], rules["img-src"]} == {"'self'"}
        assert rules["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in policy
        assert "<style" not in text


def test_the_page_of_a_feature_answers_then_shows_versions_evidence_and_commands() -> None:
    refused = record(cell(toolkit="12.2"), rejected())
    text = pages(record(), changed(refused, environment=ENVIRONMENT))["cases/wmma-fragments.html"]
    (sentence,) = re.findall(r'<p class="sentence">(.*?)</p>', text)
    assert sentence == "Yes. CuPy: builds since CUDA 12.4 (13.6.0)."
    places = [
        text.index(part) for part in ("sentence", "versions-table", "By architecture", 'id="try"', 'id="happened"')
    ]
    assert places == sorted(places)
    (commands,) = re.findall(r'aria-label="Commands[^>]*>(.*?)</pre>', text, re.DOTALL)
    # A published record has no environment that names its release.
    assert commands.split("\n") == [
        "cumatrix toolkits install 12.2",
        "cumatrix run wmma/fragments -b cupy-nvrtc -t 12.2 -a sm_80 --with cupy=13.6.0",
    ]


def test_a_long_answer_is_left_to_its_variants() -> None:
    records = [
        record(cell(variant={"shape": f"{shape}-{'x' * 150}"}), built() if shape else rejected()) for shape in range(3)
    ]
    text = pages(*records)["cases/wmma-fragments.html"]
    assert re.findall(r'<p class="sentence">(.*?)</p>', text) == ["In part; it depends on the variant."]


def test_nothing_is_fetched_from_elsewhere() -> None:
    for name, data in assets().items():
        text = data.decode()
        assert not re.search(r"url\(|@import|\bfetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|eval\(", text), name


def test_every_link_leads_somewhere() -> None:
    cells = [cell(case, {"n": n}, target=t) for case in ("a/b", "a-b/c") for n in (1, 2) for t in ("sm_80", "sm_90")]
    made = pages(*map(record, cells[:-1]), plans=[plan(*cells)])
    ids = {name: set(Page(text).values("id")) for name, text in made.items()}
    for name, text in made.items():
        every = Page(text).values("id")
        assert len(every) == len(set(every)), f"an id twice in {name}"
        for link in Page(text).values("href"):
            file, _, anchor = link.partition("#")
            file = (file.removeprefix("../") if name.startswith(("cases/", "features/")) else file) or name
            if file.endswith(".html"):
                assert file in made, f"{link} in {name}"
                assert not anchor or "=" in anchor or anchor in ids[file], f"{link} in {name}"


def test_every_filter_that_a_page_links_to_holds_for_a_cell() -> None:
    records = [
        record(cell(target=target, toolkit=toolkit)) for toolkit in ("12.4", "13.0") for target in ("sm_80", "sm_90")
    ]
    known = merge(records, [])
    links = [
        unquote_plus(link.partition("#q=")[2])
        for page in pages(*records).values()
        for link in Page(page).values("href")
        if "matrix.html#q=" in link
    ]
    assert 'case == "wmma/fragments" and backend == "cupy-nvrtc" and target in ("sm_80", "sm_90")' in links
    assert all(choose(known, link).records for link in links)


def test_cells_with_the_same_facts_are_told_once() -> None:
    same = [
        record(cell(target=t), rejected(f"{t} is too old, see sm_801 and compute_{t[3:]}", log=f"for {t}"))
        for t in ("sm_70", "sm_75", "sm_80")
    ]
    other = record(cell(target="sm_90"), rejected("another"))
    page = pages(*same, other)["cases/wmma-fragments.html"]
    assert page.count('<details id="g') == 2
    assert ">sm_70–sm_80<" in page
    assert Page(page).text.count("is too old") == 3  # the headline, the diagnostic, and the outcome of the command


def test_only_so_many_kinds_of_outcome_are_told_and_the_gravest_are() -> None:
    fine = [record(cell(variant={"n": n}), built(notes=(f"note {n}",), reason=f"{n}")) for n in range(80)]
    bad = record(cell(variant={"n": 99}), rejected("at the end"))
    page = Page(pages(*fine, bad)["cases/wmma-fragments.html"])
    assert page.text.count("Log, command and versions") == SHOWN
    assert f"And {81 - SHOWN} more outcomes of other kinds" in page.text
    assert page.text.index("at the end") < page.text.index("note")


def test_page_of_a_case_tells_everything() -> None:
    outcome = Outcome(
        status=Status.CRASHED,
        stage=Stage.COMPILE,
        stages=(Stage.PREPROCESS, Stage.COMPILE),
        signal=11,
        log="boom",
        command=("cupy.RawModule", "-std=c++17"),
        notes=("tried twice",),
        device={"virtual": True, "compute_capability": "8.0"},
        observed={"nvrtc": "12.4.127"},
    )
    text = Page(pages(record(outcome=outcome))["cases/wmma-fragments.html"]).text
    for words in (
        "crashed at compile, by signal 11 (SIGSEGV)",
        "Expected built",
        "tried twice",
        "virtual: the library was shown a device that is not there",
        "Log, command and versions",
    ):
        assert words in text
    text = Page(pages(record())["cases/wmma-fragments.html"]).text
    assert "Kernel Registers Shared Local Constant Spills Stack Tensor cores kernel 40 1,024 – – 0 – –" in text


def test_index_says_what_needs_attention() -> None:
    planned = [cell(target=t) for t in ("sm_80", "sm_86", "sm_90", "sm_100")]
    bad = [record(item, rejected("no such type"), BUILT) for item in planned[:3]]
    text = Page(pages(*bad, plans=[plan(*planned)], warnings=["x.jsonl: line 9: cut off"])["matrix.html"]).text
    assert "4 not as expected" in text
    assert "wmma/fragments 3 cells cupy-nvrtc 13.6.0, CUDA 12.4: sm_80–sm_90 no such type" in text
    assert "missing wmma/fragments 1 cell cupy-nvrtc 13.6.0, CUDA 12.4: sm_100" in text
    assert "x.jsonl: line 9: cut off" in text
    assert "2026-01-01 12:00:00 UTC" in text
    assert "Everything is as expected." in Page(pages(record())["matrix.html"]).text


def test_index_lists_runs_that_disagree() -> None:
    text = Page(pages(record(run="a"), record(outcome=rejected(), run="b"))["matrix.html"]).text
    assert "1 cell came out differently" in text
    assert "rejected in b, built in a" in text
    assert "answer of an earlier run" not in text


def test_index_says_where_a_later_run_had_no_answer() -> None:
    gone = Outcome(status=Status.UNAVAILABLE, reason="CUDA 12.4 is not <b>there</b>")
    later = [plan(cell(), run="a", day=1), plan(cell(), run="b", day=2)]
    text = Page(pages(record(run="a"), record(outcome=gone, run="b"), plans=later)["matrix.html"]).text
    assert "1 cell keeps its answer of an earlier run" in text
    assert "built in a; unavailable in run b: CUDA 12.4 is not <b>there</b>" in text
    assert "Everything is as expected." in text


def test_tables_are_made_for_screen_readers() -> None:
    page = Page(pages(record(), record(cell(target="sm_90")))["cases/wmma-fragments.html"])
    assert {"col", "row"} <= set(page.values("scope"))
    assert page.tags.count("caption") == 1


def test_diagnostic_is_shown_in_its_place(tmp_path: Path) -> None:
    folder = tmp_path / "wmma" / "fragments"
    folder.mkdir(parents=True)
    (folder / "kernel.cu").write_text("".join(f"line {number}\n" for number in range(1, 30)))
    text = Page(pages(record(outcome=rejected("no such type")), cases=tmp_path)["cases/wmma-fragments.html"]).text
    assert "11 line 11 ▶ 12 line 12 error: no such type 13 line 13" in text
    files = {"kernel.cu": "one\ntwo"}
    assert excerpt(files, "/tmp/x/kernel.cu", 2) == [(1, "one", False), (2, "two", True)]
    assert excerpt(files, "kernel.cu", 3) == excerpt(files, "kernel.cu", None) == excerpt(files, "other.cu", 1) == []


@pytest.mark.parametrize("case", ["../../etc/passwd", "/abs", "a/..", "..", "x" * 500, "a b\n/c", "ä/ö", "C:\\x"])
def test_page_names_stay_in_their_folder(case: str) -> None:
    name = page_names([case])[case]
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.html", name)
    assert len(name) < 120


def test_page_names_are_never_shared() -> None:
    cases = ["a-b/c", "a/b-c", "A/b-c", "a/b c"]
    assert len({name.lower() for name in page_names(cases).values()}) == len(cases)
    assert page_names(["wmma/fragments"]) == {"wmma/fragments": "wmma-fragments.html"}


def test_files_of_a_case_are_shown_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "cases" / "wmma" / "fragments"
    folder.mkdir(parents=True)
    (folder / "case.toml").write_text('title = "<b>"')
    (folder / "kernel.cu").write_text("int x; // <b>" + " " * 200_000)
    (folder / "secret.txt").write_text("secret")
    (tmp_path / "outside.py").write_text("outside")
    (folder / "link.py").symlink_to(tmp_path / "outside.py")
    page = pages(record(), cases=tmp_path / "cases")["cases/wmma-fragments.html"]
    text = Page(page).text
    assert "int x; // <b>" in text
    assert "… (cut)" in text
    assert "secret" not in text
    assert "outside" not in text
    assert len(page) < 150_000
    away: Record = {**record(), "case": "../fragments"}
    made = pages(away, cases=folder.parent / "x")
    assert "Program" not in Page(next(text for name, text in made.items() if name.startswith("cases/"))).text


@pytest.mark.parametrize(
    ("address", "safe"),
    [
        ("https://github.com/cupy/cupy/issues/1", True),
        ("http://example.com", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("data:text/html,x", False),
        ("https:x", False),
        ("https://a b", False),
        ("https://a\n", False),
        ('https://a"onclick=', False),
        ("//example.com", False),
        ("https://[", False),
        ("", False),
    ],
)
def test_only_web_addresses_become_links(address: str, safe: bool) -> None:
    assert safe_link(address) == (address if safe else "")


def test_clean_text() -> None:
    assert (
        clean("\x1b[1;31mred\x1b[0m\x1b]8;;http://x\x1b\\link\x1b]8;;\x07 a\tb\r\nc\rd\x9b31me")
        == "redlink a\tb\nc\ufffdd\ufffd31me"
    )
    assert clean("\x1b]never ends") == ""
    assert one_line("a\n b\t c", 4) == "a b…"
    assert sorted(["n=10", "n=9", "m", "n=9a"], key=natural_key) == ["m", "n=9", "n=9a", "n=10"]


def on_device(made: Record, name: str, **values: Any) -> Record:
    """Return the record of the same cell on a real device."""
    device = {"virtual": False, "name": name, "compute_capability": "8.0"}
    return changed(made, cell=f"{made['cell']} on {name}", device=device, **values)


def test_what_virtual_and_real_devices_disagree_on_comes_first() -> None:
    made = record(outcome=built())
    refused = record(outcome=rejected())
    other = {key: refused[key] for key in ("status", "stage", "diagnostics")}
    page = Page(pages(made, on_device(made, HOSTILE, **other))["matrix.html"])
    assert "1 of 1 cells that were compiled without a device and run on one came out differently" in page.text
    assert "built with the virtual device, rejected at compile on" in page.text
    assert "script" not in [tag for tag, name, value in page.attributes if name == "onerror"] and "img" not in page.tags
    assert page.text.index("a real one disagree") < page.text.index("Filter")


def test_where_virtual_and_real_devices_agree_it_says_so() -> None:
    made = record(outcome=built())
    page = Page(pages(made, on_device(made, "NVIDIA H200"))["matrix.html"])
    assert "1 cells were compiled without a device and run on a real one, too: both agree on each of them." in page.text
    assert "disagree" not in page.text.partition("Filter")[0].replace("Disagreements", "")


def test_versions_come_newest_first_and_equal_neighbors_are_one_column() -> None:
    def row(tool: str, versions: str, letters: str) -> VersionRow:
        return VersionRow(tool=tool, versions=versions, cells=tuple(("works", "all") if letter == "w" else ("not", "none") if letter == "x" else ("", "") for letter in letters))  # fmt: skip

    rows = [row("NVRTC", "", "xww w"), row("CuPy", "13", "   w "), row("CuPy", "14", "   w ")]
    releases = ["12.0", "12.1", "12.2", "12.3", "12.4"]
    assert version_columns(rows, releases) == [("12.4", 4), ("12.3", 3), ("12.1 to 12.2", 1), ("12.0", 0)]
    assert version_columns(rows[:1], releases) == [("12.4", 4), ("12.1 to 12.2", 1), ("12.0", 0)]
    assert [item.versions for item in newest_first(rows)] == ["", "14", "13"]


def test_a_long_table_begins_with_the_newest_versions_of_each_tool() -> None:
    def row(tool: str, versions: str, *words: str) -> VersionRow:
        return VersionRow(tool=tool, versions=versions, cells=tuple(("part" if word else "", word) for word in words))

    few = [row("CuPy", "13", "", "all"), row("CuPy", "14", "from sm_80", ""), row("nvcc", "", "none", "from sm_90")]
    assert split_newest(few) == ([few[1], few[0], few[2]], [])
    many = [row("CuPy", str(number), "all") for number in range(8)] + few[2:]
    newest, earlier = split_newest(many)
    assert [item.versions for item in newest] == ["7", ""]
    assert [item.versions for item in earlier] == ["6", "5", "4", "3", "2", "1", "0"]
    assert short_of(few) == "CuPy from sm_80; nvcc from sm_90"


def test_addresses_of_shared_links_are_whole_where_the_report_is_published() -> None:
    merged = merge([record()], ())
    site = Site(merged=merged, table=frame(merged), address="https://example.org/x")
    made = dict(chain(front_files(site), case_files_of(site)))
    page = made["cases/wmma-fragments.html"].decode()
    address = "https://example.org/x/cases/wmma-fragments.html"
    assert f'<link rel="canonical" href="{address}">' in page
    assert '<meta property="og:image" content="https://example.org/x/card.png">' in page
    assert f"<loc>{address}</loc>" in made["sitemap.xml"].decode()
    assert made["assets/icon.svg"].startswith(b"<svg")
    assert "sitemap.xml" not in dict(front_files(replace(site, address="")))
