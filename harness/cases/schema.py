"""JSON Schema of ``case.toml``, for editors that complete and check keys; made from `harness.cases.keys`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cases.keys import (
    ARGUMENT,
    CASE,
    EXPECT,
    IDENTIFIER,
    KINDS,
    LABEL,
    LAUNCH,
    LIBRARY,
    OPTIONS,
    SOURCE,
    UNSUPPORTED,
    VERIFY,
    Key,
)
from harness.cases.sources import SIGNATURE

FILE_NAME = "case.schema.json"

# Draft 7 is what the TOML language servers of editors read.
_DRAFT = "http://json-schema.org/draft-07/schema#"
_SCALAR = {"type": ["string", "number", "boolean"]}


def case_schema() -> dict[str, Any]:
    """The schema as a JSON value. It cannot tell what only the loader knows: files, conditions, variants."""
    properties = _properties(CASE)
    properties["source"] |= {**_table(SOURCE), "minProperties": 1}
    properties["entry"] |= _ENTRY
    properties["parameters"] |= _PARAMETERS
    properties["libraries"] |= {
        "type": "object",
        "propertyNames": {"pattern": IDENTIFIER},
        "additionalProperties": {"oneOf": [_VERSIONS, _table(LIBRARY)]},
    }
    lists = {"options": OPTIONS, "launch": LAUNCH, "verify": VERIFY, "unsupported": UNSUPPORTED, "expect": EXPECT}
    for name, keys in lists.items():
        properties[name] |= {"type": "array", "items": _table(keys)}
    properties["launch"]["items"]["properties"]["arguments"] |= {"type": "array", "items": _table(ARGUMENT)}
    return {
        "$schema": _DRAFT,
        "title": "A case of cumatrix",
        **_table(CASE),
        "properties": properties,
    }


def write_schema(path: Path) -> None:
    """Write the schema to `path`, for instance ``cases/case.schema.json``."""
    Path(path).write_text(json.dumps(case_schema(), indent=2) + "\n", encoding="utf-8")


def _table(keys: Mapping[str, Key]) -> dict[str, Any]:
    required = [name for name, key in keys.items() if key.required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": _properties(keys),
    }


def _properties(keys: Mapping[str, Key]) -> dict[str, Any]:
    return {
        name: {
            "description": key.help,
            **KINDS[key.kind].schema,
            **({"enum": list(key.choices)} if key.choices else {}),
        }
        for name, key in keys.items()
    }


_KERNELS = {
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "string", "pattern": IDENTIFIER},
}

_ENTRY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "cuda": _KERNELS,
        "torch": _KERNELS,
        "cupy": _KERNELS,
        "python": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": IDENTIFIER},
            "additionalProperties": {"type": "string", "pattern": SIGNATURE},
        },
    },
}

_VERSIONS = {"type": "array", "minItems": 1, "uniqueItems": True, "items": {"type": "string"}}

_PARAMETERS = {
    "type": "object",
    "propertyNames": {"pattern": IDENTIFIER},
    "additionalProperties": {
        "oneOf": [
            {
                "type": "array",
                "minItems": 1,
                "uniqueItems": True,
                "items": {"anyOf": [{"type": "string", "pattern": LABEL}, {"type": ["number", "boolean"]}]},
            },
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": {"pattern": LABEL},
                "additionalProperties": {
                    "type": "object",
                    "propertyNames": {"pattern": IDENTIFIER},
                    "additionalProperties": _SCALAR,
                },
            },
        ]
    },
}


if __name__ == "__main__":
    write_schema(Path(__file__).parents[2] / "cases" / FILE_NAME)
