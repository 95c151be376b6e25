"""HTML pages: answers, the matrix, and one page per case that works without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2
import pandas as pd

from harness import __version__
from harness.answers.feature import FeaturePage
from harness.matrix.axes import cell_link, matrix_link
from harness.matrix.marks import ANSWER_KINDS, GROUPS, KINDS
from harness.model.cell import RESULTS, named_toolkit
from harness.protocol.text import clean, one_line, safe_link
from harness.published import ENVIRONMENT
from harness.records import Merged, spell_other_result
from harness.records.merge import virtual_against_real
from harness.report.api import Embedded
from harness.report.case import (
    FAULTS,
    HELPS,
    LONGEST,
    OUTCOMES,
    PLACES,
    SHORT,
    VARIANTS,
    CellGroup,
    again_of,
    anchor_of,
    excerpt,
    helps_of,
    newest_first,
    proof_link,
    remedies,
    short_of,
    snippet_of,
    split_newest,
    version_columns,
)
from harness.report.overview import RUNS, Sum, make_overview, runs_of, spell, totals, unavailable_of
from harness.report.publish import is_own, own_part


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The common frame of all pages.

    Parameters
    ----------
    title : str
        The title of the report.
    sections : sequence of (str, str)
        Name and title of the pages other than the matrix.
    address : str
        The published address of the report, with a ``/`` at its end; empty if unknown.
    picture : str
        The description of the picture for shared links.
    coming : bool
        Whether the reader's own cells are being compiled.
    """

    title: str
    sections: Sequence[tuple[str, str]] = ()
    address: str = ""
    picture: str = ""
    coming: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """A page other than the matrix.

    Parameters
    ----------
    name : str
        Its file and its template are ``NAME.html``.
    values : Mapping
        The values of the template.
    """

    name: str
    values: Mapping[str, Any]


LISTED = 100
"""Maximum number of entries in the lists of the index. The matrix and the exports have the rest."""

FRONT = 8
"""Maximum number of entries in the lists of the answer page."""

OPEN = 3
"""Entries of these lists that are visible without a click."""

SHOWN = 8
"""Kinds of outcome that a case's page shows in full, the most severe first."""

SCRIPTS = (
    *("dom", "text", "timers", "data", "matrix"),
    *("fields", "versions", "syntax", "condition", "query", "completion", "counts", "pivot", "address"),
    *("part", "squares", "headings", "rows", "cursor", "grid"),
    *("commands", "next", "facts", "sections", "diff", "code", "panel"),
    *("search", "filters", "views", "app"),
)
"""The matrix's scripts, in loading order: computation, the table, the panel, the page."""

STYLES = ("style.css", "matrix.css")
"""The style sheets: one for every page, and one for the matrix."""

LIST_SCRIPTS = ("dom", "timers", "lists")
"""The scripts of pages that consist of one long list."""

ANSWER_SCRIPTS = ("dom", "timers", "data", "question", "intents", "requests", "answer", "tools", "ask")
"""The scripts of the answer page."""

_POLICY = "; ".join(  # noqa: FLY002 - one rule a line
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        # No text becomes a script or markup. The only policy allows the names of the report's own data files.
        "require-trusted-types-for 'script'",
        "trusted-types cumatrix",
    )
)


def answer_page(answers: Mapping[str, Any], table: pd.DataFrame, frame: Frame) -> str:
    """Render ``index.html``, the answer page.

    Parameters
    ----------
    answers : Mapping
        The content of the page (`harness.report.site.front_of`).
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    frame : Frame
        The common frame of all pages.
    """
    return _template("index.html").render(
        root="", here="index", frame=frame, total=Sum(totals(table)), listed=FRONT, first_listed=OPEN, **answers
    )


def matrix_page(
    merged: Merged,
    table: pd.DataFrame,
    groups: Mapping[str, Sequence[CellGroup]],
    files: Mapping[str, str],
    warnings: Iterable[str],
    frame: Frame,
    published: Mapping[str, Any] | None = None,
) -> str:
    """Render ``matrix.html``.

    Parameters
    ----------
    merged : Merged
        Records and plans.
    table : DataFrame
        The cells of `merged` (`harness.analysis.cells_frame`).
    groups : Mapping
        The groups of `merged` (`harness.report.case.group_cells`).
    files : Mapping[str, str]
        Page of each case.
    warnings : iterable of str
        Warnings from reading the records.
    frame : Frame
        The common frame of all pages.
    published : Mapping, optional
        Notes on published cells (`harness.report.site.Site.published`).
    """
    order = list(KINDS)
    # An unavailable part takes one line.
    bad = [
        (case, group)
        for case, own in groups.items()
        for group in own
        if not group.kind.as_expected and group.kind.key != "unavailable"
    ]
    bad.sort(key=lambda item: order.index(item[1].kind.key))
    return _template("matrix.html").render(
        root="",
        here="matrix",
        frame=frame,
        files=files,
        overview=make_overview(table),
        unavailable=unavailable_of(table),
        devices=virtual_against_real(merged.records),
        listed=LISTED,
        bad=bad[:LISTED],
        more=max(0, len(bad) - LISTED),
        conflicts=merged.conflicts[:LISTED],
        conflicts_count=len(merged.conflicts),
        unanswered=merged.unanswered[:LISTED],
        unanswered_count=len(merged.unanswered),
        spell_other_result=spell_other_result,
        runs=runs_of(merged),
        most_runs=RUNS,
        warnings=list(warnings),
        published=published,
    )


def case_page(
    case: str,
    table: pd.DataFrame,
    groups: Sequence[CellGroup],
    sources: Mapping[str, str],
    frame: Frame,
    page: str,
    feature: FeaturePage,
    faults: Sequence[tuple[str, str]] = (),
    published: Mapping[str, Any] | None = None,
    embedded: Embedded | None = None,
) -> str:
    """Render the page of a case.

    Parameters
    ----------
    case : str
        Its name.
    table : DataFrame
        Its rows of `harness.analysis.cells_frame`.
    groups : sequence of CellGroup
        Its cells, by outcome.
    sources : Mapping[str, str]
        Texts of its files.
    frame : Frame
        The common frame of all pages.
    page : str
        Name of its file.
    feature : FeaturePage
        Its findings.
    faults : sequence of (str, str)
        Its known faults: the reason, and the upstream report.
    published : Mapping, optional
        Notes on published cells (`harness.report.site.Site.published`).
    embedded : Embedded, optional
        Its embeddable parts.
    """
    own = own_part(table) if published and not published["alone"] else table
    theirs = table[table["environment"] == ENVIRONMENT]
    shown = groups[:SHOWN]
    about = next((group.first for group in groups if "features" in group.first), None)
    return _template("case.html").render(
        root="../",
        here="case",
        frame=frame,
        page=page,
        case=case,
        title=str(table["title"].iloc[0]),
        features=about["features"] if about else [],
        links=about["links"] if about else [],
        feature=feature,
        faults=faults,
        helps=helps_of(groups),
        proof=proof_link,
        longest=LONGEST,
        again=again_of(groups),
        own_file=f"kernel.{'cu' if any(name.endswith('.cu') for name in sources) or not sources else 'py'}",
        snippet=snippet_of(sources),
        sum=Sum(totals(table)),
        own_sum=Sum(totals(own)) if published and not published["alone"] and len(theirs) < len(table) else None,
        published_sum=Sum(totals(theirs)) if published and len(theirs) else None,
        published=published,
        is_own=is_own,
        embedded=embedded,
        every=f"../{matrix_link(case=case)}",
        link_of=cell_link,
        first_helps=HELPS,
        first_faults=FAULTS,
        first_groups=OUTCOMES,
        first_variants=VARIANTS,
        short=SHORT,
        places=PLACES,
        groups=shown,
        remedies=remedies,
        more=len(groups) - len(shown),
        sources=sources,
    )


def embedded_page(case: str, title: str, page: str, feature: FeaturePage, frame: Frame) -> str:
    """Render a feature's table alone, for an ``<iframe>``."""
    return _template("feature.html").render(root="../", here="feature", frame=frame, case=case, title=title or case, page=page, feature=feature)  # fmt: skip


def section_page(section: Section, frame: Frame, files: Mapping[str, str]) -> str:
    """Render the page of a section."""
    template = _template(f"{section.name}.html")
    return template.render(root="", here=section.name, frame=frame, files=files, **section.values)


_COMMENT = re.compile(r"^[ \t]*(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)[ \t]*\n", re.MULTILINE)
"""Whole lines of comments in a script. Published scripts omit them."""


def assets() -> dict[str, bytes]:
    """Return the page's scripts and style sheets by file name."""
    folder = resources.files("harness.report") / "assets"
    scripts = dict.fromkeys((*SCRIPTS, *ANSWER_SCRIPTS, *LIST_SCRIPTS))
    styles = {name: _environment().from_string((folder / name).read_text("utf-8")).render() for name in STYLES}
    return {
        **{name: f"{style}\n".encode() for name, style in styles.items()},
        "icon.svg": (folder / "icon.svg").read_bytes(),
        **{f"{name}.js": _COMMENT.sub("", (folder / f"{name}.js").read_text("utf-8")).encode() for name in scripts},
    }


@cache
def _template(name: str) -> jinja2.Template:
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        # Set for every file, independent of its suffix: logs are foreign text.
        autoescape=True,
        loader=jinja2.FunctionLoader(_resource),
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        version=__version__,
        kinds=KINDS,
        cell_groups=GROUPS,
        answer_kinds=ANSWER_KINDS,
        names=[name for name in RESULTS if name != "cell"],
        policy=_POLICY,
        scripts=SCRIPTS,
        answer_scripts=ANSWER_SCRIPTS,
        list_scripts=LIST_SCRIPTS,
        excerpt=excerpt,
        named_toolkit=named_toolkit,
        split_newest=split_newest,
        newest_first=newest_first,
        short_of=short_of,
        version_columns=version_columns,
    )
    environment.filters.update(link=safe_link, one_line=one_line, anchor=anchor_of, spell=spell)
    return environment


def _finalize(value: Any) -> Any:
    # Names of cases and classes repeat often. Only text outside of printable ASCII needs a check.
    if type(value) is str and not (value.isascii() and value.isprintable()):
        return clean(value)
    return value


def _resource(name: str) -> str:
    return (resources.files("harness.report") / "templates" / name).read_text(encoding="utf-8")
