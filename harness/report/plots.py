"""SVG charts, deterministic and readable in light and dark themes."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from harness.analysis.frame import rows_of
from harness.backends import label_of
from harness.matrix.axes import (
    AXIS,
    TOOLCHAIN,
    backend_key,
    natural_key,
    short_target,
    target_key,
    version_key,
)
from harness.matrix.marks import GROUPS
from harness.model.cell import named_toolkit
from harness.model.target import NVIDIA
from harness.protocol.text import one_line
from harness.report.junit import xml_text
from harness.report.overview import Sum, parts, totals

_STYLE_ATTRIBUTE = re.compile(r' style="([^"]*)"')
_FONT = re.compile(r"(?:(?P<weight>bold|\d00) )?(?P<size>[\d.]+)px (?P<family>.+)")


def for_pages(svg: str, *, title: str, description: str, ink: str) -> str:
    """Rewrite an SVG.

    Parameters
    ----------
    svg : str
        The output of ``FigureCanvasSVG``.
    title, description : str
        The texts for screen readers: a name, and the numbers.
    ink : str
        The colour that becomes the page's own (``currentColor``).
    """
    text = svg[svg.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>\s*", "", text, count=1)
    text = _STYLE_ATTRIBUTE.sub(lambda match: _attributes(match[1]), text).replace(ink, "currentColor")
    text = _own_ids(text, blake2s(f"{title}\n{text}".encode(), digest_size=4).hexdigest())
    head, rest = text.split(">", 1)
    name = escape(title, {'"': "&quot;"})
    # These inherited attributes replace the rules of the style sheet for all elements.
    head += f' stroke-linejoin="round" stroke-linecap="butt" role="img" aria-label="{name}"'
    return f"{head}>\n <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>{rest}"


def _attributes(style: str) -> str:
    """Return ``fill: none; stroke: #000`` as attributes.

    SVG has an attribute for every property that matplotlib writes.
    """
    found = []
    for item in style.replace("&quot;", "'").split(";"):
        name, _, value = (part.strip() for part in item.partition(":"))
        if not value:
            continue
        if name == "font" and (match := _FONT.fullmatch(value)):
            found += [
                ("font-size", match["size"]),
                ("font-family", match["family"]),
                ("font-weight", match["weight"] or ""),
            ]
        else:
            found.append((name, value))
    return "".join(f' {name}="{value}"' for name, value in found if value)


def _own_ids(text: str, prefix: str) -> str:
    """Keep referenced ids, with a prefix: a page may have several pictures."""
    used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda match: f' id="{prefix}-{match[1]}"' if match[1] in used else "", text)
    return re.sub(r'(url\(#|href="#)([\w-]+)', rf"\g<1>{prefix}-\g<2>", text)


# The colours of Okabe and Ito are distinct for colour-blind readers. Dashes and markers differ as well.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b8860b", "#56b4e9", "#7f7f7f", "#8c564b")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MANY = 8
"""Maximum number of lines in a picture."""

_TICKS = 40
# Text and lines are drawn in a unique colour, which then becomes the page's own.
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
    "text.parse_math": False,  # names of kernels and cases are not formulas, and an invalid formula would raise
}


@dataclass(frozen=True)
class BarPart:
    """One kind of a bar's parts: a word, a colour, a hatch."""

    word: str
    colour: str
    hatch: str


@mpl.rc_context(_STYLE)
def bars(counts: pd.DataFrame, kinds: Mapping[str, BarPart], up: str, title: str, description: str) -> str:
    """Draw one bar per row. Its parts add up to 100 %, and the columns are the keys of `kinds`."""
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
def lines(values: pd.DataFrame, ticks: Sequence[str], across: str, up: str, title: str, *, top: float = 0) -> str:
    """Draw lines over named places, at most `MANY`, one per row. The scale starts at 0 and ends at `top` or above."""
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
    axes.set_ylim(0, max(top, axes.get_ylim()[1]))
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
    """Draw a legend below with as many columns as fit. If one column is too wide, the picture widens."""
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
    # About this many characters of this size fit in an inch.
    title_text = textwrap.fill(plain(title, 200), int(figure.get_figwidth() * 10))
    axes.set_title(title_text, loc="left", fontsize=11)
    stream = io.StringIO()
    FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return for_pages(
        stream.getvalue(), title=plain(title, 200), description=xml_text(one_line(description, 4000)), ink=_INK
    )


def plain(text: str, limit: int = 60) -> str:
    """Return foreign text on one line, without characters that XML cannot contain."""
    return xml_text(one_line(text, limit))


_KINDS = {
    "built": BarPart("built", "#009e73", ""),
    "rejected": BarPart("rejected", "#d55e00", "///"),
    "died": BarPart("crashed or timed out", "#7b2d8b", "xx"),
    "unsupported": BarPart("unsupported", "#9e9e9e", ""),
    "unknown": BarPart("unknown or missing", "#e0b000", "--"),
}


def pictures(table: pd.DataFrame) -> dict[str, str]:
    """Return every picture with a finding, by name.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    """
    made = {}
    for backend in dict.fromkeys(table["backend"]):
        part = table[table["backend"] == backend]
        axis = "library" if part["library"].nunique() > 1 else "toolkit"
        made[f"outcomes-{backend}"] = outcomes_by_version(part, axis, name=label_of(backend))
    return {name: svg for name, svg in made.items() if svg}


def outcomes_by_version(table: pd.DataFrame, axis: str = "library", *, name: str) -> str:
    """Draw the share of cells by outcome along the versions of ``library`` or ``toolkit``, oldest first.

    The title states the greatest change in built cells. The result is empty if nothing changes. Each bar covers the
    same programs, architectures and other versions, and has an answer for each of them or does not apply.
    ``unsupported`` cells are drawn: otherwise a bar would look fuller than it is.

    Parameters
    ----------
    table : DataFrame
        Cells of one tool.
    axis : str
        The column with the versions.
    name : str
        The tool's label.
    """
    part = table[(table[axis] != "") & (table["headers"] == "")]
    part = _comparable(part.assign(kind=part["outcome"].map(_kind)).query("kind != 'unknown'"), axis)
    if part.empty:
        return ""
    counts = pd.crosstab(part[axis], part["kind"]).reindex(columns=list(_KINDS), fill_value=0)
    counts = counts.loc[sorted(counts.index, key=version_key)]
    steps = counts["built"].diff().abs().fillna(0).tolist()
    if not any(steps):
        return ""
    # The newest of equal steps counts.
    place = max(range(len(steps)), key=lambda number: (steps[number], number))
    (before, after), (fewer, more) = ([*column[place - 1 : place + 1]] for column in (counts.index, counts["built"]))
    versions = [named_toolkit(version) if axis == "toolkit" else version for version in map(str, (after, before))]
    title = (
        f"{name}: {more:,} of {counts.iloc[place].sum():,} cells build with {versions[0]}, {fewer:,} with {versions[1]}"
    )
    description = "; ".join(
        f"{plain(str(version))}: "
        + ", ".join(f"{int(row[key])} {kind.word}" for key, kind in _KINDS.items() if row[key])
        for version, row in counts.iterrows()
    )
    return bars(counts, _KINDS, "% of cells", title, description)


def is_compared(target: str) -> bool:
    """Return whether the resources of a target's kernels are compared.

    Registers of AMD GPUs are not comparable with NVIDIA's.
    """
    return str(target).startswith(NVIDIA.real)


def resources_by_target(table: pd.DataFrame, resource: str = "registers", *, top: float = 0) -> str:
    """Draw the greatest ``registers``, ``shared`` or ``spills`` of a kernel by real architecture, one line per toolchain.

    The title states the greatest difference of one toolchain. All lines have the same architectures. The result is
    empty if every toolchain needs the same amount for all of them.

    Parameters
    ----------
    table : DataFrame
        Cells of one case and variant.
    resource : str
        The column.
    top : float
        The minimum upper end of the scale, for pictures with a common scale.
    """
    part = table[table[resource].notna() & table["target"].map(is_compared).astype(bool)]
    if part.empty:
        return ""
    values = part.assign(series=_series(part)).groupby(["series", "target"], sort=False)[resource].max().unstack()
    values = _complete(values.reindex(columns=sorted(values.columns, key=target_key)).astype("float64"))
    different = _same_together(values)
    widths = different.max(axis=1) - different.min(axis=1)
    if not widths.any():  # also with only one architecture
        return ""
    row = different.loc[widths.idxmax()]
    unit = {"registers": "registers a thread", "shared": "bytes of shared memory", "spills": "bytes spilled"}[resource]
    title = (
        f"{_program(part)}: {row.max():,.0f} {unit} on {row.idxmax()}, {row.min():,.0f} on {row.idxmin()} ({row.name})"
    )
    return lines(different, list(map(short_target, different.columns)), "architecture", unit, title, top=top)


def outcomes_over_time(runs: pd.DataFrame) -> str:
    """Draw the numbers of built, unexpected and missing cells run by run.

    The title states the latest change. The result is empty if nothing changes.

    Parameters
    ----------
    runs : DataFrame
        Rows of one environment of `harness.analysis.history.trend`.
    """
    names = {"cells": "all", "built": "built", "bad": "not as expected", "missing": "never arrived"}
    values = runs[list(names)].rename(columns=names).astype("float64").T
    ticks = [plain(started[:10] or run, 12) for started, run in zip(runs["started"], runs["run"], strict=True)]
    values.columns = range(len(ticks))
    changed = [place for place in values.columns[1:] if not values[place].equals(values[place - 1])]
    if not changed:
        return ""
    last = changed[-1]
    parts = [
        f"{now:,.0f} {name} instead of {then:,.0f}"
        for name, now, then in zip(values.index, values[last], values[last - 1], strict=True)
        if now != then
    ]
    return lines(values, ticks, "run", "cells", f"{ticks[last]}: {', '.join(parts)}")


def _comparable(table: pd.DataFrame, axis: str) -> pd.DataFrame:
    """Return the cells that every version of an axis was tried with.

    Versions with few cells are dropped until the common cells are at least half of the smallest remaining version's
    cells.
    """
    other = "toolkit" if axis == "library" else "library"
    cells = list(zip(table[axis], rows_of(table, ("backend", "case", "variant", "target", other)), strict=True))
    places: dict[str, set[tuple[str, ...]]] = {}
    for version, place in cells:
        places.setdefault(version, set()).add(place)
    while places:
        common = set.intersection(*places.values())
        if 2 * len(common) >= min(map(len, places.values())):
            return table[[place in common and version in places for version, place in cells]]
        del places[min(places, key=lambda version: (len(places[version]), version_key(version)))]
    return table


def _complete(values: pd.DataFrame) -> pd.DataFrame:
    """Return the largest part without a gap: rows with a minimum number of values, and the columns that these rows share."""
    counts = values.notna().sum(axis=1)
    parts = [values[counts >= least].dropna(axis=1) for least in sorted(set(counts))]
    return max(parts, key=lambda part: (part.shape[1] > 1, part.size))


def _same_together(values: pd.DataFrame) -> pd.DataFrame:
    """Return toolchains with the same numbers as one line: their lines would overlap."""
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
    """Return the toolchains' labels for lines of a picture: ``cupy-nvrtc 13.6.0, CUDA 12.4``."""
    tool, releases = pd.Series("", part.index), pd.Series("", part.index)
    for key in TOOLCHAIN:
        prefix, there = AXIS[key].prefix, part[key] != ""
        if prefix:
            releases += (f", {prefix}" + part[key]).where(there, "")
        else:
            tool += (" " + part[key]).where(there, "")
    return tool.str.strip() + releases


def _program(part: pd.DataFrame) -> str:
    first = part.iloc[0]
    return f"{first['case']}[{first['variant']}]" if first["variant"] else str(first["case"])


def _kind(outcome: str) -> str:
    word = outcome.partition(" ")[0]
    kinds = {"compiled": "built", "crashed": "died", "timed_out": "died"}
    return kinds.get(word, word if word in _KINDS else "unknown")


NAME = "card.png"
WIDTH, HEIGHT = 1200, 630
"""In pixels: consumers of Open Graph show this size without cropping."""

_TOPICS, _TOOLS = 16, 9
_CARD_INK, _SOFT, _PAPER, _NOTHING = "#1b1f24", "#57606a", "#ffffff", "#eef1f4"
# From "nothing works" to "all works", distinct for colour-blind readers.
_SHARE = LinearSegmentedColormap.from_list("works", ("#d55e00", "#f3d9a4", "#009e73"))
_CARD_STYLE = {"font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "text.parse_math": False}


def described(table: pd.DataFrame, title: str) -> str:
    """Return the alternative text of the card."""
    return f"{title}: {len(table):,} cells; {Sum(totals(table)).words}"


@mpl.rc_context(_CARD_STYLE)
def card(table: pd.DataFrame, title: str) -> bytes:
    """Return the card for shared links as PNG.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.cells_frame`).
    title : str
        The report's name.
    """
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=_PAPER)
    total = Sum(totals(table))
    name = textwrap.fill(plain(title, 90), 22, max_lines=4, placeholder=" …")
    figure.text(0.04, 0.92, name, fontsize=30, weight="bold", color=_CARD_INK, va="top", linespacing=1.15)
    top = 0.92 - 0.1 * (name.count("\n") + 1)
    counted = f"{table['case'].nunique():,} features · {len(table):,} cells"
    figure.text(0.04, top - 0.01, counted, fontsize=17, color=_SOFT, va="top")
    for place, (key, group) in enumerate((key, group) for key, group in GROUPS.items() if group.answered):
        line = top - 0.15 - place * 0.085
        figure.text(
            0.17, line, f"{total.of(key):,}", fontsize=24, weight="bold", color=group.colour, ha="right", va="top"
        )
        figure.text(0.185, line - 0.012, group.words(total.of(key)), fontsize=17, color=_CARD_INK, va="top")
    figure.text(0.04, 0.05, "compiled, not guessed · cumatrix", fontsize=14, color=_SOFT)
    _heat(figure, table)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        # Characters that the font lacks are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        FigureCanvasAgg(figure).print_png(stream, metadata={"Software": None})
    return stream.getvalue()


def _heat(figure: Figure, table: pd.DataFrame) -> None:
    """Draw the share of working among answered cells by topic and backend, the largest ones if there are too many."""
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
    axes.tick_params(length=0, colors=_CARD_INK)
    axes.spines[:].set_visible(False)
