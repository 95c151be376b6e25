"""What a record looks like, and how older ones become newer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from harness.model import Stage, Status, Target, TargetError, Verdict
from harness.model.target import TARGET_PATTERN
from harness.records.errors import RecordError
from harness.records.record import SCHEMA, Record


@dataclass(frozen=True)
class Check:
    """What a value must be: called with value and key it raises `RecordError`, with the key in front; `schema` says the same as JSON Schema."""

    run: Callable[[Any, str], None]
    schema: Mapping[str, Any]

    def __call__(self, value: Any, key: str) -> None:
        self.run(value, key)


MIGRATIONS: dict[int, Callable[[Record], Record]] = {}
"""By schema version: makes a record of the version after it."""


def upgrade(record: Record, schema: int = SCHEMA) -> Record:
    """Bring a record of an older schema to `schema`; refuse a newer one."""
    version = record.get("schema")
    if type(version) is not int or version < 1:
        raise RecordError("schema: must be a whole number from 1" if "schema" in record else "schema: missing")
    if version > schema:
        raise RecordError(
            f"schema: the record has version {version} and this cumatrix reads versions up to {schema}: update cumatrix"
        )
    while version < schema:
        if version not in MIGRATIONS:
            raise RecordError(f"schema: records of version {version} can no longer be read: run the cells again")
        record = {**MIGRATIONS[version](record), "schema": version + 1}
        version += 1
    return record


def check_record(record: Record) -> None:
    """Raise `RecordError` naming the key when a record lacks one or has another type there.

    Keys that are not known are let through: a later version of the same schema may add some.
    """
    _fields(_RECORD, _LATER)(record, "")


def check_value(key: str, value: Any) -> None:
    """Raise `RecordError` when `value` cannot stand at the record's key `key`."""
    _RECORD.get(key, _anything)(value, key)


def _anything(value: Any, key: str) -> None:
    pass


def record_schema() -> dict[str, Any]:
    """JSON Schema of a record, made from what `check_record` checks."""
    schema = _fields({"schema": _schema_version, **_RECORD}).schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cumatrix:record:{SCHEMA}",
        "title": "A record of cumatrix: one line of a .jsonl",
        **schema,
    }


def _of(kind: type, word: str, schema: Mapping[str, Any]) -> Check:
    def check(value: Any, key: str) -> None:
        # bool is an int to isinstance, and `true` is no number of registers.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise RecordError(f"{key}: must be {word}, not {_word(value)}")

    return Check(check, schema)


def _word(value: Any) -> str:
    names = {
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "a table",
    }
    return names.get(type(value), "null")


_text = _of(str, "text", {"type": "string"})
_flag = _of(bool, "true or false", {"type": "boolean"})
_whole = _of(int, "a whole number", {"type": "integer"})
_table = _of(dict, "a table", {"type": "object"})


def _is_filled(value: Any, key: str) -> None:
    _text(value, key)
    if not value:
        raise RecordError(f"{key}: must not be empty")


def _is_seconds(value: Any, key: str) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise RecordError(f"{key}: must be a number, not {_word(value)}")
    if not math.isfinite(value) or value < 0:
        raise RecordError(f"{key}: must be a number of seconds, not {value}")


def _is_target(value: Any, key: str) -> None:
    _text(value, key)
    try:
        Target.parse(value)
    except TargetError as error:
        raise RecordError(f"{key}: {error}") from None


_filled = Check(_is_filled, {"type": "string", "minLength": 1})
_seconds = Check(_is_seconds, {"type": "number", "minimum": 0})
_target = Check(_is_target, {"type": "string", "pattern": f"^{TARGET_PATTERN}$"})
_schema_version = Check(_whole.run, {"const": SCHEMA})


def _word_of(kind: type[StrEnum]) -> Check:
    def check(value: Any, key: str) -> None:
        _text(value, key)
        if value not in list(kind):
            raise RecordError(f"{key}: {value!r} is not one of {', '.join(kind)}")

    return Check(check, {"enum": [str(word) for word in kind]})


def _or_null(inner: Check) -> Check:
    def check(value: Any, key: str) -> None:
        if value is not None:
            inner(value, key)

    return Check(check, {"anyOf": [{"type": "null"}, inner.schema]})


def _each(inner: Check) -> Check:
    def check(value: Any, key: str) -> None:
        if not isinstance(value, list):
            raise RecordError(f"{key}: must be a list, not {_word(value)}")
        for place, item in enumerate(value):
            inner(item, f"{key}[{place}]")

    return Check(check, {"type": "array", "items": inner.schema})


def _fields(required: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    def check(value: Any, key: str) -> None:
        if not isinstance(value, dict):
            raise RecordError(f"{key + ': ' if key else ''}must be a table, not {_word(value)}")
        prefix = f"{key}." if key else ""
        for name, inner in required.items():
            if name not in value:
                raise RecordError(f"{prefix}{name}: missing")
            inner(value[name], prefix + name)
        for name, inner in (optional or {}).items():
            if name in value:
                inner(value[name], prefix + name)

    known = {**required, **(optional or {})}
    properties = {name: inner.schema for name, inner in known.items()}
    return Check(check, {"type": "object", "required": list(required), "properties": properties})


_KERNEL = _fields(
    {"name": _text},
    dict.fromkeys(
        (
            "num_regs",
            "shared_bytes",
            "local_bytes",
            "const_bytes",
            "spill_bytes",
            "stack_bytes",
            "instructions",
            "opcodes",
        ),
        _or_null(_whole),
    ),
)

_RECORD: Mapping[str, Check] = {
    "cell": _filled,
    "case": _filled,
    "title": _text,
    "topic": _text,
    "features": _each(_text),
    "links": _each(_text),
    "variant": _text,
    "backend": _filled,
    "library": _text,
    "target": _target,
    "toolkit": _filled,
    "environment": _text,
    "toolchain": _fields({"requested": _table, "observed": _table}),
    "status": _word_of(Status),
    "stage": _or_null(_word_of(Stage)),
    "stages": _each(_word_of(Stage)),
    "verdict": _word_of(Verdict),
    "expected": _fields(
        {
            "status": _word_of(Status),
            "stage": _or_null(_word_of(Stage)),
            "diagnostic": _or_null(_text),
            "xfail": _flag,
            "reason": _text,
            "link": _text,
        }
    ),
    "reason": _text,
    "diagnostics": _each(
        _fields(
            {"severity": _text, "message": _text},
            {"code": _text, "file": _text, "line": _or_null(_whole), "fingerprint": _text},
        )
    ),
    "artifact": _or_null(
        _fields({"format": _text, "target": _text, "bytes": _whole, "sha256": _text, "kernels": _each(_KERNEL)})
    ),
    "device": _table,
    "signal": _or_null(_whole),
    "seconds": _seconds,
    "cached": _flag,
    "command": _each(_text),
    "log": _text,
    "notes": _each(_text),
    "fingerprint": _text,
    "run": _text,
    "cumatrix": _text,
}

# Keys that records of earlier versions of cumatrix do not have.
_LATER: Mapping[str, Check] = {
    "peak_bytes": _or_null(_whole),
    "program": _text,
    "others": _each(
        _fields(
            {
                "run": _text,
                "status": _word_of(Status),
                "stage": _or_null(_word_of(Stage)),
                "reason": _text,
                "diagnostic": _text,
            },
            {"device": _text},
        )
    ),
}
