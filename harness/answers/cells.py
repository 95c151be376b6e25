"""Cells as answers need them: request, outcome and evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from harness.answers.features import Feature, words_of_feature
from harness.answers.hosts import split_host
from harness.answers.spelling import words_said
from harness.answers.verdict import (
    FAULT,
    NOT,
    NOTHING,
    REFUSED,
    SILENT,
    SURPRISE,
    UNAVAILABLE,
    UNTRIED,
    WORKS,
    VersionGrid,
)
from harness.matrix.order import backend_key, natural_key, target_key, version_key
from harness.toolkits.libraries import LIBRARIES as HEADERS

COLUMNS = (
    *("cell", "case", "variant", "backend", "library", "toolkit", "host_compiler", "target"),
    *("mark", "status", "message"),
)
"""The keys of a record that a row needs."""

_LETTERS = {
    **dict.fromkeys(("built", "partial", "xpass"), WORKS),
    **dict.fromkeys(("rejected", "died"), NOT),
    "xfail": FAULT,
    **dict.fromkeys(("fail", "crashed", "timed_out"), SURPRISE),
    "unsupported": NOTHING,
    "unavailable": UNAVAILABLE,
}


def letter_of(mark: str, status: str) -> str:
    """Letter of a cell by its kind (`harness.matrix.kinds`): whether it works, whatever the case expects."""
    return WORKS if status == "built" else _LETTERS.get(mark, UNTRIED)


class Row(NamedTuple):
    """A cell.

    ``version`` is the header library's if the case uses one (``axis``), else the requested host compiler's, else that of the library behind the
    backend; ``rest`` are the parameters that are no library; ``tool`` is the backend, with what else tells it from others where the axis of versions is
    another one; ``own`` marks a cell of the report's author among published ones.
    """

    cell: str
    case: str
    rest: str
    tool: str
    axis: str
    version: str
    toolkit: str
    target: str
    letter: str
    message: str
    own: bool = False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A program and a tool: every version, CUDA release and architecture that it was tried with.

    Parameters
    ----------
    case, rest, tool, axis : str
        As of its rows.
    grids : Mapping[str, VersionGrid]
        By target.
    proofs : Mapping[tuple of str, Row]
        The cell by version, toolkit and target.
    own : Mapping[str, VersionGrid]
        By target, for own cells among published ones.
    """

    case: str
    rest: str
    tool: str
    axis: str
    grids: Mapping[str, VersionGrid]
    proofs: Mapping[tuple[str, str, str], Row]
    own: Mapping[str, VersionGrid] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """The backend, without a version."""
        return self.tool.partition(" ")[0]

    @cached_property
    def working(self) -> tuple[str, ...]:
        """Targets that work with some version, in order."""
        return tuple(target for target, grid in self.grids.items() if WORKS in grid.letters)

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Targets tried with versions that work somewhere: only these can be compared."""
        grids = [grid.letters for grid in self.grids.values()]
        places = [place for place, letters in enumerate(zip(*grids, strict=True)) if WORKS in letters]
        return tuple(
            target for target, grid in self.grids.items() if any(grid.letters[place] not in SILENT for place in places)
        )

    @cached_property
    def answered(self) -> tuple[str, ...]:
        """Targets that a compiler answered, in order."""
        return tuple(target for target, grid in self.grids.items() if set(grid.letters) - SILENT)


@dataclass(frozen=True, kw_only=True)
class Known:
    """Everything that answers are made from.

    Parameters
    ----------
    rows : sequence of Row
        The cells; of several for one place the one that a compiler answered, then the last.
    features : Mapping[str, Feature]
        By case, in order.
    runs : Mapping[str, str]
        When each run started, by its name.
    hosts : tuple of str
        Versions of the machines' own host compilers, of cells without a requested one (`harness.answers.hosts.own_of`).
    """

    rows: Sequence[Row]
    features: Mapping[str, Feature]
    runs: Mapping[str, str] = field(default_factory=dict)
    hosts: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> list[Entry]:
        """By program and tool, in the order of the matrix."""
        found: dict[tuple[str, ...], dict[tuple[str, str, str], Row]] = {}
        for row in self.rows:
            # What was paired with the headers of another release is in the matrix; it is no version that people have.
            if "+headers" not in row.toolkit:
                place = (row.version, row.toolkit, row.target)
                of = found.setdefault((row.case, row.rest, row.tool, row.axis), {})
                if place not in of or row.letter not in (UNTRIED, UNAVAILABLE):
                    of[place] = row
        order = {case: number for number, case in enumerate(self.features)}
        return [
            Entry(case=key[0], rest=key[1], tool=key[2], axis=key[3], grids=_grids(of), proofs=of, own=_grids({place: row for place, row in of.items() if row.own}))
            for key, of in sorted(found.items(), key=lambda item: (order[item[0][0]], natural_key(item[0][1]), _tool_key(item[0][2])))
        ]  # fmt: skip

    @cached_property
    def _by_case(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.case, []).append(entry)
        return found

    def entries_of(self, case: str) -> list[Entry]:
        """Those of a case."""
        return self._by_case.get(case, [])

    @cached_property
    def targets(self) -> list[str]:
        """Every target that a compiler said something of, in order."""
        return sorted({row.target for row in self.rows if row.letter not in SILENT}, key=target_key)

    @cached_property
    def tools(self) -> list[str]:
        """Every tool, in order; those of header libraries with a version are where their backend is."""
        return sorted({entry.tool for entry in self.entries}, key=_tool_key)

    @cached_property
    def said(self) -> dict[str, frozenset[str]]:
        """By case, words of what compilers said against it (`harness.answers.spelling.words_said`)."""
        found: dict[str, set[str]] = {}
        for row in self.rows:
            if row.letter in REFUSED:
                found.setdefault(row.case, set()).add(row.message)
        return {case: words_said(messages) for case, messages in found.items()}

    def words_of(self, case: str) -> tuple[list[str], list[str], list[str]]:
        """`words_of_feature` of a case."""
        return words_of_feature(self.features[case])


def split_variant(variant: str) -> tuple[str, str, str]:
    """Parameters that are no library, and the header library with its version, of a variant: ``cutlass=3.5.1,form=a``."""
    rest, name, version = [], "", ""
    for part in filter(None, variant.split(",")):
        key, equals, value = part.partition("=")
        if equals and key in HEADERS and not name:
            name, version = key, value
        else:
            rest.append(part)
    return ",".join(rest), name, version


_split = lru_cache(maxsize=None)(split_variant)


def make_row(*values: str, own: bool = False) -> Row:
    """A row of a record's values, one for each of `COLUMNS`."""
    cell, case, variant, backend, library, toolkit, host, target, mark, status, message = values
    rest, header, version = _split(variant)
    axis, tool = header, backend
    if header:
        tool = " ".join(filter(None, (backend, library, host)))
    elif host:
        axis, version = split_host(host)
        tool = " ".join(filter(None, (backend, library)))
    else:
        version = library
    return Row(
        cell,
        case,
        rest,
        tool,
        axis,
        version,
        toolkit,
        target,
        letter_of(mark, status),
        message or status.replace("_", " "),
        own,
    )


def _tool_key(tool: str) -> tuple[Any, ...]:
    backend, *more = tool.split(" ")
    return (*backend_key(backend), *map(version_key, more))


def _grids(of: Mapping[tuple[str, str, str], Row]) -> dict[str, VersionGrid]:
    versions = tuple(sorted({place[0] for place in of}, key=version_key))
    toolkits = tuple(sorted({place[1] for place in of}, key=version_key))
    found = {}
    for target in sorted({place[2] for place in of}, key=target_key):
        letters = "".join(
            row.letter if (row := of.get((version, toolkit, target))) else UNTRIED
            for version in versions
            for toolkit in toolkits
        )
        found[target] = VersionGrid(versions, toolkits, letters)
    return found
