"""The pages: an index with the matrix, and one page a case with what happened to each cell."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from harness import __version__
from harness.records import Merged, Record
from harness.report.grid import make_grid
from harness.report.groups import Group, anchor_of, axes, group_cells
from harness.report.lists import Absent, absent, problems
from harness.report.marks import MARKS
from harness.report.matrix import parts, row_key
from harness.report.overview import make_overview, stack
from harness.report.provenance import runs_of, spell
from harness.report.sources import case_files
from harness.report.text import clean, one_line, safe_link

LISTED = 200
"""Entries that the lists at the top of the index name; the rest is in the exports."""


def render_pages(merged: Merged, table: pd.DataFrame, warnings: Iterable[str], cases: Path | None) -> dict[str, str]:
    """Render the report.

    Parameters
    ----------
    merged : Merged
        Records and plans.
    table : DataFrame
        `harness.report.matrix.frame` of them.
    warnings : iterable of str
        What reading the records had to say.
    cases : Path or None
        Folder of the cases, to show their files.

    Returns
    -------
    dict
        Text by name of file below the folder of the report.
    """
    targets = axes([*merged.records, *merged.missing])
    groups = group_cells(merged.records, targets)
    missing = absent(merged.missing, targets)
    wrong = problems(groups)
    files = page_names(table["case"])
    style = _resource("style.css")
    shared = {
        "version": __version__,
        "style": style,
        "style_hash": base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        "marks": MARKS,
        "files": files,
    }

    pages = {}
    grids = [make_grid(topic, part, files, "cases/") for (topic,), part in parts(table, "topic")]
    pages["index.html"] = (
        _environment()
        .get_template("index.html")
        .render(
            **shared,
            cells=len(table),
            stack=stack(table),
            overview=make_overview(table),
            grids=grids,
            problems=wrong[:LISTED],
            unexpected_cells=sum(len(group.records) for item in wrong for group in item.groups),
            more=max(0, len(wrong) - LISTED),
            missing=missing[:LISTED],
            missing_cells=len(merged.missing),
            more_missing=max(0, len(missing) - LISTED),
            conflicts=merged.conflicts[:LISTED],
            conflicts_count=len(merged.conflicts),
            runs=runs_of(merged),
            warnings=list(warnings),
        )
    )
    by_case: dict[str, list[Group]] = {}
    for group in groups:
        by_case.setdefault(group.first["case"], []).append(group)
    template = _environment().get_template("case.html")
    for (case,), part in parts(table, "case"):
        grid = make_grid(case, part, dict.fromkeys(files, ""), "")
        own = by_case.get(case, [])
        pages[f"cases/{files[case]}"] = template.render(
            **shared,
            **_about(case, part, own),
            grid=grid,
            stack=stack(part),
            variants=_by_variant(own, [item for item in missing if item.case == case]),
            sources=case_files(cases, case),
        )
    return pages


def page_names(cases: Iterable[str]) -> dict[str, str]:
    """Name of the page of each case: made of letters that are safe in paths and addresses, never twice the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for case in sorted(set(cases)):
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", case).strip(".-")[:80]
        # Case-insensitive file systems would put A.html and a.html into one file.
        if not stem or stem.lower() in taken:
            stem = f"{stem}-{anchor_of(case)}".lstrip("-")
        taken.add(stem.lower())
        names[case] = f"{stem}.html"
    return names


def _about(case: str, part: pd.DataFrame, groups: list[Group]) -> dict[str, Any]:
    first: Record | None = groups[0].first if groups else None
    return {
        "case": case,
        "title": str(part["title"].iloc[0]),
        "features": first["features"] if first else [],
        "links": [link for link in (safe_link(link) for link in (first["links"] if first else [])) if link],
    }


def _by_variant(groups: list[Group], missing: list[Absent]) -> list[dict[str, Any]]:
    variants: dict[str, dict[str, Any]] = {}
    for name in [group.first["variant"] for group in groups] + [item.variant for item in missing]:
        variants.setdefault(name, {"name": name, "groups": [], "missing": []})
    for group in groups:
        variants[group.first["variant"]]["groups"].append(group)
    for item in missing:
        variants[item.variant]["missing"].append(item)
    return sorted(variants.values(), key=lambda variant: row_key("", "", variant["name"]))


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        # Always, not by the ending of a file's name: logs are written by whoever wrote the program.
        autoescape=True,
        loader=jinja2.FunctionLoader(_resource),
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: clean(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(link=safe_link, one_line=one_line, anchor=anchor_of, spell=spell)
    return environment


def _resource(name: str) -> str:
    return (resources.files("harness.report") / "templates" / name).read_text(encoding="utf-8")
