"""JSON Schema of a project's configuration, for editors; made from `harness.project.keys`."""

from __future__ import annotations

from typing import Any

from harness.cases.schema import DRAFT, add_tables, table_of
from harness.project.keys import CONFIG, NAMED


def config_schema() -> dict[str, Any]:
    """The schema of ``cumatrix.toml``, which is that of ``[tool.cumatrix]`` in ``pyproject.toml`` too."""
    schema, program = table_of(CONFIG), table_of(NAMED)
    for table in (schema, program):
        add_tables(table["properties"])
    schema["properties"]["programs"] |= {"type": "array", "items": program}
    return {"$schema": DRAFT, "title": "What a project says to cumatrix", **schema}
