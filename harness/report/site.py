"""The site: every file of the page and its content."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pandas as pd

from harness.analysis.frame import cells_frame
from harness.analysis.history import History
from harness.answers.answer import known_of_itself, newest_day
from harness.answers.cells import Known
from harness.answers.feature import current_breakage, feature_page, latest_changes
from harness.model import Case
from harness.protocol.text import safe_link
from harness.published import ENVIRONMENT
from harness.records import Merged
from harness.records.files import ArtifactFolder
from harness.report import api, gpus, plots
from harness.report.answer_data import (
    answers_data,
    answers_for,
    architecture_of,
    causes_data,
    first_target,
    known_of,
    replies_data,
    shown_table,
)
from harness.report.api import EMBED_FOLDER, badges_of, embedded_of
from harness.report.case import CellGroup, annotator, files_of, group_cells, page_names
from harness.report.code import Code
from harness.report.feed import FEED, NewRelease, new_releases
from harness.report.overview import Sum, parts, totals, unavailable_of
from harness.report.page_data import CELLS, chunks, compact, matrix_data, more_data, script, stories_of
from harness.report.pages import (
    Frame,
    Section,
    answer_page,
    assets,
    case_page,
    embedded_page,
    matrix_page,
    section_page,
)
from harness.report.publish import Publication, is_own
from harness.report.sections import make_sections, section_names
from harness.wheels.published import Package

TITLE = "CUDA compatibility matrix"
"""The default title of the answer page."""

EXAMPLES = (
    "bf16 wmma turing",
    "grid sync numba 0.59",
    "shared memory limit of an H100",
    "first CUDA with sm_120",
    "what breaks between CUDA 12.9 and 13.0",
)
"""Questions that the answer page offers."""

OF_WHEELS = ("does vllm run on an RTX 5090",)
"""Further questions for a matrix with wheels."""

EXAMPLE_CASES = frozenset(("wmma/fragments", "cooperative/grid-sync", "shared-memory/static"))
"""Cases that the example questions require for an answer."""

DIFFERING = 5
"""Maximum number of disagreements on the answer page."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Inputs of the page.

    Parameters
    ----------
    merged : Merged
        Records and plans.
    table : DataFrame
        The cells of `merged` (`harness.analysis.cells_frame`).
    warnings : tuple of str
        Warnings from reading the records.
    cases : tuple of Path
        Folders of the cases, to show their files.
    programs : Mapping[str, Case]
        Programs in the project's configuration, to show their files.
    history : History or None
        Earlier runs.
    title : str
        The title of the answer page.
    publication : Publication or None
        A published matrix, whose cells are among `merged`.
    own : Merged or None
        Records and plans without the published ones; None if there are only own or only published ones.
    address : str
        The published address of the report, for embedded parts; may be empty.
    artifacts : Path or None
        Folder of the built artifacts.
    wheels : tuple of Package
        Packages with known wheels of a published matrix.
    coming : bool
        Whether own cells are being compiled.
    """

    merged: Merged
    table: pd.DataFrame
    warnings: tuple[str, ...] = ()
    cases: tuple[Path, ...] = ()
    programs: Mapping[str, Case] = field(default_factory=dict)
    history: History | None = None
    title: str = TITLE
    publication: Publication | None = None
    own: Merged | None = None
    address: str = ""
    artifacts: Path | None = None
    wheels: tuple[Package, ...] = ()
    coming: bool = False

    @cached_property
    def code(self) -> Code | None:
        """Kept artifacts of the cells; None without a folder of artifacts."""
        if self.artifacts is None:
            return None
        records = {record["cell"]: record for record in self.merged.records}
        return Code.of(ArtifactFolder(self.artifacts), list(self.table["cell"]), records)

    @cached_property
    def own_table(self) -> pd.DataFrame:
        """The table of `own`, or the whole table if `own` is None."""
        return cells_frame(self.own) if self.own else self.table

    @cached_property
    def itself(self) -> Known:
        """The cells reduced to support for architectures."""
        return known_of_itself(self.known)

    @cached_property
    def releases(self) -> list[NewRelease]:
        """The newest releases, and their breakage."""
        return new_releases(self.known, self.itself, self.merged)

    @property
    def fed(self) -> bool:
        """Return whether there is a feed, from a history or from new releases of a published matrix."""
        return self.history is not None or self.publication is not None

    @property
    def exported(self) -> bool:
        """Return whether records are exported. A published matrix alone is its own export."""
        return self.publication is None or self.own is not None

    @cached_property
    def published(self) -> dict[str, Any] | None:
        """Notes on published cells next to own ones."""
        if self.publication is None:
            return None
        theirs = self.table[self.table["environment"] == ENVIRONMENT]
        return {"made": self.publication.manifest.made, "sum": Sum(totals(theirs)), "alone": self.own is None}

    @cached_property
    def known(self) -> Known:
        """The input of answers."""
        return known_of(self.merged, self.table, apart=self.own is not None, texts=self.sources)

    @cached_property
    def files(self) -> dict[str, str]:
        """Page of each case."""
        return page_names(self.table["case"])

    @cached_property
    def sources(self) -> dict[str, dict[str, str]]:
        """The texts of each case's files, by case. Cases without files are absent."""
        found = {case: files_of(case, self.cases, self.programs) for case in self.files}
        return {case: texts for case, texts in found.items() if texts}

    @cached_property
    def groups(self) -> dict[str, list[CellGroup]]:
        """The groups of cells by outcome, by case."""
        return group_cells(self.merged)

    @cached_property
    def own_groups(self) -> dict[str, list[CellGroup]]:
        """The groups that contain an own cell, by case."""
        if not self.own:
            return self.groups
        own = {case: [group for group in of if any(map(is_own, group.cells))] for case, of in self.groups.items()}
        return {case: of for case, of in own.items() if of}

    @cached_property
    def sections(self) -> list[Section]:
        """The pages other than the matrix."""
        stories = Section(name="stories", values={"stories": self.stories, "both": self.own is not None, "published": self.published})  # fmt: skip
        wheels = [gpus.gpus_section(self.wheels)] if self.wheels else []
        return [*([stories] if self.stories else ()), *wheels, *make_sections(self.table, self.history)]

    @cached_property
    def stories(self) -> list[dict[str, Any]]:
        """Upstream failures with cells."""
        records = list(self.merged.records)
        if self.own and self.publication:
            # A published cell appears next to the own answer that replaced it.
            shown = {record["cell"] for record in self.own.records}
            records += [record for record in self.publication.merged.records if record["cell"] in shown]
        return stories_of({(record["run"], record["cell"]): record for record in records}.values())

    @cached_property
    def frame(self) -> Frame:
        """The common frame of all pages."""
        address = f"{self.address.rstrip('/')}/" if self.address else ""
        picture = plots.described(self.table, self.title)
        return Frame(title=self.title, sections=self.links, address=address, picture=picture, coming=self.coming)

    @property
    def links(self) -> list[tuple[str, str]]:
        """Name and title of the pages other than the matrix."""
        stories = [("stories", "Stories")] if self.stories else []
        return [*stories, *([(gpus.NAME, "GPUs")] if self.wheels else ()), *section_names(self.history)]


def front_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the first view's files, and of the pages other than the matrix.

    The files come one after another, because together they may be large.
    """
    for name, data in assets().items():
        yield f"assets/{name}", data
    if address := safe_link(site.frame.address):
        yield "sitemap.xml", _sitemap(site, address)
    yield "index.html", _text(answer_page(front_of(site), site.own_table, site.frame))
    yield plots.NAME, plots.card(site.table, site.title)
    yield "data/answers.js", script("answers", compact(answers_data(site.known, site.files, site.wheels)))
    if site.wheels:
        yield "data/gpus.js", script("gpus", compact(gpus.gpus_replies(site.wheels)))
        yield f"{api.FOLDER}/wheels.json", gpus.wheels_json(site.wheels)
    yield "data/replies.js", script("replies", compact(replies_data(site.known, site.itself)))
    yield "data/causes.js", script("causes", compact(causes_data()))
    for target in site.known.targets or [first_target(site.known)]:
        yield (
            f"data/answers-{target}.js",
            script(f"answers-{target}", compact(answers_for(site.known, target, site.itself))),
        )
    for section in site.sections:
        yield f"{section.name}.html", _text(section_page(section, site.frame, site.files))
    known = {cell["cell"]: cell for cell in (*site.merged.missing, *reversed(site.merged.records))}
    about = {cell["case"]: cell for cell in known.values()}
    matrix = matrix_data(site.table, about, site.files, known)
    for case, item in zip(site.table["case"].unique(), matrix["cases"], strict=True):
        item["files"] = _stem(site, case) if case in site.sources else ""
        item["code"] = _code(site, case) if site.code and case in site.code.cells else ""
    yield "data/matrix.js", script("matrix", compact({**matrix, "cellsPerFile": CELLS}))
    yield "data/more.js", script("more", compact(more_data(site.table, known)))


def _sitemap(site: Site, address: str) -> bytes:
    """Return the addresses of the pages that readers search for."""
    sections = [f"{name}.html" for name, _ in site.links]
    pages = ["index.html", "matrix.html", *sections, *(f"cases/{page}" for page in site.files.values())]
    urls = "".join(f"<url><loc>{escape(address + page)}</loc></url>\n" for page in pages)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'.encode()


def front_of(site: Site) -> dict[str, Any]:
    """Return the content of the answer page."""
    known, first = site.known, first_target(site.known)
    headings, lines = shown_table(known, first, site.files)
    reasons = {
        record["cell"]: (record["expected"]["reason"], record["expected"]["link"])
        for record in site.merged.records
        if record["verdict"] == "xfail"
    }

    def of_case(item: Any) -> dict[str, Any]:
        return {**asdict(item), "title": known.features[item.case].title, "page": site.files[item.case]}

    differing = next(section.values for section in site.sections if section.name == "disagreements")
    count = len(site.files)
    return {
        "about": f"What of {count} CUDA feature{'s' if count != 1 else ''} compiles with which tool, version and architecture: {len(site.table):,} cells, compiled.",
        "first": first,
        "targets": [(target, architecture_of(target)) for target in reversed(known.targets)] or [(first, "")],
        "examples": (*EXAMPLES, *(each for each in OF_WHEELS if site.wheels))
        if site.files.keys() >= EXAMPLE_CASES
        else (),
        "headings": headings,
        "lines": lines,
        "published": site.published,
        "stories": site.stories,
        "unavailable": unavailable_of(site.own_table),
        "broken": [of_case(item) for item in current_breakage(known, reasons)],
        "changes": [
            {**of_case(item), "what": "builds" if item.works else "does not build any more"}
            for item in latest_changes(known)
        ],
        "releases": [(item, [(each, site.files[each.case]) for each in item.broken]) for item in site.releases],
        "differing": [
            {"case": item.case, "sentence": item.sentence, "link": link}
            for item, _, link, _ in differing["items"][:DIFFERING]
        ],
        "differing_count": differing["count"],
        "feed": FEED if site.fed else "",
        "newest": newest_day(known.runs),
    }


def case_files_of(site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of the matrix's page, of each case's page, and of the details of its cells."""
    matrix = matrix_page(
        site.merged, site.own_table, site.own_groups, site.files, site.warnings, site.frame, site.published
    )
    yield "matrix.html", _text(matrix)
    documents: list[dict[str, Any]] = []
    for (case,), part in parts(site.table, "case"):
        sources = site.sources.get(case, {})
        if site.code and case in site.code.cells:
            yield f"data/{_code(site, case)}.js", script(_code(site, case), compact(site.code.index(case)))
        if sources:
            yield f"data/{_stem(site, case)}.js", script(_stem(site, case), compact(sources))
        feature, faults = feature_page(site.known, case), site.known.features[case].known_faults
        title = site.known.features[case].title
        embedded = embedded_of(site.files[case], feature, site.address)
        page = case_page(
            case,
            part,
            site.groups[case],
            sources,
            site.frame,
            site.files[case],
            feature,
            faults,
            published=site.published,
            embedded=embedded,
        )
        yield (
            f"{EMBED_FOLDER}/{embedded.stem}.html",
            _short(embedded_page(case, title, site.files[case], feature, site.frame)),
        )
        documents.append(
            api.feature_document(site.known.features[case], feature, site.known, site.groups[case], site.files[case])
        )
        yield f"{api.FOLDER}/features/{embedded.stem}.json", api.feature_json(documents[-1])
        yield from badges_of(case, feature, embedded)
        yield f"cases/{site.files[case]}", _short(page)
    yield f"{api.FOLDER}/all.json", api.features_json(documents, newest_day(site.known.runs))
    records = {record["cell"]: record for record in site.merged.records}
    for number, text in enumerate(chunks(site.table, records, annotator(site.history))):
        yield f"data/cells-{number}.js", script(f"cells-{number}", text)

    for name, content in site.code.texts() if site.code else ():
        yield f"data/{name}.js", script(name, compact(content))


def _code(site: Site, case: str) -> str:
    return f"code-of-{site.files[case].removesuffix('.html')}"


def _stem(site: Site, case: str) -> str:
    return f"files-{site.files[case].removesuffix('.html')}"


def _text(page: str) -> bytes:
    return page.encode("utf-8", "replace")


# The next tag, or the end of the table or list, implies each of these.
_IMPLIED = re.compile(r"</(?:td|th|tr|thead|tbody|li|dt|dd)>\s*")


def _short(page: str) -> bytes:
    """Return a case's page without its implied end tags."""
    return _text(_IMPLIED.sub("", page))


def in_parallel(one: Callable[[], None], other: Callable[[], None], *, apart: bool) -> None:
    """Run both functions, `one` in a separate process if `apart` is true.

    The process is forked: it shares all data without a copy, and returns only the files that it wrote. `one` must not
    use libraries that have already started threads, as pyarrow does.

    Raises
    ------
    Exception
        The exception of either function.
    """
    if not apart:
        one()
        other()
        return
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_do, args=(one, theirs))
    child.start()
    theirs.close()
    try:
        other()
    except BaseException:
        child.kill()
        raise
    finally:
        problem = _read(mine)
        child.join()
    if problem is not None:
        raise problem
    if child.exitcode:
        raise RuntimeError(f"a process of the report ended with {child.exitcode}")


def _read(pipe: Connection) -> Exception | None:
    """Return the process's last message, or None without one."""
    try:
        problem: Exception = pipe.recv()
    except EOFError:
        return None
    return problem


def _do(work: Callable[[], None], pipe: Connection) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 (raised in the process that waits)
        pipe.send(error)
