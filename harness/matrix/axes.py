"""The axes of the matrix: what tells one cell from another, in the order in which it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


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
    """

    key: str
    title: str
    side: Literal["row", "column"]


AXES = (
    Axis(key="topic", title="topic", side="row"),
    Axis(key="case", title="case", side="row"),
    Axis(key="variant", title="variant", side="row"),
    Axis(key="backend", title="backend", side="column"),
    Axis(key="library", title="version", side="column"),
    Axis(key="toolkit", title="CUDA", side="column"),
    Axis(key="target", title="target", side="column"),
)
"""Every axis. Records, tables, exports and the page's script follow this order."""

ROWS = tuple(axis.key for axis in AXES if axis.side == "row")
"""Keys of what goes down: topic, case, variant."""

COLUMNS = tuple(axis.key for axis in AXES if axis.side == "column")
"""Keys of what goes across: backend, library, toolkit, target."""

PROGRAM = tuple(key for key in ROWS if key != "topic")
"""Keys of a row; its topic follows from its case."""

TOOLCHAIN = tuple(key for key in COLUMNS if key != "target")
"""Keys of a group of columns, which the targets divide."""

PLACE = (*PROGRAM, *COLUMNS)
"""Keys that tell a cell from every other one."""
