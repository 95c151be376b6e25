"""Published formats, from the code that writes and checks them: JSON Schema of a record and of ``matrix.json``, and the tables of the documentation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.matrix.axes import ROWS, TOOLCHAIN
from harness.matrix.marks import KINDS
from harness.model import Stage, Status, Verdict
from harness.model.target import TARGET_PATTERN
from harness.records.make import with_tables
from harness.records.schema import record_schema
from harness.report.exports import SCHEMA

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_TARGET = {"type": "string", "pattern": f"^{TARGET_PATTERN}$"}


def schemas() -> dict[str, bytes]:
    """File by name: ``record.schema.json`` and ``matrix.schema.json``."""
    return {
        f"{name}.schema.json": _bytes(value)
        for name, value in (("record", record_schema()), ("matrix", matrix_schema()))
    }


def write_docs(docs: Path) -> None:
    """Write the schemas to the folder ``schemas`` below `docs`, and the tables into ``records.md``."""
    for name, data in schemas().items():
        (docs / "schemas" / name).write_bytes(data)
    page = docs / "records.md"
    page.write_text(with_tables(page.read_text("utf-8")), "utf-8")


def matrix_schema() -> dict[str, Any]:
    """JSON Schema of ``matrix.json``; readers should pass over keys that it does not name."""
    mark = {"enum": list(KINDS)}
    cell = {
        **dict.fromkeys(("cell", *ROWS, *TOOLCHAIN, "environment"), _TEXT),
        "target": _TARGET,
        "mark": mark,
        # A cell that never arrived has none of these.
        "status": {"enum": [*Status, ""]},
        "stage": {"enum": [*Stage, ""]},
        "verdict": {"enum": [*Verdict, ""]},
        "signal": {"type": ["integer", "null"]},
        "reason": _TEXT,
        "message": _TEXT,
        "seconds": {"type": ["number", "null"], "minimum": 0},
        "cached": {"type": ["boolean", "null"]},
        "run": _TEXT,
        "others": _TEXT,
        "page": _TEXT,
    }
    run = {
        **dict.fromkeys(("name", "environment", "started", "argv"), _TEXT),
        "machine": _map(_TEXT),
        "planned": {"type": ["integer", "null"]},
        "arrived": _COUNT,
        "observed": _map(_list(_TEXT)),
    }
    answer = {"run": _TEXT, "status": {"enum": [*Status]}}
    axes = {
        "topics": _list(_TEXT),
        "cases": _map(_TEXT),
        "toolchains": _list(_object(dict.fromkeys(TOOLCHAIN, _TEXT))),
        "targets": _list(_TARGET),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:cumatrix:matrix:{SCHEMA}",
        "title": "matrix.json of a report of cumatrix",
        **_object(
            {
                "schema": {"const": SCHEMA},
                "axes": _object(axes),
                "totals": {"type": "object", "propertyNames": mark, "additionalProperties": _COUNT},
                "marks": _map(
                    _object({"letter": _TEXT, "word": _TEXT, "meaning": _TEXT, "as_expected": {"type": "boolean"}})
                ),
                "runs": _list(_object(run)),
                "cells": _list(_object(cell)),
                "missing": _list(_TEXT),
                "conflicts": _list(
                    _object({"cell": _TEXT, "kept": _object(answer), "dropped": _list(_object(answer))})
                ),
                "unanswered": _list(
                    _object({"cell": _TEXT, "kept": _object(answer), "dropped": _list(_object(answer))})
                ),
                "warnings": _list(_TEXT),
            }
        ),
    }


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": dict(properties)}


def _list(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _map(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _bytes(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


if __name__ == "__main__":
    write_docs(Path(__file__).parents[2] / "docs")
