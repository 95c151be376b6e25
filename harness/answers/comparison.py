"""Comparisons of cells that differ in one release or one architecture: breakage, and programs that only one of the two builds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

from harness.answers.cells import UNLINKED, Known, Row, releases_by_name
from harness.answers.verdict import FAULT, REFUSED, WORKS
from harness.backends import library_of
from harness.matrix.axes import target_key, version_key

Program = tuple[str, ...]
"""The key of a cell without the value of one axis."""


class Pair(NamedTuple):
    """Two cells that differ in one value.

    Parameters
    ----------
    before, after : Row
        The cells.
    """

    before: Row
    after: Row

    @property
    def breaks(self) -> bool:
        """Return whether the first cell is built and the second one refused."""
        return self.before.letter == WORKS != self.after.letter

    @property
    def fixes(self) -> bool:
        """Return whether the first cell is refused and the second one built."""
        return self.before.letter != WORKS == self.after.letter


class Comparison:
    """Cells by the value of an axis.

    Parameters
    ----------
    known : Known
        The tried cells.
    """

    def __init__(self, known: Known) -> None:
        # Users do not have a toolkit paired with the headers of another release.
        self.rows = [row for row in known.rows if row.letter in (WORKS, *REFUSED) and "+headers" not in row.toolkit]
        self._indexed: dict[str, dict[str, dict[Program, Row]]] = {}
        self._alone_with: dict[str, dict[str, tuple[list[Row], int]]] = {}

    @cached_property
    def releases(self) -> dict[str, tuple[str, ...]]:
        """Releases with a compiler's answer by name (``cuda``, libraries, header libraries, host compilers), oldest first."""
        return releases_by_name(
            pair for row in self.rows for pair in (("cuda", row.toolkit), (_library(row), row.version))
        )

    def previous(self, name: str, release: str) -> str:
        """Return the tried release before another one, or an empty string if there is none."""
        return next(iter(self.earlier(name, release)), "")

    def earlier(self, name: str, release: str) -> list[str]:
        """Return the tried releases before another one, newest first."""
        before = [item for item in self.releases.get(name, ()) if version_key(item) < version_key(release)]
        return before[::-1]

    def later(self, name: str, release: str) -> list[str]:
        """Return the tried releases after another one, oldest first."""
        return [item for item in self.releases.get(name, ()) if version_key(item) > version_key(release)]

    def has_fault(self, name: str, release: str) -> bool:
        """Return whether a release has a known fault."""
        return any(row.letter == FAULT for row in self._by_release(name).get(release, {}).values())

    def pairs(self, name: str, before: str, after: str) -> list[Pair]:
        """Return the cells of one release, each with the same cell of another release.

        Parameters
        ----------
        name : str
            ``cuda``, a library, a header library or a host compiler.
        before, after : str
            Two of its releases.
        """
        by_release = self._by_release(name)
        first, second = by_release.get(before, {}), by_release.get(after, {})
        found = [Pair(row, second[key]) for key, row in first.items() if key in second]
        # Unlinked code does not prove that a program builds that a linker refuses.
        return [pair for pair in found if not ((pair.breaks or pair.fixes) and _unlinked(pair))]

    def with_toolkits(self, name: str, release: str, toolkits: Collection[str]) -> tuple[list[Row], list[Pair]]:
        """Return the cells of a library with some CUDA releases, and pairs with other CUDA releases.

        A pair consists of a cell that the same release of the library builds with another CUDA release, and the cell
        with one of these CUDA releases.

        Parameters
        ----------
        name, release : str
            The library, and one of its releases, or ``*`` for all.
        toolkits : collection of str
            CUDA releases.
        """
        own = [
            row
            for row in self._by_library.get(name, ())
            if row.toolkit in toolkits and release in ("*", row.version) and not row.axis
        ]
        elsewhere: dict[Program, Row] = {}
        for row in self._by_library.get(name, ()):
            if row.toolkit not in toolkits and row.letter == WORKS and not row.axis:
                elsewhere[_place(row)] = row
        return own, [Pair(elsewhere[_place(row)], row) for row in own if _place(row) in elsewhere]

    def only_with(self, name: str, release: str) -> tuple[list[Row], int]:
        """Return the cells that build with a release and no newer one, and the count that they are out of.

        The count is the number of cells that build with the release and were tried with a newer one.
        """
        if name not in self._alone_with:
            self._alone_with[name] = _alone(self._by_release(name), version_key)
        return self._alone_with[name].get(release, ([], 0))

    def only_for(self, target: str) -> tuple[list[Row], int]:
        """Return the cells that build for an architecture and no newer one, and the count that they are out of.

        The count is the number of cells that build for the architecture and were tried for a newer one.
        """
        return self._alone_for.get(target, ([], 0))

    def new_for(self, target: str) -> tuple[list[Row], int]:
        """Cells that build for an architecture and for no older one, and the number of those that build for it and were tried for an older one."""
        return self._new_for.get(target, ([], 0))

    @cached_property
    def _alone_for(self) -> dict[str, tuple[list[Row], int]]:
        return {target: found for of in self._by_kind.values() for target, found in _alone(of, target_key).items()}

    @cached_property
    def _new_for(self) -> dict[str, tuple[list[Row], int]]:
        return {
            target: found
            for of in self._by_kind.values()
            for target, found in _alone(of, target_key, oldest_first=True).items()
        }

    @cached_property
    def _by_kind(self) -> dict[str, dict[str, dict[Program, Row]]]:
        by_target = self._index(
            "target",
            lambda row: row.target,
            lambda row: (row.case, row.rest, row.tool, row.axis, row.version, row.toolkit),
        )
        kinds: dict[str, dict[str, dict[Program, Row]]] = {}
        for target, cells in by_target.items():
            kinds.setdefault(target.partition("_")[0], {})[target] = cells
        return kinds

    def _by_release(self, name: str) -> dict[str, dict[Program, Row]]:
        if name == "cuda":
            return self._index(
                name,
                lambda row: row.toolkit,
                lambda row: (row.case, row.rest, row.tool, row.axis, row.version, row.target),
            )
        return self._index(
            name,
            lambda row: row.version,
            lambda row: (row.case, row.rest, row.tool, row.axis, row.toolkit, row.target),
            self._by_library.get(name, ()),
        )

    @cached_property
    def _by_library(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(_library(row), []).append(row)
        return found

    def _index(
        self,
        name: str,
        value: Callable[[Row], str],
        key: Callable[[Row], Program],
        rows: Iterable[Row] | None = None,
    ) -> dict[str, dict[Program, Row]]:
        if name not in self._indexed:
            found: dict[str, dict[Program, Row]] = {}
            for row in self.rows if rows is None else rows:
                if of := value(row):
                    found.setdefault(of, {})[key(row)] = row
            self._indexed[name] = found
        return self._indexed[name]


_OF_LINKERS = re.compile("(?i)undefined reference|nvjitlink|nvlink|uses too much shared data")


def _unlinked(pair: Pair) -> bool:
    """Return whether a linker refuses one of the cells and the other one is not linked."""
    built, refused = (pair.before, pair.after) if pair.breaks else (pair.after, pair.before)
    return built.message.startswith(UNLINKED) and bool(_OF_LINKERS.search(refused.message))


def _place(row: Row) -> Program:
    return (row.case, row.rest, row.tool, row.version, row.target)


def _library(row: Row) -> str:
    """Return the name of the library or host compiler that the cell's version belongs to, or an empty string without a version."""
    return (row.axis or library_of(row.tool.partition(" ")[0])) if row.version else ""


def _alone(
    cells: Mapping[str, Mapping[Program, Row]], key: Callable[[str], Any], *, oldest_first: bool = False
) -> dict[str, tuple[list[Row], int]]:
    """Find what only one value of an axis builds.

    Parameters
    ----------
    cells : Mapping
        Cells by value and program.
    key : callable
        Order of the values.
    oldest_first : bool
        Compare each value with the earlier ones instead of the later ones.

    Returns
    -------
    dict
        By value, the cells that build with it and with none of the others, and the number of cells that build with it and were tried with another.
    """
    found: dict[str, tuple[list[Row], int]] = {}
    others: dict[Program, bool] = {}
    for _, equal in groupby(sorted(cells, key=key, reverse=not oldest_first), key):
        values = list(equal)
        for value in values:
            built = [(place, row) for place, row in cells[value].items() if row.letter == WORKS and place in others]
            found[value] = ([row for place, row in built if not others[place]], len(built))
        for value in values:
            for place, row in cells[value].items():
                others[place] = others.get(place, False) or row.letter == WORKS
    return found
