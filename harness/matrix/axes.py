"""The axes of the matrix: the keys that separate cells, in display order.

Everything that lays cells out follows from `AXES`: columns of tables and histories, plans, exports, the pages, the filters and the query language of
the page's script. A new axis is an entry here and a key of the same name in `harness.records.record`, which says what records hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from typing import Any, Literal

from harness.model import Cell


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis.

    Parameters
    ----------
    key : str
        Key of records, column of tables.
    title : str
        What headings call it.
    side : str
        ``row``: goes down the matrix; ``column``: goes across.
    value : callable
        What a cell has of it, for records and plans.
    about : str
        What it is, in a few words: the page says so where it completes queries.
    kind : str
        The kind of its values, for ordering and search: ``name`` (found by a part of it), ``word`` (found as a whole), ``backend``
        (in the order of `harness.backends.BACKENDS`), ``version``, ``release`` (of CUDA, maybe with headers of another), ``target``.
    filter : bool
        Whether the page has a filter for it.
    prefix : str
        The prefix of a value in headings: ``CUDA 12.4``. Values without one follow the backend: ``cupy-nvrtc 13.6.0``.
    optional : bool
        Whether it came after the first records: those without its key have no value of it.
    """

    key: str
    title: str
    side: Literal["row", "column"]
    value: Callable[[Cell], str]
    about: str
    kind: Literal["name", "word", "backend", "version", "release", "target"] = "name"
    filter: bool = False
    prefix: str = ""
    optional: bool = False

    def label(self, value: str) -> str:
        """A value as headings have it: ``CUDA 12.4, headers 12.6``; empty where there is none."""
        return f"{self.prefix}{value.replace('+headers', ', headers ')}" if self.prefix and value else value

    def to_json(self) -> dict[str, Any]:
        """The axis as the page's script needs it."""
        names = ("key", "title", "side", "about", "kind", "filter", "prefix", "optional")
        return {name: getattr(self, name) for name in names}


AXES = (
    Axis(
        key="topic",
        title="topic",
        side="row",
        value=lambda cell: cell.case.topic,
        about="topic of the case",
        kind="word",
        filter=True,
    ),
    Axis(key="case", title="case", side="row", value=lambda cell: cell.case.name, about="name of the case"),
    Axis(
        key="variant",
        title="variant",
        side="row",
        value=lambda cell: cell.variant.name,
        about="the case's parameters",
    ),
    Axis(
        key="backend",
        title="backend",
        side="column",
        value=lambda cell: cell.toolchain.backend,
        about="way to compile",
        kind="backend",
        filter=True,
    ),
    Axis(
        key="library",
        title="version",
        side="column",
        value=lambda cell: cell.toolchain.library,
        about="version of the library behind the backend",
        kind="version",
        filter=True,
    ),
    Axis(
        key="toolkit",
        title="CUDA",
        side="column",
        value=lambda cell: str(cell.toolchain.toolkit),
        about="CUDA release",
        kind="release",
        filter=True,
        prefix="CUDA ",
    ),
    Axis(
        key="host_compiler",
        title="host compiler",
        side="column",
        value=lambda cell: cell.toolchain.host.name,
        about="what nvcc hands the host's half to",
        filter=True,
        optional=True,
    ),
    Axis(
        key="target",
        title="target",
        side="column",
        value=lambda cell: str(cell.target),
        about="architecture, such as sm_80",
        kind="target",
        filter=True,
    ),
)
"""Every axis. Records, tables, exports and the page's script follow this order; targets divide what the other columns make."""

AXIS: Mapping[str, Axis] = {axis.key: axis for axis in AXES}
"""Each by its key."""

ROWS = tuple(axis.key for axis in AXES if axis.side == "row")
"""Keys of what goes down: topic, case, variant."""

PROGRAM = tuple(key for key in ROWS if key != "topic")
"""Keys of a row, its case first; its topic follows from its case."""

TOOLCHAIN = tuple(axis.key for axis in AXES if axis.side == "column" and axis.key != "target")
"""Keys of a group of columns, which the targets divide: backend, library, toolkit."""

COLUMNS = (*TOOLCHAIN, "target")
"""Keys of what goes across."""

PLACE = (*PROGRAM, *COLUMNS)
"""Keys that tell a cell from every other one."""

FIRST = tuple(key for key in PLACE if not AXIS[key].optional)
"""Those of the first records: links to cells that have nothing else have only these, and hold for ever."""

FURTHER = tuple(key for key in PLACE if key not in ("case", "variant", "backend", "library", "toolkit", "target"))
"""Keys that analyses do not know by name: they compare and fold only cells that have the same of them all."""


def place_of(cell: Mapping[str, Any], keys: tuple[str, ...] = PLACE) -> tuple[str, ...]:
    """The place of a record, a planned cell or a row of a table, by some of the keys; empty for missing keys."""
    return tuple(map(cell.get, keys, repeat("")))


def labels(values: Iterable[str], keys: Iterable[str]) -> list[str]:
    """Values as headings have them, without the empty ones."""
    found = (AXIS[key].label(value) for key, value in zip(keys, values, strict=True))
    return [label for label in found if label]


def program_of(cell: Mapping[str, Any]) -> tuple[str, str]:
    """Case of a cell, and what else tells its row from others, as readers see it: its variant."""
    case, *rest = place_of(cell, PROGRAM)
    return case, _row_label(*rest)


@lru_cache(maxsize=4096)
def _row_label(*rest: str) -> str:
    return " ".join(labels(rest, PROGRAM[1:]))
