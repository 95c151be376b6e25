"""Reading JSON that anyone may have written, so that all that is made of it can be written again, and writing records as lines of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from harness.errors import UsageError

_DEEPEST = 100
"""So many lists and tables may stand within each other: what walks through a value calls itself for each."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def line_of(record: Mapping[str, Any]) -> bytes:
    """One line of JSON in UTF-8, with its end; numbers that are not finite must not come here (`harness.records.make`)."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # A lone surrogate (a byte of a log that was not UTF-8) cannot be encoded; JSON's escape can. Nor does it take numbers of more than 64 bits.
        return _LINE.encode(record).encode("utf-8", "backslashreplace") + b"\n"


def text_of(value: Any) -> str:
    """JSON without a space too many, on one line; numbers that are not finite are null."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _LINE.encode(value)  # as above


def read_json(data: bytes) -> Any:
    """The value of a text of JSON, without lone surrogates, which no file could hold.

    Raises
    ------
    ValueError
        When it is no JSON, no UTF-8 (then it is a `UnicodeDecodeError`), or nested too deeply.
    """
    try:
        value = _decode(data.decode())
    except RecursionError:
        raise _too_deep() from None
    if data.count(b"[") + data.count(b"{") > _DEEPEST:
        _check_depth(value)
    return _encodable(value) if _SURROGATE.search(data) else value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


# Once: `json.loads` makes a decoder for each call with options.
_decode = json.JSONDecoder(parse_constant=_no_constant).decode


def _too_deep() -> ValueError:
    return ValueError(f"lists and tables within each other more than {_DEEPEST} times")


def _check_depth(value: Any) -> None:
    level = [value] if isinstance(value, list | dict) else []
    for _ in range(_DEEPEST):
        tables = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in tables for item in items if isinstance(item, list | dict)]
        if not level:
            return
    raise _too_deep()


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_encodable(item) for item in value]
        case dict():
            return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


class RecordError(UsageError):
    """A file of records or a plan that cannot be used; the message is one plain sentence."""
