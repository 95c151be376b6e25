"""Validation of records, from the definition of their keys (`harness.records.record`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from harness.records.record import (
    FLAG,
    SCHEMA,
    TABLE,
    TEXT,
    WHOLE,
    Check,
    InvalidValue,
    Kernel,
    Record,
    RecordError,
    word_of,
)


@dataclass(frozen=True, kw_only=True)
class Field:
    """One key of a table.

    Parameters
    ----------
    name : str
        The key.
    check : Check
        The check of its value.
    description : str
        Its meaning, in Markdown.
    required : bool
        Whether every table of the kind has it.
    table : type or None
        The definition of the table in its value, or of the tables in the list in its value.
    """

    name: str
    check: Check
    description: str
    required: bool
    table: type | None


def fields_of(table: type) -> tuple[Field, ...]:
    """Return the keys of a `TypedDict`, in its order."""
    return tuple(_field(name, hint) for name, hint in get_type_hints(table, include_extras=True).items())


def check_schema(record: Mapping[str, Any], schema: int = SCHEMA) -> None:
    """Refuse a record of another schema."""
    version = record.get("schema")
    if type(version) is not int or version < 1:
        raise RecordError("schema: must be a whole number from 1" if "schema" in record else "schema: missing")
    if version > schema:
        raise RecordError(
            f"schema: the record has version {version} and this cumatrix reads versions up to {schema}: update cumatrix"
        )
    if version < schema:
        raise RecordError(f"schema: records of version {version} can no longer be read: run the cells again")


def check_record(value: Any) -> Record:
    """Return `value` as a record, if it has every required key with a value of the right type.

    Unknown keys are allowed: a later version of the same schema may add some.

    Raises
    ------
    RecordError
        If `value` is not a record. The message names the key.
    """
    try:
        _RECORD.run(value)
    except InvalidValue as error:
        raise RecordError(str(error)) from None
    record: Record = value
    return record


def check_value(key: str, value: Any) -> None:
    """Raise `RecordError` if `value` is invalid for the record's key `key`."""
    if key not in FIELDS:
        return
    try:
        FIELDS[key].check.run(value)
    except InvalidValue as error:
        error.path.append(key)
        raise RecordError(str(error)) from None


def check_kernels(value: Any) -> None:
    """Raise `RecordError` if `value` is not a list of kernels as in artifacts."""
    try:
        _KERNELS.run(value)
    except InvalidValue as error:
        error.path.append("kernels")
        raise RecordError(str(error)) from None


def record_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record: the checks of `check_record` that JSON Schema can express."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cumatrix:record:{SCHEMA}",
        "title": "A record of cumatrix: one line of a .jsonl",
        **_RECORD.schema,
    }


_PLURALS = {"text": "texts", "a table": "tables", "a stage": "stages"}


def _field(name: str, hint: Any) -> Field:
    required = get_origin(hint) is not NotRequired
    if not required:
        (hint,) = get_args(hint)
    texts = [item for item in getattr(hint, "__metadata__", ()) if isinstance(item, str)]
    inner = hint
    while get_args(inner):
        inner = get_args(inner)[0]
    return Field(
        name=name,
        check=_check(hint),
        description=" ".join(texts),
        required=required,
        table=inner if is_typeddict(inner) else None,
    )


def _check(hint: Any, rule: Check | None = None) -> Check:
    """Return the check of a type. The other items of `Annotated` apply to values that are not null."""
    plain = {str: TEXT, bool: FLAG, int: WHOLE}
    if get_origin(hint) is Annotated:
        inner, *checks = get_args(hint)
        return _check(inner, next((item for item in checks if isinstance(item, Check)), None))
    if get_origin(hint) in (UnionType, Union):
        (inner,) = (each for each in get_args(hint) if each is not NoneType)
        return _or_null(_check(inner, rule))
    if rule is not None:
        return rule
    if get_origin(hint) is list:
        return _each(_check(get_args(hint)[0]))
    if is_typeddict(hint):
        return _table(fields_of(hint))
    return TABLE if get_origin(hint) is dict else plain[hint]


def _or_null(inner: Check) -> Check:
    run = inner.run

    def or_null(value: Any) -> None:
        if value is not None:
            run(value)

    return Check(or_null, {"anyOf": [{"type": "null"}, inner.schema]}, f"{inner.kind} or null")


def _each(inner: Check) -> Check:
    run = inner.run

    def each(value: Any) -> None:
        if not isinstance(value, list):
            raise InvalidValue(f"must be a list, not {word_of(value)}")
        place = 0
        try:
            for place in range(len(value)):
                run(value[place])
        except InvalidValue as error:
            error.path.append(place)
            raise

    return Check(each, {"type": "array", "items": inner.schema}, f"list of {_PLURALS.get(inner.kind, inner.kind)}")


def _table(fields: tuple[Field, ...]) -> Check:
    # Millions of values are checked: names are built only for invalid ones.
    required = [(field.name, field.check.run) for field in fields if field.required]
    optional = [(field.name, field.check.run) for field in fields if not field.required]

    def table(value: Any) -> None:
        if not isinstance(value, dict):
            raise InvalidValue(f"must be a table, not {word_of(value)}")
        name = ""
        try:
            for name, run in required:
                if name not in value:
                    raise InvalidValue("missing")
                run(value[name])
            for name, run in optional:
                if name in value:
                    run(value[name])
        except InvalidValue as error:
            error.path.append(name)
            raise

    properties = {field.name: _described(field) for field in fields}
    schema = {"type": "object", "required": [name for name, _ in required], "properties": properties}
    return Check(table, schema, TABLE.kind)


def _described(field: Field) -> Mapping[str, Any]:
    return {**field.check.schema, "description": field.description}


FIELDS: Mapping[str, Field] = {field.name: field for field in fields_of(Record)}
"""Keys of a record."""
_RECORD = _table(tuple(FIELDS.values()))
_KERNELS = _each(_table(fields_of(Kernel)))
