"""Columns of ``results.parquet``: one for each key of a record, and some that are made of what is nested in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from harness.matrix.kinds import kind_of
from harness.records.record import Record
from harness.records.resources import largest
from harness.records.schema import FIELDS, Field

RESOURCES = ("num_regs", "shared_bytes", "spill_bytes")
"""Resources for which a row has the maximum over the record's kernels."""

_TEXT, _WHOLE = pa.string(), pa.int64()
_TYPES = {"string": _TEXT, "integer": _WHOLE, "number": pa.float64(), "boolean": pa.bool_()}

# Additional columns, so that rows can be queried without reading JSON, by the key that they follow.
_MADE: Mapping[str, Mapping[str, pa.DataType]] = {
    "verdict": {"mark": _TEXT},
    "reason": dict.fromkeys(("message", "diagnostic_code", "diagnostic_fingerprint"), _TEXT),
    "cached": {
        **dict.fromkeys(("artifact_format", "artifact_target", "artifact_sha256"), _TEXT),
        **dict.fromkeys(("artifact_bytes", *(f"max_{name}" for name in RESOURCES)), _WHOLE),
    },
    "cumatrix": {"more_json": _TEXT},
}


def _type_of(field: Field) -> pa.DataType | None:
    """Type of a key's column; none for what is nested."""
    if field.name == "schema":
        return pa.int32()
    schema = field.check.schema
    if "anyOf" in schema:
        schema = schema["anyOf"][1]  # null, or this
    return _TEXT if "enum" in schema else _TYPES.get(schema["type"])


# Optional keys have a column of their own, as JSON.
COLUMNS = {name: _type_of(field) for name, field in FIELDS.items() if field.required}
"""Type of the column by key; none where it is JSON."""
NESTED = tuple(name for name, type_ in COLUMNS.items() if type_ is None)


def _layout() -> Iterator[tuple[str, pa.DataType]]:
    """Column order: short, nested, rarely used."""
    flat = [name for name in COLUMNS if name not in NESTED]
    last = flat.index("cached") + 1
    nested = list(NESTED)
    nested.insert(nested.index("toolchain"), nested.pop(nested.index("stages")))  # as in the first such files
    for name in (*flat[:last], *nested, *flat[last:]):
        yield (f"{name}_json", _TEXT) if name in NESTED else (name, COLUMNS[name])
        yield from _MADE.get(name, {}).items()


LAYOUT = pa.schema(list(_layout()))
"""Columns of the file, in order."""


def made_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Additional columns, so that rows can be queried without reading JSON."""
    artifacts: list[Mapping[str, Any]] = [record["artifact"] or {} for record in records]
    kernels: list[Sequence[Mapping[str, Any]]] = [artifact.get("kernels", ()) for artifact in artifacts]
    first: list[Mapping[str, Any]] = [record["diagnostics"][0] if record["diagnostics"] else {} for record in records]
    # Most records have nothing but what all have.
    more = [
        {key: value for key, value in record.items() if key not in COLUMNS} if len(record) > len(COLUMNS) else None
        for record in records
    ]
    return {
        "mark": [kind_of(record).key for record in records],
        "message": [item.get("message") for item in first],
        "diagnostic_code": [item.get("code") for item in first],
        "diagnostic_fingerprint": [item.get("fingerprint") for item in first],
        "more_json": [json.dumps(item, ensure_ascii=False, sort_keys=True) if item else None for item in more],
        **{
            f"artifact_{name}": [artifact.get(name) for artifact in artifacts]
            for name in ("format", "target", "sha256", "bytes")
        },
        **{f"max_{name}": [largest(of, name) for of in kernels] for name in RESOURCES},
    }
