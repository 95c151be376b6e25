"""All data of each cell, in files of some hundred cells that the page loads on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.matrix.axes import AXES
from harness.records import Record
from harness.records.jsontext import text_of
from harness.report.annotations import More
from harness.report.text import clean

# As JSON writes control characters; without one, plain ASCII is clean.
_SUSPECT = re.compile(r"\\[bfru]|\x7f")

_NOTHING: Mapping[str, Any] = {}

CELLS = 250
"""Cells a file."""

# Already in the matrix or in the list of cases.
_KNOWN = frozenset(("schema", *(axis.key for axis in AXES), "title", "features", "links"))


def chunks(cells: Sequence[str], records: Mapping[str, Record], more: More) -> Iterator[str]:
    """The JSON of each file: values that occur, once each, and by key of a record which of them each of its cells has.

    Parameters
    ----------
    cells : sequence of str
        Ids, in the order of the matrix; one without a record never arrived.
    records : Mapping
        Records by id of their cell.
    more : callable
        Gives what the page adds to a record.
    """
    for start in range(0, len(cells), CELLS):
        chunk = _Chunk()
        for cell in cells[start : start + CELLS]:
            record = records.get(cell)
            if record:
                chunk.add(record, more(record))
            else:
                chunk.add({"cell": cell})
        yield chunk.json(start)


@lru_cache
def _told(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Those keys of a record that the page does not know already; most records have the same keys."""
    return tuple(key for key in keys if key not in _KNOWN)


class _Chunk:
    def __init__(self) -> None:
        self.count = 0
        self.values: list[str] = ["null"]
        self.columns: dict[str, list[int]] = {}
        self._texts: dict[str, int] = {"null": 0, '""': 0, "[]": 0, "{}": 0}
        # Texts by themselves, others by identity: records out of Parquet share what they have in common. The objects are kept,
        # so that no other one comes to have the id of one that is gone.
        self._known: dict[Any, tuple[int, Any]] = {}

    def add(self, record: Mapping[str, Any], more: Mapping[str, Any] = _NOTHING) -> None:
        known = self._known
        for key in (*_told(tuple(record)), *more):
            value = more[key] if key in more else record[key]
            name = value if type(value) is str else id(value)
            found = known.get(name)
            if found is None:
                found = known[name] = (self._place(value), value)
            if found[0]:
                column = self.columns.setdefault(key, [])
                if len(column) < self.count:
                    column += [0] * (self.count - len(column))
                column.append(found[0])
        self.count += 1

    def json(self, start: int) -> str:
        for column in self.columns.values():
            column.extend([0] * (self.count - len(column)))
        columns = text_of({clean(key): column for key, column in self.columns.items()})
        return f'{{"start":{start},"values":[{",".join(self.values)}],"columns":{columns}}}'

    def _place(self, value: Any) -> int:
        text = text_of(value)
        # Asked first, because most are plain texts, and a search takes several times as long.
        plain = type(value) is str and value.isascii() and value.isprintable()
        if not plain and (not text.isascii() or _SUSPECT.search(text)):
            text = text_of(_cleaned(value))
        if text not in self._texts:
            self._texts[text] = len(self.values)
            self.values.append(text)
        return self._texts[text]


def _cleaned(value: Any) -> Any:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in value]
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
    return value
