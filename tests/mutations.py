"""Small damage to valid files, as another version, an editor, a bad disk or an attacker causes."""

from __future__ import annotations

import copy
import io
import json
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

HOSTILE = "\x1b[31m\x1b]0;x\x07\x9b2J\u202e\u2066\u061c\x7f\x00\r<script>`|$(id)\n::error::x\n ##[error]y ##vso[z]"
TEXTS = ["", " ", "x", HOSTILE, "\ud800", "\udfff\ud800", "ä" * 3000, "13.x", "not-a-version", "12.4+headers", "+headers13.0", "@local", "sm_", "sm_999999999999999999999",
         "sm_80", "compute_90a", "..", "../../x", "/", "a/b/c", "=1+1", "NaN", "2026-13-45", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00", "[", "(a+)+$", "{}", "null", "a=b,c=d", "x=1" * 99]  # fmt: skip
VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    [],
    {},
    [[]],
    [{}],
    {"": {}},
    [None],
    ["x", 1],
    *TEXTS,
]


def mutated(value: Any, random: Random) -> Any:
    """Return a JSON value with one to three changes."""
    value = copy.deepcopy(value)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(random.choice(VALUES))
        holder, key = random.choice(places)
        match random.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[random.choice(("unknown", "", HOSTILE, "\ud800", "schema"))] = copy.deepcopy(
                    random.choice(VALUES)
                )
            case 1:
                holder.insert(0, copy.deepcopy(random.choice(VALUES)))
            case 2 if isinstance(holder[key], str):
                holder[key] += random.choice(TEXTS)
            case 3 if isinstance(holder[key], list) and holder[key]:
                holder[key] *= random.choice((2, 50))
            case 4 if isinstance(holder[key], int):
                holder[key] = str(holder[key])
            case 5:
                holder[key] = _deep(random.choice((5, 900)))
                return value  # deeper values cannot be written
            case _:
                holder[key] = copy.deepcopy(random.choice(VALUES))
    return value


def _places(value: Any) -> Any:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


def _deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def damaged(data: bytes, random: Random) -> bytes:
    """Return bytes with a change at one place."""
    place = random.randrange(len(data) + 1)
    match random.randrange(6):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]
        case 2:
            return (
                data[:place]
                + random.choice(
                    (b"\0", b"\xff", b"\n", b"\r\n", b"\xef\xbb\xbf", b"NaN", b"{", b"[" * 5000, b'"', b"1e999")
                )
                + data[place:]
            )
        case 3:
            return data[place:] + data[:place]
        case 4:
            return data + data
        case _:
            return data[:place] + data[place + random.randrange(1, 50) :]


def json_lines(values: list[Any], random: Random) -> bytes:
    """Yield lines of JSON with a changed line or changed bytes."""
    values = list(values)
    if random.random() < 0.8:
        place = random.randrange(len(values))
        values[place] = mutated(values[place], random)
    data = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    return damaged(data, random) if random.random() < 0.2 else data


def json_file(value: Any, random: Random) -> bytes:
    """Return a JSON file with one to three changes."""
    if random.random() < 0.8:
        return json.dumps(mutated(value, random)).encode()
    return damaged(json.dumps(value).encode(), random)


def parquet(data: bytes, random: Random) -> bytes:
    """Yield Parquet files with a missing or different column, with other metadata, or with damaged bytes."""
    if random.random() < 0.3:
        return damaged(data, random)
    table = pq.read_table(io.BytesIO(data), partitioning=None)
    place = random.randrange(table.num_columns)
    name, column = table.column_names[place], table.column(place)
    rows = table.num_rows
    match random.randrange(7):
        case 0:
            table = table.remove_column(place)
        case 1:
            table = table.rename_columns([*table.column_names[:place], "other", *table.column_names[place + 1 :]])
        case 2:
            table = table.replace_schema_metadata(_metadata(table.schema.metadata or {}, random))
        case 3:
            table = table.slice(0, 0)
        case 4:
            table = table.append_column(random.choice((name, "unknown", "run", HOSTILE)), column)
        case _:
            values = _columns(column.to_pylist(), rows, random)
            table = table.set_column(place, name, values)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _columns(old: list[Any], rows: int, random: Random) -> pa.Array:
    text = random.choice([item for item in TEXTS if "\ud800" not in item])
    several = [
        pa.nulls(rows), pa.nulls(rows, pa.string()), pa.array([True] * rows), pa.array([2**63 - 1] * rows), pa.array([2**64 - 1] * rows, pa.uint64()),
        pa.array([float("nan")] * rows), pa.array([1e308] * rows), pa.array([[text]] * rows), pa.array([{"a": 1}] * rows), pa.array([b"\xff"] * rows),
        pa.array([0] * rows, pa.timestamp("ns")), pa.array([text] * rows), pa.array([text] * rows).dictionary_encode(), pa.array([json.dumps(random.choice(VALUES))] * rows),
    ]  # fmt: skip
    if old and all(isinstance(item, str) for item in old):
        changed = list(old)
        changed[random.randrange(len(changed))] = text
        several += [pa.array(changed)] * 4
        try:
            value = json.loads(old[0])
            several += [pa.array([json.dumps(mutated(value, random)), *old[1:]])] * 12
        except ValueError:
            pass
    return random.choice(several)


def _metadata(metadata: dict[bytes, bytes], random: Random) -> dict[bytes, bytes]:
    if not metadata or random.random() < 0.2:
        return {}
    key = random.choice(sorted(metadata))
    try:
        changed = json_file(json.loads(metadata[key]), random)
    except ValueError:
        changed = random.choice((b"", b"\xff", b"99", b"-1", b"x" * 100))
    return {**metadata, key: changed}
