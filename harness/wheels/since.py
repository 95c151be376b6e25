"""The first release of a package that lacks nothing for some GPUs, found by bisection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.wheels.fetch import Chosen
from harness.wheels.gate import Missing

Read = Callable[[Chosen], list[Missing] | None]
"""Reads a release: what it lacks; None for a release without device code."""


@dataclass(frozen=True)
class Since:
    """The outcome of a search.

    Parameters
    ----------
    first : Chosen or None
        The first release that lacks nothing; None where the newest lacks something.
    before : Chosen or None
        The release before it, which lacks something; None where there is none.
    read : int
        How many releases were read.
    """

    first: Chosen | None
    before: Chosen | None
    read: int


def since(releases: Sequence[Chosen], read: Read) -> Since:
    """Bisect releases, oldest first, by what they lack.

    A package that ran on the GPUs, then did not, and runs again, has several such releases; the search finds one of them.
    """
    good, bad, count = len(releases) - 1, -1, 1
    if _lacks(read(releases[good])):
        return Since(None, releases[good], count)
    while good - bad > 1:
        middle = (good + bad) // 2
        count += 1
        if _lacks(read(releases[middle])):
            bad = middle
        else:
            good = middle
    return Since(releases[good], releases[bad] if bad >= 0 else None, count)


def _lacks(missing: list[Missing] | None) -> bool:
    return missing is None or bool(missing)
