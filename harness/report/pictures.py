"""Pictures where a plot tells more than a table: SVG texts, the same for the same cells, readable in light and dark."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from harness.analysis.frame import ANSWERED, target_key
from harness.report.matrix import version_key
from harness.report.svg import for_pages
from harness.report.text import one_line
from harness.report.xml import xml_text

# Colours of Okabe and Ito, which all eyes tell apart; with dashes and markers as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f", "#8c564b")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_HATCHES = {"built": "", "rejected": "///", "died": "xx", "unsupported": "", "unknown": "--"}
_FILLS = {"built": "#009e73", "rejected": "#d55e00", "died": "#7b2d8b", "unsupported": "#9e9e9e", "unknown": "#e0b000"}
_WORDS = {
    "built": "built",
    "rejected": "rejected",
    "died": "crashed or timed out",
    "unsupported": "unsupported",
    "unknown": "unknown or missing",
}
_MANY = 8
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


def pictures(table: pd.DataFrame) -> dict[str, str]:
    """Every picture that the cells have something to say to, by name.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.cells_frame`.
    """
    made = {"compile-time-by-toolkit": compile_times(table)}
    for backend in dict.fromkeys(table["backend"]):
        part = table[table["backend"] == backend]
        axis = "library" if part["library"].nunique() > 1 else "toolkit"
        made[f"outcomes-{backend}"] = outcomes_by_version(part, axis, title=f"{backend}: outcomes by version")
    return {name: svg for name, svg in made.items() if svg}


@mpl.rc_context(_STYLE)
def outcomes_by_version(table: pd.DataFrame, axis: str = "library", *, title: str = "Outcomes by version") -> str:
    """Share of cells by outcome along the versions of ``library`` or ``toolkit``, oldest first; empty where there are none.

    ``unsupported`` cells are shown, so that a bar never looks fuller than it is.
    """
    part = table[(table[axis] != "") & (table["headers"] == "")]
    if part.empty:
        return ""
    kinds = part["outcome"].map(_kind)
    counts = pd.crosstab(part[axis], kinds).reindex(columns=list(_WORDS), fill_value=0)
    counts = counts.loc[sorted(counts.index, key=version_key)]
    share = counts.div(counts.sum(axis=1), axis=0) * 100
    figure, axes = _figure(max(4.0, 1.8 + 0.55 * len(counts)), 3.2)
    below = np.zeros(len(counts))
    places = np.arange(len(counts))
    for kind in _WORDS:
        if counts[kind].any():
            axes.bar(
                places,
                share[kind],
                0.72,
                bottom=below,
                label=_WORDS[kind],
                color=_FILLS[kind],
                hatch=_HATCHES[kind],
                edgecolor="white",
                linewidth=0.5,
            )
            below = below + share[kind].to_numpy()
    axes.set_xticks(
        places,
        [_plain(name) for name in counts.index],
        rotation=45 if len(counts) > 5 else 0,
        ha="right" if len(counts) > 5 else "center",
    )
    axes.set_ylabel("% of cells")
    axes.set_ylim(0, 100)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, labelcolor=_INK)
    told = "; ".join(
        f"{_plain(str(name))}: " + ", ".join(f"{int(row[kind])} {_WORDS[kind]}" for kind in _WORDS if row[kind])
        for name, row in counts.iterrows()
    )
    return _svg(figure, axes, title, told)


def resources_by_target(table: pd.DataFrame, resource: str = "registers", *, title: str = "") -> str:
    """The greatest ``registers``, ``shared`` or ``spills`` of a kernel by real architecture, one line a toolchain; empty where nothing was built.

    Parameters
    ----------
    table : DataFrame
        Cells of one case and variant.
    resource : str
        The column.
    title : str, optional
        Made of the case where it is left out.
    """
    part = table[table[resource].notna() & table["target"].str.startswith("sm_")]
    if part.empty:
        return ""
    targets = sorted(set(part["target"]), key=target_key)
    unit = {"registers": "registers a thread", "shared": "bytes of shared memory", "spills": "bytes spilled"}[resource]
    values = part.assign(series=_series(part)).groupby(["series", "target"], sort=False)[resource].max().unstack()
    lines = _same_together(values.reindex(columns=targets).astype("float64"))
    return _lines(
        lines,
        [target.removeprefix("sm_") for target in targets],
        "architecture (sm_)",
        unit,
        title or _title(part, unit),
    )


def compile_times(table: pd.DataFrame, *, title: str = "Compile time by toolkit") -> str:
    """Median seconds of a cell by toolkit, on a logarithmic scale; empty where nothing was compiled.

    One line a backend and library, or a backend where those are too many; each over the programs that all its toolkits compiled.
    """
    if table.empty:
        return ""
    part = table[
        table["outcome"].str.partition(" ")[0].isin(ANSWERED) & table["seconds"].gt(0) & (table["headers"] == "")
    ]
    if part.empty:
        return ""
    toolkits = sorted(set(part["toolkit"]), key=version_key)
    names = (part["backend"] + " " + part["library"]).str.strip()
    part = part.assign(series=names if names.nunique() <= _MANY else part["backend"])
    lines = {
        name: _of_the_same_programs(rows).groupby("toolkit")["seconds"].median()
        for name, rows in part.groupby("series", sort=False)
    }
    values = pd.DataFrame(lines).T.reindex(columns=toolkits)
    return _lines(values, [_plain(name) for name in toolkits], "CUDA", "seconds (median)", title, log=True)


def outcomes_over_time(runs: pd.DataFrame, *, title: str = "Cells over time") -> str:
    """Cells that were built, that are not as expected and that never arrived, run by run; empty where there are less than two.

    Parameters
    ----------
    runs : DataFrame
        Rows of one environment of `harness.analysis.trends.trend`.
    """
    if len(runs) < 2:
        return ""
    names = {"cells": "all", "built": "built", "bad": "not as expected", "missing": "never arrived"}
    values = runs[list(names)].rename(columns=names).astype("float64").T
    ticks = [_plain(started[:10] or run, 12) for started, run in zip(runs["started"], runs["run"], strict=True)]
    values.columns = range(len(ticks))
    return _lines(values, ticks, "run", "cells", title)


def _of_the_same_programs(rows: pd.DataFrame) -> pd.DataFrame:
    """Only the cases and variants that all toolkits of a line compiled, where there are any: else two toolkits show two programs."""
    programs = rows["case"] + " " + rows["variant"]
    common = rows.groupby(programs)["toolkit"].nunique() == rows["toolkit"].nunique()
    kept = rows[programs.map(common)]
    return rows if kept.empty else kept


@mpl.rc_context(_STYLE)
def _lines(values: pd.DataFrame, ticks: Sequence[str], across: str, up: str, title: str, *, log: bool = False) -> str:
    figure, axes = _figure(max(4.5, 2.2 + 0.42 * len(ticks)), 3.4)
    shown = values.iloc[:_MANY]
    places = np.arange(len(ticks))
    for place, (name, row) in enumerate(shown.iterrows()):
        axes.plot(
            places, row.to_numpy(dtype="float64"), color=_COLOURS[place], marker=_MARKERS[place], markersize=5, linewidth=1.4,
            linestyle=("-", "--", "-.", ":")[place % 4], label=_plain(str(name)),
        )  # fmt: skip
    every = -(-len(ticks) // _TICKS)
    axes.set_xticks(places[::every], ticks[::every], rotation=45 if len(ticks) > 6 else 0)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, place: ""))
    else:
        axes.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, labelcolor=_INK)
    told = [
        f"{_plain(str(name))}: "
        + ", ".join(f"{tick} {value:.4g}" for tick, value in zip(ticks, row, strict=True) if pd.notna(value))
        for name, row in shown.iterrows()
    ]
    if len(values) > _MANY:
        told.append(f"and {len(values) - _MANY} more that are not drawn")
    return _svg(figure, axes, title, "; ".join(told))


def _same_together(values: pd.DataFrame) -> pd.DataFrame:
    """Toolchains with the same numbers as one line: they would lie upon each other."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for name, row in values.iterrows():
        groups.setdefault(tuple(row.fillna(-1)), []).append(str(name))
    names = [
        members[0] if len(members) == 1 else f"{members[0]} and {len(members) - 1} more" for members in groups.values()
    ]
    return pd.DataFrame(
        [values.loc[members[0]].to_numpy() for members in groups.values()], index=names, columns=values.columns
    )


def _series(part: pd.DataFrame) -> pd.Series:
    return (part["backend"] + " " + part["library"]).str.strip() + ", CUDA " + part["toolkit"]


def _title(part: pd.DataFrame, unit: str) -> str:
    first = part.iloc[0]
    name = f"{first['case']}[{first['variant']}]" if first["variant"] else first["case"]
    return f"{name}: {unit}"


def _kind(outcome: str) -> str:
    word = outcome.partition(" ")[0]
    kinds = {"compiled": "built", "crashed": "died", "timed_out": "died"}
    return kinds.get(word, word if word in _WORDS else "unknown")


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(min(width, 12.0), height), layout="constrained")
    figure.patch.set_alpha(0)
    axes = figure.add_subplot()
    axes.patch.set_alpha(0)
    return figure, axes


def _svg(figure: Figure, axes: Any, title: str, told: str) -> str:
    axes.set_axisbelow(True)
    axes.set_title(_plain(title, 90), loc="left", fontsize=11)
    stream = io.StringIO()
    FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return for_pages(stream.getvalue(), title=_plain(title, 200), told=xml_text(one_line(told, 4000)), ink=_INK)


def _plain(text: str, limit: int = 60) -> str:
    return xml_text(one_line(text, limit))
