"""Pictures where a plot tells more than a table: SVG texts, the same for the same cells, readable in light and dark."""

from __future__ import annotations

import pandas as pd

from harness.analysis.frame import answered
from harness.matrix.axes import AXIS, TOOLCHAIN
from harness.matrix.order import target_key, version_key
from harness.report.draw import MANY, BarPart, bars, lines, plain

_KINDS = {
    "built": BarPart("built", "#009e73", ""),
    "rejected": BarPart("rejected", "#d55e00", "///"),
    "died": BarPart("crashed or timed out", "#7b2d8b", "xx"),
    "unsupported": BarPart("unsupported", "#9e9e9e", ""),
    "unknown": BarPart("unknown or missing", "#e0b000", "--"),
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


def outcomes_by_version(table: pd.DataFrame, axis: str = "library", *, title: str = "Outcomes by version") -> str:
    """Share of cells by outcome along the versions of ``library`` or ``toolkit``, oldest first; empty where there are less than two: a table says that better.

    ``unsupported`` cells are shown, so that a bar never looks fuller than it is.
    """
    part = table[(table[axis] != "") & (table["headers"] == "")]
    if part.empty:
        return ""
    kinds = part["outcome"].map(_kind)
    counts = pd.crosstab(part[axis], kinds).reindex(columns=list(_KINDS), fill_value=0)
    counts = counts.loc[sorted(counts.index, key=version_key)]
    if len(counts) < 2:
        return ""
    description = "; ".join(
        f"{plain(str(name))}: " + ", ".join(f"{int(row[key])} {kind.word}" for key, kind in _KINDS.items() if row[key])
        for name, row in counts.iterrows()
    )
    return bars(counts, _KINDS, "% of cells", title, description)


def resources_by_target(table: pd.DataFrame, resource: str = "registers", *, title: str = "") -> str:
    """The greatest ``registers``, ``shared`` or ``spills`` of a kernel by real architecture, one line a toolchain; empty where it was built for less than two.

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
    if len(targets) < 2:
        return ""
    unit = {"registers": "registers a thread", "shared": "bytes of shared memory", "spills": "bytes spilled"}[resource]
    values = part.assign(series=_series(part)).groupby(["series", "target"], sort=False)[resource].max().unstack()
    different = _same_together(values.reindex(columns=targets).astype("float64"))
    return lines(
        different,
        [target.removeprefix("sm_") for target in targets],
        "architecture (sm_)",
        unit,
        title or _title(part, unit),
    )


def compile_times(table: pd.DataFrame, *, title: str = "Compile time by toolkit") -> str:
    """Median seconds of a cell by toolkit, on a logarithmic scale; empty where less than two toolkits compiled anything.

    One line a backend and library, or a backend where those are too many; each over the programs that all its toolkits compiled.
    """
    if table.empty:
        return ""
    part = table[answered(table) & table["seconds"].gt(0) & (table["headers"] == "")]
    if part.empty:
        return ""
    toolkits = sorted(set(part["toolkit"]), key=version_key)
    if len(toolkits) < 2:
        return ""
    names = (part["backend"] + " " + part["library"]).str.strip()
    part = part.assign(series=names if names.nunique() <= MANY else part["backend"])
    medians = {
        name: _of_the_same_programs(rows).groupby("toolkit")["seconds"].median()
        for name, rows in part.groupby("series", sort=False)
    }
    values = pd.DataFrame(medians).T.reindex(columns=toolkits)
    return lines(values, [plain(name) for name in toolkits], "CUDA", "seconds (median)", title, log=True)


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
    ticks = [plain(started[:10] or run, 12) for started, run in zip(runs["started"], runs["run"], strict=True)]
    values.columns = range(len(ticks))
    return lines(values, ticks, "run", "cells", title)


def _of_the_same_programs(rows: pd.DataFrame) -> pd.DataFrame:
    """Only the cases and variants that all toolkits of a line compiled, where there are any: else two toolkits show two programs."""
    programs = rows["case"] + " " + rows["variant"]
    common = rows.groupby(programs)["toolkit"].nunique() == rows["toolkit"].nunique()
    kept = rows[programs.map(common)]
    return rows if kept.empty else kept


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
    """Toolchains as lines of a picture are called: ``cupy-nvrtc 13.6.0, CUDA 12.4``."""
    tool, releases = pd.Series("", part.index), pd.Series("", part.index)
    for key in TOOLCHAIN:
        prefix, there = AXIS[key].prefix, part[key] != ""
        if prefix:
            releases += (f", {prefix}" + part[key]).where(there, "")
        else:
            tool += (" " + part[key]).where(there, "")
    return tool.str.strip() + releases


def _title(part: pd.DataFrame, unit: str) -> str:
    first = part.iloc[0]
    name = f"{first['case']}[{first['variant']}]" if first["variant"] else first["case"]
    return f"{name}: {unit}"


def _kind(outcome: str) -> str:
    word = outcome.partition(" ")[0]
    kinds = {"compiled": "built", "crashed": "died", "timed_out": "died"}
    return kinds.get(word, word if word in _KINDS else "unknown")
