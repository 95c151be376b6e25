#!/usr/bin/env python3
"""Check the sentences of the report's other pages and of the matrix's README against the cells of the published matrix.

check_pages.py [MATRIX] --page DIR

It checks the statements of support.html, the rows of stories.html, new releases (with the feed), the latest changes and the counts of
index.html, the numbers in the pictures, and the figures of the matrix's README.md. It reads the text of the pages and the Parquet file,
and shares no code with the writers of the pages.
Exits with 1 if a sentence is false.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from check_releases import check_releases
from check_support import ENDINGS, Row, check_support, false_numbers, number, plain, ranges_in, rows_of
from statement_rules import Cell, Cells, differ_alone, inside, order

ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT / "reports/matrix/results.parquet"
SHOWN = 10
TOOLS = {
    "NVRTC": "nvrtc", "CuPy": "cupy-nvrtc", "CuPy, Jitify": "cupy-jitify", "Numba": "numba", "numba-cuda": "numba-cuda", "nvcc": "nvcc",
    "PyTorch": "torch-nvcc", "cuda.core": "cuda-core", "Triton": "triton", "CuTe DSL": "cute-dsl", "cuTile": "cutile", "Warp": "warp",
    "clang": "clang", "numba-cuda-mlir": "numba-cuda-mlir", "hipRTC": "hiprtc", "clang, HIP": "hip-clang",
}  # fmt: skip


# Stories


def check_stories(page: str, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield each false row of stories.html with the reason. Each answered cell of a story's tools and architecture must have a row."""
    for story in re.findall(r'<section aria-labelledby="story-\d+">(.*?)</section>', page, re.DOTALL):
        case = plain(re.search(r"with the program: <a [^>]*>(.*?)</a>", story)[1])  # type: ignore[index]
        target = plain(re.search(r"<caption>On (.*?)</caption>", story)[1])  # type: ignore[index]
        some = [row for row in rows if row.case == case and row.target == target and row.answered]
        told: set[str] = set()
        backends = set()
        for line in re.findall(r"<tr><td class=\"variant\">(.*?)</tr>", story, re.DOTALL):
            variant, rest = line.split("</td>", 1)
            heading, cells = re.search(r'<th scope="row">(.*?)</th><td>(.*)</td>', rest, re.DOTALL).groups()  # type: ignore[union-attr]
            tool, versions = _tool(plain(heading))
            backends.add(tool)
            of = [row for row in some if row.variant == plain(variant).replace("–", "") and row.backend == tool and (not versions or inside(row.library, ranges_in(versions)))]  # fmt: skip
            for item in re.findall(r"<li>(.*?)</li>", cells, re.DOTALL):
                outcome = plain(re.search(r"<b[^>]*>(.*?)</b>", item)[1])  # type: ignore[index]
                releases = plain(re.search(r"<small>CUDA (.*?)</small>", item)[1]).split(", ")  # type: ignore[index]
                quoted = re.search(r"<q>(.*?)</q>", item, re.DOTALL)
                said = plain(quoted[1]).removesuffix("…") if quoted else ""
                for release in releases:
                    found = [row for row in of if row.toolkit == release]
                    told |= {row.cell for row in found}
                    wrong = [row for row in found if row.said != outcome or not " ".join(row.message.split()).startswith(said)]  # fmt: skip
                    if wrong or not found:
                        yield f"stories.html, {case} {plain(heading)} CUDA {release}: {outcome}", wrong[0].cell if wrong else "no cell"  # fmt: skip
        left = [row.cell for row in some if row.backend in backends and row.cell not in told]
        if left:
            yield f"stories.html, {case}", f"{len(left)} cells are not told, such as {left[0]}"


def _tool(heading: str) -> tuple[str, str]:
    """Return the backend and the versions of a heading such as ``CuPy, Jitify 11.5.0 to 12.2.0``."""
    name = max((name for name in TOOLS if heading == name or heading.startswith(f"{name} ")), key=len)
    return TOOLS[name], heading.removeprefix(name).strip()


# The first page


def check_changes(page: str, cells: Cells) -> Iterator[tuple[str, str]]:
    """Yield each false line of *Latest changes* with the reason.

    For each architecture of a line, two cells must differ only in the release and have the two outcomes, with no tried release between.
    """
    found = re.search(r'<h2 id="latest">(.*?)</section>', page, re.DOTALL)
    names = dict(re.findall(r'href="cases/([\w.-]+)\.html">', page) and [(case.replace("/", "-"), case) for case in {cell.case for cell in cells.by_id.values()}])  # fmt: skip
    changes = re.sub(r'<ul class="lines releases">.*?</ul>', "", found[1], flags=re.DOTALL) if found else ""
    lines = re.findall(r"<li>(.*?)</li>", changes, re.DOTALL)
    listed: dict[str, list[str]] = defaultdict(list)
    moves = _moves(cells)
    for line in lines:
        release, what, page_name, label, tools = re.fullmatch(
            r'<b>(.*?)</b>: (.*?): <a href="cases/([\w.-]+)\.html">.*?</a>(?: <small class="variant">(.*?)</small>)? <span class="soft">(.*?)</span>',
            line.strip(), re.DOTALL,
        ).groups()  # type: ignore[union-attr]  # fmt: skip
        axis, _, version = plain(release).rpartition(" ")
        if version not in listed[axis]:
            listed[axis].append(version)
        works = {"builds": True, "does not build any more": False}[what]
        case, where = names[page_name], f"index.html, Latest changes: {plain(line)}"
        variants = plain(label).split("; ") if label else None  # by their labels
        for part in plain(tools).split("; "):
            tool, targets, before = re.fullmatch(r"(.+?) on (.+?), after (\S+)", part).groups()  # type: ignore[union-attr]
            named, _, of = tool.partition(" with ")
            of_tool = [move for move in moves[axis, version] if move.after.case == case and move.works is works and _backend(named) == move.after.backend and move.after.of == of and move.value(move.before) == before]  # fmt: skip
            shown = {
                move.after.target
                for move in of_tool
                if variants is None or label_of(case, move.after.variant) in variants
            }
            for target in _expand(targets, shown):
                if target not in shown:
                    yield where, f"no two cells of {tool} on {target} show it"
        for variant in variants or ():
            if not any(label_of(case, move.after.variant) == variant and move.after.case == case and move.works is works for move in moves[axis, version]):  # fmt: skip
                yield where, f"nothing changes for {variant}"
    for axis, versions in listed.items():
        newest = sorted({version for name, version in moves if name == axis}, key=order, reverse=True)[: len(versions)]
        if newest != versions:
            yield f"index.html, Latest changes of {axis}", f"{', '.join(newest)} are newer than {', '.join(versions)}"


@cache
def _labels() -> Mapping[tuple[str, str, str], str]:
    tables = tomllib.loads((ROOT / "harness/answers/labels.toml").read_text("utf-8"))["parameter"]
    return {
        (case, table["name"], value): label
        for table in tables
        for case in table["cases"]
        for value, label in table["labels"].items()
    }


def label_of(case: str, variant: str) -> str:
    """Return the plain name of a variant: ``by compare and swap`` for ``loop=true``."""
    parts = [part.partition("=") for part in variant.split(",")] if variant else []
    return ", ".join(_labels().get((case, key, value), f"{key}={value}") for key, _, value in parts)


def _backend(label: str) -> str:
    """Return the backend of ``NVRTC`` or ``CuPy 12.3.0``. A label has a release if the change is along another axis."""
    return TOOLS.get(label) or TOOLS.get(label.rpartition(" ")[0], label)


def _expand(text: str, known: Iterable[str]) -> list[str]:
    ends = [re.split("–", part) for part in text.split(", ")]
    return [end[0] for end in ends if len(end) == 1] + [
        target
        for end in ends
        if len(end) == 2
        for target in {*end, *(item for item in known if re.fullmatch(r"sm_\d+", item) and inside(item, ((end[0], end[1]),)))}
    ]  # fmt: skip


@dataclass(frozen=True)
class Move:
    """Two neighbouring cells along an axis with different outcomes."""

    axis: str
    before: Cell
    after: Cell

    @property
    def works(self) -> bool:
        return self.after.holds

    def value(self, cell: Cell) -> str:
        value: str = getattr(cell, self.axis)
        return value


def _moves(cells: Cells) -> Mapping[tuple[str, str], list[Move]]:
    """Return all changes of outcome, by the name of the axis and the first release with the new outcome."""
    labels = {backend: name for name, backend in TOOLS.items()}
    groups: dict[tuple[Any, ...], list[Cell]] = defaultdict(list)
    for cell in cells.by_id.values():
        if cell.outcome and "+headers" not in cell.cuda:
            for axis in ("version", "cuda"):
                if getattr(cell, axis):
                    groups[axis, cell.case, cell.variant, cell.tool, cell.of, cell.others(axis)].append(cell)
    found: dict[tuple[str, str], list[Move]] = defaultdict(list)
    for key, group in groups.items():
        axis = key[0]
        for one, other in pairwise(sorted(group, key=lambda cell: order(getattr(cell, axis)))):
            if one.holds != other.holds and differ_alone(one, other, axis, named=("numba",)):
                name = "CUDA" if axis == "cuda" else other.of or labels.get(other.backend, other.backend)
                found[name, getattr(other, axis)].append(Move(axis, one, other))
    return found


_TOTALS = re.compile(r'<meta property="og:image:alt" content="[^":]*: ([^"]*)"')
"""Counts of the whole matrix in the description of the page's picture."""


def check_counts(folder: Path, readme: str, table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield each false count of index.html and of the matrix's README with the reason."""
    index = (folder / "index.html").read_text("utf-8")
    answered = int(table["status"].isin(list(ENDINGS)).sum())
    status, xfail = Counter(table["status"]), int((table["verdict"] == "xfail").sum())
    surprise = int((table["verdict"].isin(["fail", "xpass"]) & table["status"].isin(list(ENDINGS))).sum())
    works = int(((table["status"] == "built") & (table["verdict"] == "pass")).sum())
    groups = {
        "builds?": works, "do(?:es)? not build": answered - works - xfail - surprise, "known fault": xfail, "surprises?": surprise,
        "not available": status["unavailable"], "not applicable": status["unsupported"],
    }  # fmt: skip
    yield from false_numbers(
        "index.html",
        "".join(_TOTALS.findall(index)),
        {rf"([\d,]+) {word}": count for word, count in groups.items() if count},
    )
    cases = table["case"].nunique()
    yield from false_numbers("index.html", plain(index), {r"([\d,]+) answered cells": answered})
    yield from false_numbers("index.html", html.unescape(index), {r"What of ([\d,]+) CUDA features? compiles": cases, r"architecture: ([\d,]+) cells, compiled": len(table)})  # fmt: skip
    if not readme:
        return
    yield from false_numbers(
        "README.md", readme,
        {rf"([\d,]+) cells of {cases} cases": len(table), r"([\d,]+) of them answered by a compiler": answered}
        | {rf"([\d,]+) {word}\b": count for word, count in status.items()},
    )  # fmt: skip
    hours = table["seconds"][table["status"].isin(list(ENDINGS))].sum() / 3600
    for said in re.findall(r"The compilers took ([\d.,]+) hours", readme):
        if abs(float(said.replace(",", "")) - hours) > 0.06:
            yield "README.md", f"{hours:.1f} hours, not {said}"
    for tool, cells, answers, versions, releases, targets in re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d,]+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", readme, re.MULTILINE):  # fmt: skip
        of = table[table["backend"] == TOOLS[tool]]
        some = of[of["status"].isin(list(ENDINGS))]
        if (number(cells), number(answers)) != (len(of), len(some)):
            yield f"README.md, {tool}", f"{len(of)} cells, {len(some)} of them answered"
        for name, text in (("library", versions), ("toolkit", releases), ("target", targets)):
            values = set(some[name].fillna("")) - {""}
            if set(filter(None, text.strip().split(", "))) != values:
                yield f"README.md, {tool}: {name} {text}", ", ".join(sorted(values, key=order))


# Pictures


_OUTCOMES = re.compile(
    r"(?P<tool>.+): (?P<built>[\d,]+) of (?P<all>[\d,]+) cells build with (?:CUDA )?(?P<one>\S+), (?P<less>[\d,]+) with (?:CUDA )?(?P<other>\S+)"
)
_RESOURCE = re.compile(
    r"(?P<case>[^\[: ]+)(?:\[(?P<variant>.*?)\])?: (?P<more>\d+) (?P<unit>registers a thread|bytes of shared memory|bytes spilled) on sm_(?P<one>\w+),"
    r" (?P<less>\d+) on sm_(?P<other>\w+) \((?P<line>.*)\)"
)


def check_pictures(page: str, table: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Yield each false number in the descriptions of the pictures with the reason."""
    table = table[~table["toolkit"].str.contains("+headers", regex=False)]
    for words in re.findall(r"<title>([^<]*)</title>\s*<desc>(.*?)</desc>", page, re.DOTALL):
        title, described = map(html.unescape, words)
        if outcomes := _OUTCOMES.fullmatch(title):
            found = _false_outcomes(described, table[table["backend"] == TOOLS[outcomes["tool"]]], outcomes)
        elif resource := _RESOURCE.fullmatch(title):
            some = table[(table["case"] == resource["case"]) & (table["variant"] == (resource["variant"] or ""))]
            found = _false_resources(described, some, resource)
        else:
            found = iter(("no rule reads it",))
        yield from ((f"pictures.html, {title}", why) for why in found)


def _series(described: str) -> Iterator[tuple[str, list[list[str]]]]:
    for line in described.split("; "):
        name, _, values = line.rpartition(": ")
        if name:
            yield name, [value.rsplit(" ", 1) for value in values.removesuffix("…").split(", ") if " " in value]


def _false_outcomes(described: str, table: pd.DataFrame, title: re.Match[str]) -> Iterator[str]:
    """Yield false counts in the picture of outcomes by version, and in its title."""
    words = {"built": ["built"], "rejected": ["rejected"], "crashed or timed out": ["crashed", "timed_out"], "unsupported": ["unsupported"], "unknown or missing": ["unavailable", "harness_error", "missing"]}  # fmt: skip
    bars = {}
    for part in described.split("; "):
        version, _, said = part.partition(": ")
        bars[version] = {word: int(count) for count, word in (item.split(" ", 1) for item in said.split(", "))}
    told = {title["one"]: number(title["built"]), title["other"]: number(title["less"])}
    for version, built in told.items():
        if bars[version].get("built", 0) != built:
            yield f"{version}: {bars[version].get('built', 0)} built, not {built}"
    if (every := sum(bars[title["one"]].values())) != number(title["all"]):
        yield f"{every} cells, not {title['all']}"
    axis, other = ("library", "toolkit") if set(bars) <= set(table["library"]) else ("toolkit", "library")
    # Bars count the programs and targets that are answered or unsupported with every version.
    table = table[~table["status"].isin(words["unknown or missing"])]
    place = table[["case", "variant", "target", other]].fillna("").agg("\0".join, axis=1)
    common = set.intersection(*(set(place[table[axis] == version]) for version in bars))
    some = table[place.isin(common)]
    for version, counts in bars.items():
        status = Counter(some["status"][some[axis] == version])
        found = {word: sum(status[each] for each in of) for word, of in words.items()}
        if (shown := {word: number for word, number in found.items() if number}) != counts:
            yield f"{version}: {shown}, not {counts}"


def _false_resources(described: str, table: pd.DataFrame, title: re.Match[str]) -> Iterator[str]:
    """Yield false maxima in the picture of kernel resources by architecture and toolchain, and false values in its title."""
    line = dict(dict(_series(described)).get(title["line"], []))
    for target, value in ((title["one"], title["more"]), (title["other"], title["less"])):
        if line.get(target) != value:
            yield f"{title['line']} on sm_{target}: {line.get(target)}, not {value}"
    unit = title["unit"]
    column = {"registers a thread": "max_num_regs", "bytes of shared memory": "max_shared_bytes", "bytes spilled": "max_spill_bytes"}[unit]  # fmt: skip
    for name, values in _series(described):
        if not (found := re.fullmatch(r"(\S+?)(?: (\S+?))?, CUDA (\S+?)(?: and \d+ more)?", name)):
            continue
        rows = table[(table["backend"] == found[1]) & (table["library"].fillna("") == (found[2] or "")) & (table["toolkit"] == found[3])]  # fmt: skip
        greatest = rows.groupby("target")[column].max().dropna()
        for target, said in values:
            if f"{greatest.get(f'sm_{target}', float('nan')):.4g}" != said:
                yield f"{name}, sm_{target}: {greatest.get(f'sm_{target}')}, not {said}"


def check(folder: Path, table: pd.DataFrame, readme: str = "") -> Iterator[tuple[str, str]]:
    """Yield place and reason of each false sentence on a built page and in the matrix's README."""
    cells = Cells(table.astype(object).where(lambda frame: frame.notna(), None))
    feed = folder / "regressions.atom"
    told = feed.read_text("utf-8") if feed.exists() else ""
    pages: Mapping[str, Callable[[str], Iterator[tuple[str, str]]]] = {
        "support": lambda page: check_support(page, rows_of(table)),
        "stories": lambda page: check_stories(page, rows_of(table)),
        "index": lambda page: chain(check_changes(page, cells), check_releases(page, told, cells)),
        "pictures": lambda page: check_pictures(page, table),
    }
    for name, of_page in pages.items():
        if (folder / f"{name}.html").exists():
            yield from of_page((folder / f"{name}.html").read_text("utf-8"))
    if (folder / "index.html").exists():
        yield from check_counts(folder, readme, table)


def report(found: Iterable[tuple[str, str]]) -> int:
    """Print the false sentences; return their number."""
    by_place: dict[str, list[str]] = defaultdict(list)
    for where, why in found:
        by_place[where].append(why)
    for where, whys in list(by_place.items())[:SHOWN]:
        print(f"    - {where[:400]}\n      {whys[0][:400]}")
    print(f"{len(by_place)} sentences of support, stories, changes, counts and pictures are false")
    return len(by_place)


def main() -> int:
    parser = argparse.ArgumentParser(prog="check_pages.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", type=Path, nargs="?", default=PUBLISHED)
    parser.add_argument("--page", type=Path, required=True, metavar="DIR", help="a built page")
    args = parser.parse_args()
    readme = args.results.with_name("README.md")
    return int(report(check(args.page, pd.read_parquet(args.results), readme.read_text("utf-8") if readme.exists() else "")) > 0)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
