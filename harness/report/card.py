"""The picture that a shared link shows: the report's name, its numbers, and what works by topic and tool."""

from __future__ import annotations

import io
import textwrap
import warnings

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from harness.matrix.kinds import GROUPS
from harness.matrix.order import backend_key, natural_key
from harness.report.draw import plain
from harness.report.overview import Sum
from harness.report.table import parts, totals

NAME = "card.png"
WIDTH, HEIGHT = 1200, 630
"""In pixels: what Open Graph's users show whole."""

_TOPICS, _TOOLS = 16, 9
_INK, _SOFT, _PAPER, _NOTHING = "#1b1f24", "#57606a", "#ffffff", "#eef1f4"
# From "nothing works" to "all works", told apart by every eye.
_SHARE = LinearSegmentedColormap.from_list("works", ("#d55e00", "#f3d9a4", "#009e73"))
_COLOURS = {"works": "#007a59", "not": "#8a5a00", "fault": "#7b2d8b", "surprise": "#b3261e"}
_STYLE = {"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "text.parse_math": False}


def described(table: pd.DataFrame, title: str) -> str:
    """Alternative text of the picture."""
    return f"{title}: {len(table):,} cells; {Sum(totals(table)).said}"


@mpl.rc_context(_STYLE)
def card(table: pd.DataFrame, title: str) -> bytes:
    """Draw it, as PNG.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.cells_frame`.
    title : str
        The report's name.
    """
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=_PAPER)
    total = Sum(totals(table))
    name = textwrap.fill(plain(title, 90), 22, max_lines=4, placeholder=" …")
    figure.text(0.04, 0.92, name, fontsize=30, weight="bold", color=_INK, va="top", linespacing=1.15)
    top = 0.92 - 0.1 * (name.count("\n") + 1)
    counted = f"{table['case'].nunique():,} features · {len(table):,} cells"
    figure.text(0.04, top - 0.01, counted, fontsize=17, color=_SOFT, va="top")
    for place, (key, colour) in enumerate(_COLOURS.items()):
        line = top - 0.15 - place * 0.085
        figure.text(0.17, line, f"{total.of(key):,}", fontsize=24, weight="bold", color=colour, ha="right", va="top")
        figure.text(0.185, line - 0.012, GROUPS[key], fontsize=17, color=_INK, va="top")
    figure.text(0.04, 0.05, "compiled, not guessed · cumatrix", fontsize=14, color=_SOFT)
    _heat(figure, table)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that the font does not have are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
    return stream.getvalue()


def _heat(figure: Figure, table: pd.DataFrame) -> None:
    """The share of answered cells that work, by topic and backend; the largest ones if there are too many."""
    sums = {key: Sum(totals(part)) for key, part in parts(table, "topic", "backend")}
    shares = {key: found.of("works") / found.answered for key, found in sums.items() if found.answered}
    if not shares:
        return
    many = [table[key].value_counts().index for key in ("topic", "backend")]
    known = [{key[side] for key in shares} for side in (0, 1)]
    topics = sorted([item for item in many[0] if item in known[0]][:_TOPICS], key=natural_key)
    tools = sorted([item for item in many[1] if item in known[1]][:_TOOLS], key=backend_key)
    axes = figure.add_axes((0.6, 0.06, 0.33, 0.7))
    axes.set_xlim(0, len(tools))
    axes.set_ylim(len(topics), 0)
    for down, topic in enumerate(topics):
        for across, tool in enumerate(tools):
            share = shares.get((topic, tool))
            colour = _NOTHING if share is None else _SHARE(share)
            axes.add_patch(
                mpl.patches.Rectangle((across + 0.04, down + 0.05), 0.92, 0.9, facecolor=colour, linewidth=0)
            )
    size = 13 if len(topics) > 8 else 15
    axes.set_yticks([place + 0.5 for place in range(len(topics))], [plain(name, 22) for name in topics], fontsize=size)
    names = [plain(name, 14) for name in tools]
    axes.set_xticks([place + 0.5 for place in range(len(tools))], names, fontsize=13, rotation=40, ha="left")
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=_INK)
    axes.spines[:].set_visible(False)
