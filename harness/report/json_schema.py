"""Parts of JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.target import TARGET_PATTERN

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
TARGET = {"type": "string", "pattern": f"^{TARGET_PATTERN}$"}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def object_of(properties: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys, all of them required except the optional ones."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **(optional or {})},
    }


def list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    """A list of these."""
    return {"type": "array", "items": items}


def map_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """An object with any keys."""
    return {"type": "object", "additionalProperties": values}
