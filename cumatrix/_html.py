"""The matrix as a piece of HTML for notebooks: no script, no style sheet, every word of others escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from harness.diagnostics import one_line
from harness.matrix.kinds import KINDS, Mark, kind_of
from harness.matrix.rows import rows_of, short_target, targets_of

MAX_ROWS = 200
"""Lines of the matrix that are shown; a notebook keeps them all in its file."""

# Both of light and of dark notebooks: the letter tells as much as the colour does.
_COLOURS = {"green": "#2e7d3266", "cyan": "#0277bd55", "yellow": "#f9a82577", "magenta": "#ad145777", "red": "#c6282888", "dim": "transparent"}  # fmt: skip


def matrix_html(records: Sequence[Mapping[str, Any]], missing: int = 0) -> str:
    """A table, with the number of planned cells that never arrived: programs and toolchains down, targets across, the letter of its kind in each field, and the message as a tooltip."""
    targets, rows = targets_of(records), rows_of(records)
    head = "".join(f'<th scope="col">{escape(short_target(target))}</th>' for target in targets)
    lines, shown = [], ""
    for row in rows[:MAX_ROWS]:
        if row.program != shown:
            shown = row.program
            lines.append(
                f'<tr><th scope="rowgroup" colspan="{len(targets) + 1}" style="text-align:left">{_text(shown)}</th></tr>'
            )
        fields = "".join(_field(row.cells.get(target)) for target in targets)
        lines.append(
            f'<tr><th scope="row" style="text-align:left;font-weight:normal">{_text(row.toolchain)}</th>{fields}</tr>'
        )
    more = f"<p>and {len(rows) - MAX_ROWS:,} more lines</p>" if len(rows) > MAX_ROWS else ""
    return (
        f'<table class="cumatrix"><caption style="text-align:left">{_counts(records, missing)}</caption>'
        f"<thead><tr><th></th>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>{more}"
    )


def _counts(records: Sequence[Mapping[str, Any]], missing: int) -> str:
    counts = Counter({"missing": missing})
    counts.update(kind_of(record).key for record in records)
    words = (f"{kind.letter} {counts[key]:,} {kind.word}" for key, kind in KINDS.items() if counts[key])
    return f"{len(records) + missing:,} cells: {escape(', '.join(words))}"


def _field(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "<td></td>"
    kind = kind_of(record)
    said = record["diagnostics"][0]["message"] if record["diagnostics"] else record["reason"] or ""
    title = f"{record['target']}: {kind.word}" + (f": {said}" if said else "")
    return f'<td title="{_text(title, 300)}" style="text-align:center;background:{_colour(kind)}">{kind.letter}</td>'


def _colour(kind: Mark) -> str:
    return _COLOURS[kind.style.split()[-1]]


def _text(text: str, most: int = 200) -> str:
    return escape(one_line(text, most))
