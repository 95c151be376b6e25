"""The coverage of a plan in Markdown and in lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.backends import label_of
from harness.matrix.axes import AXIS
from harness.matrix.ranges import spell
from harness.matrix_plan.coverage import AXES, Coverage, Pair

_HEAD = ("part", "tools", "versions", "CUDA", "targets", "cells", "tried", "missing", "unavailable", "confounded")


def coverage_table(coverages: Iterable[Coverage]) -> str:
    """A row a part: its axes, and its cells by what is known of them; ``confounded`` counts squares."""
    rows = [_HEAD, ("---",) * len(_HEAD)]
    for each in coverages:
        squares = each.separated + each.untried + sum(each.confounded.values())
        rows.append(
            (
                each.part.name,
                "; ".join(map(label_of, each.values("backend"))),
                *(_axis(each.values(axis)) for axis in AXES),
                *(f"{each.total(name):,}" for name in ("planned", "tried", "missing", "unavailable")),
                f"{sum(each.confounded.values()):,} of {squares:,}" if squares else "",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _axis(values: Sequence[str]) -> str:
    return spell(values, whole=2) + (f" ({len(values)})" if len(values) > 2 else "")


def pairs_of(coverages: Iterable[Coverage]) -> list[str]:
    """A line for each two neighbouring values of two axes that are confounded, those of most squares first."""
    total: Counter[Pair] = Counter()
    for each in coverages:
        total.update(each.confounded)
    return [_pair(pair, count) for pair, count in sorted(total.items(), key=lambda item: (-item[1], item[0]))]


def _pair(pair: Pair, count: int) -> str:
    first, second = (
        f"{AXIS[axis].title} {low} to {high}"
        for axis, (low, high) in zip(pair.axes, (pair.first, pair.second), strict=True)
    )
    return f"{label_of(pair.backend)}: {first} × {second} ({count:,})"
