"""The tables of docs/records.md, made of the definition of a record's keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from harness.model import Stage, Status, Verdict
from harness.records.record import Record
from harness.records.schema import Field, fields_of

_BEGIN, _END = "<!-- made by python -m harness.report.schemas -->", "<!-- to here -->"
_WORDS: tuple[type[StrEnum], ...] = (Status, Stage, Verdict)


def with_tables(page: str) -> str:
    """Replace the text between the two marks of a page."""
    made = "\n".join((_BEGIN, "", *_keys(), "", *_words(), "", _END))
    return re.sub(f"{re.escape(_BEGIN)}.*?{re.escape(_END)}", lambda _: made, page, flags=re.DOTALL)


def _keys() -> Iterator[str]:
    yield "| key | type | meaning |"
    yield "| --- | --- | --- |"
    for key, field in _all(fields_of(Record)):
        yield f"| `{key}` | {field.check.kind} | {field.description} |"


def _words() -> Iterator[str]:
    for words in _WORDS:
        yield f"- A {words.__name__.lower()} is one of {', '.join(f'`{word}`' for word in words)}."


def _all(fields: Iterable[Field], before: str = "") -> Iterator[tuple[str, Field]]:
    """Keys with those of the tables in them: ``artifact.kernels[].name``."""
    for field in fields:
        key = before + field.name
        yield key, field
        if field.table is not None:
            several = "[]" if field.check.schema.get("type") == "array" else ""
            yield from _all(fields_of(field.table), f"{key}{several}.")
