"""Bars and lines as SVG, by matplotlib: no clock, no fonts in it, no formulas in names."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from harness.report.svg import for_pages
from harness.report.text import one_line
from harness.report.xml import xml_text

# Colours of Okabe and Ito, which all eyes tell apart; with dashes and markers as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f", "#8c564b")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MANY = 8
"""Lines that a picture can have."""

_TICKS = 40
# Text and lines are drawn in a colour that nothing else has, and then take the page's own.
_INK = "#010203"
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "cumatrix",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": _INK,
    "grid.alpha": 0.15,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "text.parse_math": False,  # names of kernels and cases are no formulas, and a wrong one would raise
}


@dataclass(frozen=True)
class BarPart:
    """One kind of a bar's parts: a word, a colour, a hatch."""

    word: str
    colour: str
    hatch: str


@mpl.rc_context(_STYLE)
def bars(counts: pd.DataFrame, kinds: Mapping[str, BarPart], up: str, title: str, description: str) -> str:
    """One bar a row, in parts that make 100 % together; columns are the keys of `kinds`."""
    share = counts.div(counts.sum(axis=1), axis=0) * 100
    figure, axes = _figure(max(4.6, 1.8 + 0.55 * len(counts)), 3.2)
    below = np.zeros(len(counts))
    places = np.arange(len(counts))
    for key, kind in kinds.items():
        if counts[key].any():
            axes.bar(
                places, share[key], 0.72, bottom=below, label=kind.word, color=kind.colour, hatch=kind.hatch,
                edgecolor="white", linewidth=0.5,
            )  # fmt: skip
            below = below + share[key].to_numpy()
    slanted = len(counts) > 5
    names = [plain(str(name)) for name in counts.index]
    axes.set_xticks(places, names, rotation=45 if slanted else 0, ha="right" if slanted else "center")
    axes.set_ylabel(up)
    axes.set_ylim(0, 100)
    _legend(figure, 3)
    return _svg(figure, axes, title, description)


@mpl.rc_context(_STYLE)
def lines(values: pd.DataFrame, ticks: Sequence[str], across: str, up: str, title: str, *, log: bool = False) -> str:
    """Lines over named places, `MANY` at most; one row a line."""
    figure, axes = _figure(max(4.5, 2.2 + 0.42 * len(ticks)), 3.4)
    shown = values.iloc[:MANY]
    places = np.arange(len(ticks))
    for place, (name, row) in enumerate(shown.iterrows()):
        axes.plot(
            places, row.to_numpy(dtype="float64"), color=_COLOURS[place], marker=_MARKERS[place], markersize=5, linewidth=1.4,
            linestyle=("-", "--", "-.", ":")[place % 4], label=plain(str(name)),
        )  # fmt: skip
    every = -(-len(ticks) // _TICKS)
    axes.set_xticks(places[::every], ticks[::every], rotation=45 if len(ticks) > 6 else 0)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda _value, _place: ""))
    else:
        axes.set_ylim(bottom=0)
    _legend(figure, 2)
    description = [
        f"{plain(str(name))}: "
        + ", ".join(f"{tick} {value:.4g}" for tick, value in zip(ticks, row, strict=True) if pd.notna(value))
        for name, row in shown.iterrows()
    ]
    if len(values) > MANY:
        description.append(f"and {len(values) - MANY} more that are not drawn")
    return _svg(figure, axes, title, "; ".join(description))


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(min(width, 12.0), height), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    return figure, axes


def _legend(figure: Figure, columns: int) -> None:
    """A legend below, of as many columns as there is room for; where one is too wide, the picture widens."""
    for count in range(columns, 0, -1):
        legend = figure.legend(loc="outside lower center", ncols=count, frameon=False, labelcolor=_INK)
        wide = legend.get_window_extent().width / figure.dpi + 0.2
        if wide <= figure.get_figwidth():
            return
        if count > 1:
            legend.remove()
    figure.set_figwidth(wide)


def _svg(figure: Figure, axes: Any, title: str, description: str) -> str:
    axes.set_axisbelow(True)
    axes.set_title(plain(title, 90), loc="left", fontsize=11)
    stream = io.StringIO()
    FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return for_pages(
        stream.getvalue(), title=plain(title, 200), description=xml_text(one_line(description, 4000)), ink=_INK
    )


def plain(text: str, limit: int = 60) -> str:
    """Text of others on one line, as XML can hold it."""
    return xml_text(one_line(text, limit))
