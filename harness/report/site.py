"""The site: every file of the page, and what is in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd

from harness.records import Merged
from harness.report.data import compact, matrix_data, more_data, script
from harness.report.details import chunks
from harness.report.groups import group_cells
from harness.report.matrix import parts
from harness.report.page import assets, case_page, index_page, page_names
from harness.report.sources import case_files


def site_files(
    merged: Merged, table: pd.DataFrame, warnings: Iterable[str], cases: Path | None
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, one after another: all of them together may be large.

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
    """
    files = page_names(table["case"])
    records = {record["cell"]: record for record in merged.records}
    groups = group_cells(merged)
    for name, data in assets().items():
        yield f"assets/{name}", data
    yield "index.html", _text(index_page(merged, table, groups, files, warnings))

    shown = {}
    for (case,), part in parts(table, "case"):
        sources = case_files(cases, case)
        if sources:
            shown[case] = f"files-{files[case].removesuffix('.html')}"
            yield f"data/{shown[case]}.js", script(shown[case], compact(sources))
        yield f"cases/{files[case]}", _text(case_page(case, part, groups[case], sources))

    starts = []
    for number, (start, text) in enumerate(chunks(table["cell"], records)):
        starts.append(start)
        yield f"data/cells-{number}.js", script(f"cells-{number}", text)
    about = {record["case"]: record for record in reversed(merged.records)}
    matrix = matrix_data(table, about, files)
    for case, item in zip(matrix["names"]["case"], matrix["cases"], strict=True):
        item["files"] = shown.get(case, "")
    yield "data/matrix.js", script("matrix", compact({**matrix, "chunks": starts}))
    yield "data/more.js", script("more", compact(more_data(table, records)))


def _text(page: str) -> bytes:
    return page.encode("utf-8", "replace")
