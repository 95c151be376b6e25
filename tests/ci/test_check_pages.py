"""``.ci/check_pages.py`` and ``.ci/hardware_rules.py``: they accept a page of real cells, and find each falsified sentence."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from harness.analysis.frame import cells_frame
from harness.records import merge
from harness.records.parquet import read_parquet
from harness.records.record_names import choose
from harness.report.feed import atom_feed
from harness.report.pages import answer_page, section_page
from harness.report.site import Site, front_of

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".ci"))

import check_pages  # noqa: E402
import hardware_rules  # noqa: E402

CELLS = ROOT / "tests/answers/cells.parquet"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.read_parquet(CELLS)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    merged = merge(*read_parquet(CELLS))
    site = Site(merged=merged, table=cells_frame(merged))
    found = {section.name: section_page(section, site.frame, site.files) for section in site.sections}
    return found | {"index": answer_page(front_of(site), site.own_table, site.frame)}


def false(pages: dict[str, str], table: pd.DataFrame, folder: Path) -> list[str]:
    for name in ("support", "stories", "index", "pictures"):
        if name in pages:
            (folder / f"{name}.html").write_text(pages[name])
    return [f"{where}: {why}" for where, why in check_pages.check(folder, table)]


def test_pages_of_real_cells_are_true(pages: dict[str, str], table: pd.DataFrame, tmp_path: Path) -> None:
    assert false(pages, table, tmp_path) == []


def one_more(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2].replace(',', '')) + 1}{match[3]}"


@pytest.fixture(scope="module")
def breaking() -> dict[str, str]:
    """The page and the feed of the cells up to CUDA 13.0, which breaks two of these features."""
    merged = choose(merge(*read_parquet(CELLS)), 'toolkit <= "13.0"')
    site = Site(merged=merged, table=cells_frame(merged))
    index = answer_page(front_of(site), site.own_table, site.frame)
    return {"index.html": index, "regressions.atom": atom_feed((), site.releases).decode()}


def false_releases(files: dict[str, str], table: pd.DataFrame, folder: Path) -> list[str]:
    for name, text in files.items():
        (folder / name).write_text(text)
    some = table[table["toolkit"] != "13.5"]
    return [f"{where}: {why}" for where, why in check_pages.check(folder, some)]


def test_new_releases_of_real_cells_are_true(breaking: dict[str, str], table: pd.DataFrame, tmp_path: Path) -> None:
    assert "breaks 2 features" in breaking["index.html"] and "no longer builds for sm_60" in breaking["index.html"]
    assert false_releases(breaking, table, tmp_path) == []


@pytest.mark.parametrize(
    ("file", "pattern", "wrong"),
    [
        ("index.html", r"(<b>CUDA 13\.)(0)(</b> breaks)", r"\g<1>1\3"),
        ("index.html", r"(breaks )(2)( features)", one_more),
        ("index.html", r"(\()(\d+)( of \d+ pairs)", one_more),
        ("index.html", r"(of )(\d+)( pairs that build with 12\.9)", one_more),
        ("index.html", r"(pairs that build with 12\.)(9)(;)", r"\g<1>4\3"),
        ("index.html", r"(no longer builds for sm_)(60)(\))", r"\g<1>75\3"),
        ("index.html", r"(; no longer builds for )(sm_60)(\))", r"\3"),
        ("index.html", r"(NVRTC on sm_75, )(sm_80, )(sm_89)", r"\1\3"),
        ("index.html", r"(<b>CuPy 14\.2\.0</b>)( breaks nothing that was tried)( )", r"\1 cannot be compared: no cell\3"),
        ("index.html", r"(<li><b>)(Numba 0\.68\.1.*?)(</li>)", ""),
        ("regressions.atom", r"(<title>CUDA 13\.0 breaks )(2)( )", one_more),
        ("regressions.atom", r"(of )(\d+)( pairs that build with 12\.9)", one_more),
        ("regressions.atom", r"(&lt;li&gt;)(.*?)(&lt;/li&gt;)", ""),
        ("regressions.atom", r"(<entry>\s*<title>)(CuPy.*?)(</entry>)", "<entry></entry>"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_a_new_release_is_found(file: str, pattern: str, wrong: str | Callable[[re.Match[str]], str], breaking: dict[str, str], table: pd.DataFrame, tmp_path: Path) -> None:  # fmt: skip
    changed, count = re.subn(pattern, wrong, breaking[file], count=1, flags=re.DOTALL)
    assert count == 1
    found = false_releases({**breaking, file: changed}, table, tmp_path)
    assert found and all(where.startswith((file, "index.html, new releases")) for where in found)


@pytest.mark.parametrize(
    ("page", "pattern", "wrong"),
    [
        ("support", r"(</b></a>: )(builds)(\.)", r"\1rejected at compile\3"),
        ("support", r"(needs sm_)(80)(, below)", r"\g<1>90\3"),
        ("support", r"(Tested: CUDA 11\.7, )(11\.8)(,)", r"\g<1>12.0\3"),
        ("support", r"(Unsupported: .*? with CUDA )([\d.]+)(\.)", r"\g<1>13.0\3"),
        ("support", r"(>)([\d,]+)( statements: what was tried)", one_more),
        ("support", r"(rejected at compile \(&#34;)(\w+)( )", r"\1something\3"),
        ("stories", r"(<small>CUDA )([\d.]+)(<|,)", r"\g<1>11.1\3"),
        ("stories", r"(<q>)(\w+)( )", r"\1something\3"),
        ("stories", r"(<b class=\"good\">)(builds)(</b>)", r"\1rejected at compile\3"),
        ("index", r"(, after )([\d.]+)(<|;)", r"\g<1>1.0\3"),
        ("index", r"(</b>: )(builds)(: )", r"\1does not build any more\3"),
        ("index", r"(>)([\d,]+)( answered cells)", one_more),
        ("pictures", r"(: )(\d+)( built)", one_more),
    ],
)
def test_what_is_made_wrong_is_found(page: str, pattern: str, wrong: str | Callable[[re.Match[str]], str], pages: dict[str, str], table: pd.DataFrame, tmp_path: Path) -> None:  # fmt: skip
    changed, count = re.subn(pattern, wrong, pages[page], count=1, flags=re.DOTALL)
    assert count == 1 and changed != pages[page]
    found = false({page: changed}, table, tmp_path)
    assert found and all(where.startswith(f"{page}.html") for where in found)


@pytest.mark.parametrize(
    ("rule", "name", "sentence", "is_true"),
    [
        ("capability", "rtx 4090", "RTX 4090 is compute capability 8.9 (sm_89), Ada.", True),
        ("capability", "rtx 4090", "RTX 4090 is compute capability 8.6 (sm_86), Ampere.", False),
        ("capability", "quadro m2000", "Quadro M2000 is compute capability 5.0 (sm_50), Maxwell.", False),
        ("capability", "sm_89", "sm_89 is compute capability 8.9, Ada: RTX 4050, A100.", False),
        ("capability", "rtx 9999", "RTX 9999 is compute capability 12.0 (sm_120).", False),
        ("tensor", "gtx 1660", "No. GTX 1660 (compute capability 7.5, Turing) has no tensor cores.", True),
        ("tensor", "1660", "Yes. 1660 (compute capability 7.5, Turing) has tensor cores.", False),
        ("tensor", "jetson", "Yes. Jetson (compute capability 8.7, Ampere) has tensor cores.", False),
        ("tensor", "jetson", "In part. Jetson (compute capability 8.7, 11.0, 7.2) has tensor cores.", True),
        ("minimum", "11.8", "The minimum compute capability of CUDA 11.8 is 5.0 (sm_50).", False),
        ("minimum", "13.0", "The minimum compute capability of CUDA 13.0 is 7.5 (sm_75).", True),
    ],
)
def test_products_are_those_of_nvidias_lists(rule: str, name: str, sentence: str, is_true: bool) -> None:
    assert (not list(getattr(hardware_rules, rule)(name, sentence))) is is_true


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        ("1,024", "512"),
        ("32 a warp", "64 a warp"),
        ("101,376", "166,912"),
        ("12.1", "12.0"),
        ("1,536", "2,048"),
        ("× 65,535 b", "× 1,024 b"),
    ],
)
def test_another_limit_is_false(number: str, wrong: str) -> None:
    sentence = (
        "RTX 3090: 101,376 bytes of dynamic shared memory a block, 1,536 threads, 16 blocks and 102,400 bytes of shared memory a multiprocessor; "
        "49,152 bytes of static shared memory, 1,024 threads a block, 32 a warp, 255 registers a thread, 65,536 bytes of constant memory and "
        "4,096 bytes of kernel parameters (32,764 with CUDA 12.1 or later from compute capability 7.0), "
        "2,147,483,647 × 65,535 × 65,535 blocks a grid."
    )
    assert list(hardware_rules.limits("rtx 3090", sentence)) == []
    assert len(list(hardware_rules.limits("rtx 3090", sentence.replace(number, wrong)))) == 1


def test_another_number_of_registers_is_found(table: pd.DataFrame) -> None:
    built = table[(table["backend"] == "nvrtc") & (table["status"] == "built")].iloc[[0]].assign(max_num_regs=12.0)
    one = built.iloc[0]
    other = built.assign(target="sm_75" if one["target"] != "sm_75" else "sm_80", max_num_regs=10.0)
    name = f"{one['case']}[{one['variant']}]" if one["variant"] else one["case"]
    line = f"nvrtc, CUDA {one['toolkit']} and 1 more"
    title = f"{name}: {{}} registers a thread on {one['target']}, 10 on {other.iloc[0]['target']} ({line})"
    said = f"<title>{title}</title> <desc>{line}: {one['target'][3:]} {{}}, {other.iloc[0]['target'][3:]} 10</desc>"
    both = pd.concat([built, other])
    assert list(check_pages.check_pictures(said.format(12, 12), both)) == []
    assert len(list(check_pages.check_pictures(said.format(13, 12), both))) == 1
    assert len(list(check_pages.check_pictures(said.format(13, 13), both))) == 1
    assert [why for _, why in check_pages.check_pictures("<title>Registers</title> <desc></desc>", both)] == [
        "no rule reads it"
    ]


def test_another_number_of_built_cells_is_found(table: pd.DataFrame) -> None:
    some = table[(table["backend"] == "nvrtc") & (table["status"] == "built")].iloc[[0]].assign(library="")
    both = pd.concat([some.assign(toolkit="12.8"), some.assign(toolkit="12.6", status="rejected")])
    said = "<title>NVRTC: {} of 1 cells build with CUDA 12.8, 0 with CUDA 12.6</title> <desc>12.6: 1 rejected; 12.8: 1 built</desc>"
    assert list(check_pages.check_pictures(said.format(1), both)) == []
    assert len(list(check_pages.check_pictures(said.format(2), both))) == 1
