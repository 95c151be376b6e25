"""Support statements: the cells of a variant and a backend as one sentence with ranges of versions.

``docs/analysis.md`` has the rules. A statement speaks of what was tested and of nothing else: `Statement.outcome_of` gives back the
outcome of every cell it covers, and None for every other one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from harness.analysis.fold import Block, OutcomeGrid, fold
from harness.analysis.frame import ANSWERED, rows_of
from harness.analysis.phrases import PLAIN_TARGETS, headline_of, notes_of
from harness.analysis.statement import Clause, Holes, Point, Statement, SupportKey, TargetGroup
from harness.matrix.axes import FURTHER
from harness.matrix.order import place_key, target_key, version_key
from harness.toolkits import RELEASES

_PLACE = ("topic", "case", "variant", "backend", "headers")


def statements(table: pd.DataFrame) -> list[Statement]:
    """A statement for each case, variant and backend, in the order of the matrix.

    Parameters
    ----------
    table : DataFrame
        `harness.analysis.frame.cells_frame`.
    """
    libraries = {backend: list(part.unique()) for backend, part in table.groupby("backend")["library"]}
    columns = [*_PLACE, *FURTHER, "cell", "library", "release", "target", "outcome", "message", "reason", "diagnostics"]
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    names = len(_PLACE) + len(FURTHER)
    for row in rows_of(table, columns):
        found.setdefault(row[:names], []).append(row[names:])
    order = {place: number for number, place in enumerate(dict.fromkeys(place[:4] for place in found))}
    return [
        _statement(
            SupportKey(**dict(zip(_PLACE, place, strict=False)), further=place[len(_PLACE) :]),
            found[place],
            libraries[place[3]],
        )
        for place in sorted(
            found, key=lambda place: (order[place[:4]], version_key(place[4]), place_key(FURTHER, place[len(_PLACE) :]))
        )
    ]


def _statement(subject: SupportKey, rows: list[tuple[str, ...]], libraries: Iterable[str]) -> Statement:
    outcomes: dict[Point, str] = {}
    said: dict[Point, tuple[str, str]] = {}
    cells, unknown, not_applicable = [], [], []
    for cell, library, toolkit, target, outcome, message, reason, diagnostics in rows:
        point = Point(library, toolkit, target)
        if outcome.partition(" ")[0] in ANSWERED:
            outcomes[point] = outcome
            if outcome != "built":
                said[point] = (diagnostics.partition("\n")[0] or reason, message or reason)
        elif outcome == "unsupported":
            not_applicable.append(point)
        else:
            unknown.append(cell)
            continue
        cells.append(cell)
    blocks = _blocks(outcomes)
    clauses = tuple(_clause(block, said) for block in blocks)
    apart = frozenset(not_applicable)
    gaps = frozenset(
        point
        for clause in clauses
        for library in clause.libraries
        for toolkit in clause.toolkits
        for part in clause.parts
        for target in part.targets
        if (point := Point(library, toolkit, target)) not in outcomes and point not in apart
    )
    tried = [*outcomes, *not_applicable]
    holes = Holes(
        libraries=_between({point.library for point in tried}, libraries, version_key),
        toolkits=_between({point.toolkit for point in tried}, RELEASES, version_key),
        targets=_between({point.target for point in tried}, PLAIN_TARGETS, target_key, _kind),
    )
    pairs = {(point.library, point.toolkit) for point in tried}
    both = product({point.library for point in outcomes}, {point.toolkit for point in outcomes})
    statement = Statement(
        subject=subject, clauses=clauses, cells=tuple(cells), not_applicable=apart, gaps=gaps, unknown=tuple(unknown),
        holes=holes,
        apart=frozenset(set(both) - pairs),
    )  # fmt: skip
    return replace(statement, headline=headline_of(statement), notes=notes_of(statement))


def _blocks(outcomes: dict[Point, str]) -> list[Block]:
    """Blocks of libraries (outer) x toolkits (inner), found along that axis first which needs fewer of them."""
    by_library: OutcomeGrid = {}
    by_toolkit: OutcomeGrid = {}
    for point, outcome in outcomes.items():
        by_library.setdefault(point.library, {}).setdefault(point.toolkit, {})[point.target] = outcome
        by_toolkit.setdefault(point.toolkit, {}).setdefault(point.library, {})[point.target] = outcome
    libraries_first = fold(by_library)
    toolkits_first = fold(by_toolkit)
    if len(toolkits_first) < len(libraries_first):
        return [Block(block.inner, block.outer, block.row) for block in toolkits_first]
    return libraries_first


def _clause(block: Block, said: dict[Point, tuple[str, str]]) -> Clause:
    by_outcome: dict[str, list[str]] = {}
    for target in sorted(block.row, key=target_key):
        by_outcome.setdefault(block.row[target], []).append(target)
    parts = []
    for outcome, targets in by_outcome.items():
        points = (Point(a, b, c) for a in block.outer for b in block.inner for c in targets)
        messages = [said[point] for point in points if said.get(point, ("", ""))[1]]
        kinds = Counter(kind for kind, _ in messages)
        most = kinds.most_common(1)[0][0] if kinds else ""
        first = next((message for kind, message in messages if kind == most), "")
        parts.append(TargetGroup(outcome=outcome, targets=tuple(targets), message=first, messages=len(kinds)))
    return Clause(libraries=tuple(block.outer), toolkits=tuple(block.inner), parts=tuple(parts))


def _kind(target: str) -> str:
    return target.partition("_")[0]


def _between(tried: set[str], known: Iterable[str], key: Any, kind: Any = lambda _value: "") -> tuple[str, ...]:
    """Known values between the first and the last one tried, of each kind apart."""
    ends: dict[str, list[Any]] = {}
    for value in tried:
        ends.setdefault(kind(value), []).append(key(value))
    spans = {which: (min(keys), max(keys)) for which, keys in ends.items()}
    within = []
    for value in known:
        span = spans.get(kind(value)) if value and value not in tried else None
        if span and span[0] < key(value) < span[1]:
            within.append(value)
    return tuple(sorted(within, key=key))
