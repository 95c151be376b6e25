"""Disagreements: cells with the same program, toolkit and target, but different outcomes.

``docs/analysis.md`` defines their ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from harness.analysis.frame import answered, rows_of
from harness.backends import BACKENDS
from harness.diagnostics import one_line
from harness.matrix.axes import (
    COLUMNS,
    FURTHER,
    ROWS,
    fold_targets,
    labels,
    place_key,
    place_of,
    target_key,
    version_key,
)
from harness.matrix.marks import ENDINGS
from harness.model.cell import named_toolkit

KINDS = ("backend", "library", "headers", "language")
"""Differences: the backend; only the library's version; only the headers' release; also the language of the program."""

_TOOL = ("backend", "library")


@dataclass(frozen=True, kw_only=True)
class Side:
    """Toolchains with the same outcome.

    Parameters
    ----------
    outcome : str
        The outcome (`harness.analysis.frame.outcome_of`).
    toolchains : tuple of str
        ``cupy-jitify 13.0.0``, or ``headers of CUDA 13.0`` if the headers differ.
    message : str
        A compiler's message; empty for built cells.
    cells : tuple of str
        The ids of the cells.
    """

    outcome: str
    toolchains: tuple[str, ...]
    message: str
    cells: tuple[str, ...]

    @property
    def words(self) -> str:
        """The outcome in words: ``builds``, ``rejected at compile``."""
        return ENDINGS["built"].verb if self.outcome == "built" else self.outcome.replace("_", " ")


@dataclass(frozen=True, kw_only=True)
class Disagreement:
    """A disagreement, with all toolkits and targets that share it.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    topic, case, variant : str
        The program.
    further : tuple of str
        The other common values, in the form of headings (`harness.matrix.axes.FURTHER`).
    toolkits, targets : tuple of str
        The toolkits and targets, in order. Not every pair of them is in `places`.
    places : tuple of (str, str)
        Toolkit and target.
    sides : tuple of Side
        At least two sides, working ones first.
    rank : tuple
        Sort key. The most informative disagreement has the smallest one.
    """

    kind: str
    topic: str
    case: str
    variant: str
    further: tuple[str, ...]
    toolkits: tuple[str, ...]
    targets: tuple[str, ...]
    places: tuple[tuple[str, str], ...]
    sides: tuple[Side, ...]
    rank: tuple[Any, ...]

    @property
    def sentence(self) -> str:
        """``CUDA 12.4, sm_80–sm_90: cupy-nvrtc 13.0.0 builds; cupy-jitify 13.0.0 is rejected at compile ("…")``."""
        sides_text = [
            f"{_fold_names(side.toolchains)}: {side.words}"
            + (f' ("{one_line(side.message, 100)}")' if side.message else "")
            for side in self.sides
        ]
        where = (named_toolkit(", ".join(self.toolkits)), *self.further, fold_targets(self.targets, self.targets))
        return f"{', '.join(where)}: {'; '.join(sides_text)}"


def disagreements(table: pd.DataFrame) -> list[Disagreement]:
    """Return every disagreement, the most informative first.

    Parameters
    ----------
    table : DataFrame
        The cells (`harness.analysis.frame.cells_frame`). Cells without a compiler's answer are ignored.
    """
    answered_cells = table[answered(table)]
    further = [key for key in FURTHER if key not in ROWS]
    by_toolchain = _split(answered_cells, [*ROWS, *further, "toolkit", "target"])
    by_headers = _split(answered_cells, [*ROWS, *further, "backend", "library", "release", "target"])
    found = [*_group(by_toolchain, _by_toolchain), *_group(by_headers, _by_headers)]
    return sorted(found, key=lambda item: item.rank)


def _split(table: pd.DataFrame, place: Sequence[str]) -> pd.DataFrame:
    """Return the cells of places with more than one outcome, with the number of their place."""
    groups = table.groupby(list(place), sort=False)
    part = table[groups["outcome"].transform("nunique") > 1]
    return part.assign(place=part.groupby(list(place), sort=False).ngroup())


def _group(table: pd.DataFrame, spell: Any) -> Iterable[Disagreement]:
    """Yield one disagreement for all places with the same program and the same sides."""
    found: dict[Any, list[list[dict[str, Any]]]] = {}
    for _, part in _parts(table):
        first = part[0]
        sides = frozenset((*spell(cell), cell["outcome"]) for cell in part)
        key = (place_of(first, (*ROWS, *FURTHER)), spell is _by_headers and first["release"], sides)
        if spell is _by_headers and len({cell["headers"] for cell in part}) < 2:
            continue
        found.setdefault(key, []).append(part)
    for places in found.values():
        yield _disagreement(places, spell)


def _parts(table: pd.DataFrame) -> Iterable[tuple[int, list[dict[str, Any]]]]:
    names = ["place", *ROWS, *COLUMNS, "release", "headers", "outcome", "message", "reason", "cell"]
    parts: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(table, names):
        parts.setdefault(row[0], []).append(dict(zip(names, row, strict=True)))
    return parts.items()


def _by_toolchain(cell: dict[str, Any]) -> tuple[str, str]:
    return (cell["backend"], cell["library"])


def _by_headers(cell: dict[str, Any]) -> tuple[str, str, str]:
    return (cell["backend"], cell["library"], cell["headers"])


def _disagreement(places: list[list[dict[str, Any]]], spell: Any) -> Disagreement:
    cells = [cell for place in places for cell in place]
    first = cells[0]
    toolkits = sorted({cell["toolkit"] for cell in cells}, key=lambda name: version_key(name.partition("+")[0]))
    targets = tuple(sorted({cell["target"] for cell in cells}, key=target_key))
    kind = "headers" if spell is _by_headers else _kind(cells)
    sides = []
    for outcome in sorted({cell["outcome"] for cell in cells}, key=_worth):
        members = [cell for cell in cells if cell["outcome"] == outcome]
        names = sorted({spell(cell) for cell in members}, key=_tool_key)
        sides.append(
            Side(
                outcome=outcome,
                toolchains=tuple(_name(kind, name, first["release"]) for name in names),
                message="" if outcome == "built" else members[0]["message"] or members[0]["reason"],
                cells=tuple(cell["cell"] for cell in members),
            )
        )
    return Disagreement(
        kind=kind,
        topic=first["topic"],
        case=first["case"],
        variant=first["variant"],
        further=tuple(labels(place_of(first, FURTHER), FURTHER)),
        toolkits=tuple(toolkits),
        targets=targets,
        places=tuple(sorted({(cell["toolkit"], cell["target"]) for cell in cells})),
        sides=tuple(sides),
        rank=_rank(kind, [side.outcome for side in sides], len(places), (first["case"], first["variant"], toolkits)),
    )


def _fold_names(names: Sequence[str]) -> str:
    """Join names without repeating a backend: ``cupy-nvrtc 13.0.0, 13.1.0 and cupy-jitify 13.1.0``."""
    by_backend: dict[str, list[str]] = {}
    for name in names:
        backend, _, version = name.partition(" ")
        by_backend.setdefault(backend, []).append(version)
    return " and ".join(f"{backend} {', '.join(versions)}".strip() for backend, versions in by_backend.items())


@cache
def _tool_key(name: tuple[str, ...]) -> tuple[Any, ...]:
    return (place_key(_TOOL, name[:2]), version_key(name[-1]))


@cache
def _name(kind: str, name: tuple[str, ...], release: str) -> str:
    tool = " ".join(labels(name[:2], _TOOL))
    return f"{tool} with headers of CUDA {name[2] or release}" if kind == "headers" else tool


def _kind(cells: list[dict[str, Any]]) -> str:
    """Return the kind of a disagreement, by the difference between its sides."""
    backends = {cell["backend"] for cell in cells}
    if len(backends) == 1:
        return "library"
    by_language: dict[str, set[str]] = {}
    for cell in cells:
        info = BACKENDS.get(cell["backend"])
        by_language.setdefault(info.languages[-1] if info else "", set()).add(cell["outcome"])
    # Each language has one outcome: the programs differ, not their compilers.
    if len(by_language) > 1 and all(len(outcomes) == 1 for outcomes in by_language.values()):
        return "language"
    return "backend"


def _worth(outcome: str) -> tuple[int, str]:
    return (list(ENDINGS).index(outcome.partition(" ")[0]), outcome)


def _rank(kind: str, outcomes: list[str], places: int, name: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the sort key: first whether any side works, then how little the sides differ, then the number of places."""
    words = {outcome.partition(" ")[0] for outcome in outcomes}
    died = bool(words & {"crashed", "timed_out"})
    works = "built" in words and len(words) > 1
    severity = 0 if works and died else 1 if works and "rejected" in words else 2 if died else 3 if works else 4
    nearness = {"library": 0, "headers": 0, "backend": 1, "language": 2}[kind]
    return (severity == 4, nearness == 2, severity, nearness, -places, name)
