"""Records as Parquet and back: one flat row per record, nested values as JSON, plans in the file's metadata."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from harness.matrix.marks import kind_of
from harness.records.make import largest
from harness.records.plan import CELL_KEYS, Inputs, Plan, check_plan
from harness.records.record import Record, RecordError, read_json, text_of
from harness.records.record_names import RESOURCES
from harness.records.schema import FIELDS, Field, check_schema, check_value

_TEXT, _WHOLE = pa.string(), pa.int64()
_TYPES = {"string": _TEXT, "integer": _WHOLE, "number": pa.float64(), "boolean": pa.bool_()}

# Additional columns for queries without JSON parsing, by the key that they follow.
_MADE: Mapping[str, Mapping[str, pa.DataType]] = {
    "verdict": {"mark": _TEXT},
    "reason": dict.fromkeys(("message", "diagnostic_code", "diagnostic_fingerprint"), _TEXT),
    "cached": {
        **dict.fromkeys(("artifact_format", "artifact_target", "artifact_sha256"), _TEXT),
        **dict.fromkeys(("artifact_bytes", *(f"max_{name}" for name in RESOURCES.values())), _WHOLE),
    },
    "cumatrix": {"more_json": _TEXT},
}


def _type_of(field: Field) -> pa.DataType | None:
    """Return the type of a key's column, or None for nested values."""
    if field.name == "schema":
        return pa.int32()
    schema = field.check.schema
    if "anyOf" in schema:
        schema = schema["anyOf"][1]  # the other alternative is null
    return _TEXT if "enum" in schema else _TYPES.get(schema["type"])


# Optional keys have no column of their own: ``more_json`` contains them.
COLUMNS = {name: _type_of(field) for name, field in FIELDS.items() if field.required}
"""Types of the columns by key; None for JSON."""
NESTED = tuple(name for name, type_ in COLUMNS.items() if type_ is None)


def _layout() -> Iterator[tuple[str, pa.DataType]]:
    """Yield the columns in order: short, nested, rarely used."""
    flat = [name for name in COLUMNS if name not in NESTED]
    last = flat.index("cached") + 1
    nested = list(NESTED)
    nested.insert(nested.index("toolchain"), nested.pop(nested.index("stages")))  # as in the first files
    for name in (*flat[:last], *nested, *flat[last:]):
        yield (f"{name}_json", _TEXT) if name in NESTED else (name, COLUMNS[name])
        yield from _MADE.get(name, {}).items()


LAYOUT = pa.schema(list(_layout()))
"""Columns of the file, in order."""


def made_columns(records: Sequence[Record]) -> dict[str, list[Any]]:
    """Return the additional columns for queries without JSON parsing."""
    artifacts: list[Mapping[str, Any]] = [record["artifact"] or {} for record in records]
    kernels: list[Sequence[Mapping[str, Any]]] = [artifact.get("kernels", ()) for artifact in artifacts]
    first: list[Mapping[str, Any]] = [record["diagnostics"][0] if record["diagnostics"] else {} for record in records]
    # Most records have only the common keys.
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
        **{f"max_{name}": [largest(of, name) for of in kernels] for name in RESOURCES.values()},
    }


_PLANS = b"cumatrix.plans"
_INPUTS = b"cumatrix.inputs"
_LARGEST = 16 << 30
"""The maximum unpacked size of a file's columns in bytes."""


def results_parquet(
    records: Iterable[Record], plans: Iterable[Plan] = (), inputs: Inputs | None = None, *, small: bool = False
) -> bytes:
    """Return ``results.parquet`` of records, without loss: `read_parquet` returns the same records.

    With `small`, writing takes longer and the file is smaller: only ``artifact_json`` contains the hashes of artifacts,
    which do not compress.
    """
    records = list(records)
    rows: Sequence[Mapping[str, Any]] = records
    made = made_columns(records)
    if small:
        made["artifact_sha256"] = [None] * len(records)
    columns = []
    values: list[Any]
    for field in LAYOUT:
        if (name := field.name.removesuffix("_json")) in NESTED:
            # Many records share an object, which is written once.
            objects = list(map(itemgetter(name), rows))
            numbers = list(map(id, objects))
            texts = {number: text_of(value) for number, value in dict(zip(numbers, objects, strict=True)).items()}
            values = [texts[number] for number in numbers]
        elif field.name in COLUMNS:
            # Arrow's integers have up to 64 bits, also in a column of floats.
            values = list(map(itemgetter(name), rows))
            if name == "seconds":
                values = list(map(float, values))
        else:
            values = made[field.name]
        columns.append(pa.array(values, field.type))
    table = pa.Table.from_arrays(columns, schema=LAYOUT)
    known = {_INPUTS: inputs.packed()} if inputs else {}
    table = table.replace_schema_metadata({_PLANS: _plans_json(plans, records), **known})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=19 if small else None)
    return buffer.getvalue()


def read_parquet(path: Path) -> tuple[list[Record], list[Plan]]:
    """Read the records and plans of a file that `results_parquet` made.

    Records share equal values: treat them as immutable.

    Raises
    ------
    RecordError
        If it is not such a file. The message names the file and the column.
    """
    try:
        with pq.ParquetFile(path) as file:
            unpacked = sum(file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups))
            if unpacked > _LARGEST:
                raise RecordError(f"{path}: unpacks to more than {_LARGEST >> 30} GiB, and is not read")
            texts = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
        table = pq.read_table(path, read_dictionary=texts, partitioning=None)
    except FileNotFoundError:
        raise RecordError(f"{path}: no such file or folder") from None
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    try:
        for version in set(_column(table, "schema")):
            check_schema({"schema": version})
        columns = {key: _column(table, key) for key in COLUMNS}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        for row, more in zip(rows, _column(table, "more"), strict=True):
            row.update(more or {})
        records = cast("list[Record]", rows)  # each value was checked on reading
        plans = _read_plans((table.schema.metadata or {}).get(_PLANS, b"[]"), records)
    except (
        RecordError,
        pa.ArrowException,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OverflowError,
    ) as error:
        raise RecordError(f"{path}: {(str(error).splitlines() or ['damaged'])[0]}") from None
    return records, plans


def read_inputs_of(path: Path) -> Inputs:
    """Read the input manifest of a file's records, if it has one.

    Raises
    ------
    RecordError
        If the manifest cannot be read.
    """
    try:
        metadata = pq.read_schema(path).metadata or {}
    except (pa.ArrowException, OSError) as error:
        raise RecordError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    return Inputs.unpacked(metadata[_INPUTS], str(path)) if _INPUTS in metadata else Inputs()


def _column(table: pa.Table, key: str) -> list[Any]:
    """Return one value per record. Each distinct value is read and checked once."""
    name = f"{key}_json" if key in (*NESTED, "more") else key
    if name not in table.column_names:
        if key == "more":
            return [None] * table.num_rows
        raise RecordError(f"no column {name}: this is not a file of cumatrix's results")
    column = table.column(name).combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
    values = column.dictionary.to_pylist()
    if name.endswith("_json"):
        values = [value and read_json(value.encode()) for value in values]
    if key == "more":
        for more in filter(None, values):
            for name in more:
                check_value(name, more[name])
    if key in COLUMNS:
        for value in values:
            check_value(key, value)
        if column.null_count:
            check_value(key, None)
    values.append(None)
    return [values[place] for place in column.indices.fill_null(len(values) - 1).to_pylist()]


def _plans_json(plans: Iterable[Plan], records: Sequence[Record]) -> bytes:
    """Return plans as JSON. Cells with a record are ranges of row numbers."""
    rows = {record["cell"]: number for number, record in enumerate(records)}
    slim = []
    for plan in plans:
        arrived = sorted(rows[cell["cell"]] for cell in plan["cells"] if cell["cell"] in rows)
        absent = [cell for cell in plan["cells"] if cell["cell"] not in rows]
        slim.append({**plan, "cells": absent, "rows": _ranges(arrived)})
    return json.dumps(slim, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _read_plans(data: bytes, records: Sequence[Record]) -> list[Plan]:
    plans = read_json(data)
    for plan in plans:
        rows = plan.pop("rows")
        # The other cells are from records, which are already checked.
        check_plan(plan)
        plan["cells"][:0] = [_planned(records[row]) for a, b in rows for row in range(a, b)]
    found: list[Plan] = plans
    return found


def _planned(record: Record) -> dict[str, Any]:
    """Return a record's cell as its plan has it."""
    row: Mapping[str, Any] = record
    return {key: row[key] for key in (*CELL_KEYS, "program", "project") if key in row}


def _ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return sorted numbers as half-open ranges."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1][1] += 1
        else:
            found.append([number, number + 1])
    return found
