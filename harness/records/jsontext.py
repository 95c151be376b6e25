"""Reading JSON that anyone may have written, so that all that is made of it can be written again."""

from __future__ import annotations

import json
import re
from typing import Any

_DEEPEST = 100
"""So many lists and tables may stand within each other: what walks through a value calls itself for each."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


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


# Once: `json.loads` makes a decoder for each text where it is told anything.
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
