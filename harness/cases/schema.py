"""JSON Schema of ``case.toml``, for editors that complete and check keys; made from `harness.cases.keys`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.cases.keys import ARGUMENT, CASE, EXPECT, LAUNCH, LIBRARY, OPTIONS, SOURCE, UNSUPPORTED, VERIFY
from harness.cases.kinds import IDENTIFIER, KINDS, LABEL, SIGNATURE, Key

FILE_NAME = "case.schema.json"

# Draft 7 is what the TOML language servers of editors read.
DRAFT = "http://json-schema.org/draft-07/schema#"
_SCALAR = {"type": ["string", "number", "boolean"]}


def case_schema() -> dict[str, Any]:
    """The schema as a JSON value. It cannot tell what only the loader knows: files, conditions, variants."""
    properties = properties_of(CASE)
    properties["source"] |= {**table_of(SOURCE), "minProperties": 1}
    properties["entry"] |= _ENTRY
    add_tables(properties)
    properties["launch"]["items"]["properties"]["arguments"] |= {"type": "array", "items": table_of(ARGUMENT)}
    return {
        "$schema": DRAFT,
        "title": "A case of cumatrix",
        **table_of(CASE),
        "properties": properties,
    }


def add_tables(properties: dict[str, Any]) -> None:
    """Say of parameters, libraries and lists of rules, where they are among `properties`, what tables they are."""
    libraries = {
        "type": "object",
        "propertyNames": {"pattern": IDENTIFIER},
        "additionalProperties": {"oneOf": [_VERSIONS, table_of(LIBRARY)]},
    }
    lists = {"options": OPTIONS, "launch": LAUNCH, "verify": VERIFY, "unsupported": UNSUPPORTED, "expect": EXPECT}
    tables = {"parameters": _PARAMETERS, "libraries": libraries}
    tables |= {name: {"type": "array", "items": table_of(keys)} for name, keys in lists.items()}
    for name, schema in tables.items():
        if name in properties:
            properties[name] |= schema


def write_schema(path: Path) -> None:
    """Write the schema to `path`, for instance ``cases/case.schema.json``."""
    Path(path).write_text(json.dumps(case_schema(), indent=2) + "\n", encoding="utf-8")


def table_of(keys: Mapping[str, Key]) -> dict[str, Any]:
    """The schema of a table with these keys and no others."""
    required = [name for name, key in keys.items() if key.required]
    return {
        "type": "object",
        "additionalProperties": False,
        **({"required": required} if required else {}),
        "properties": properties_of(keys),
    }


def properties_of(keys: Mapping[str, Key]) -> dict[str, Any]:
    """The schema of each key's value."""
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
