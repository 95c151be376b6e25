"""Cases of several projects, and programs without a case, may share a name: what tells them apart in one set of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from harness.model import Case
from harness.records.plan import Plan
from harness.records.record import Record

_Named = TypeVar("_Named", bound=Mapping[str, Any])

DIGITS = 6
"""Length of the digest of a program's place in names."""


def tell_apart(records: Iterable[Record], plans: Iterable[Plan]) -> tuple[list[Record], list[Plan]]:
    """Give cases of one name of several projects, and programs of one name in different folders, names of their own.

    A case is called after its project then, ``fast/softmax@flash-attn``, but for cumatrix's own and those of a project without a name; a program gets its
    digest, ``kernel.cu@3fa9c1``. A unique name stays, or becomes, the plain one, so that it does not matter in which order and in how many
    steps records are merged.
    """
    records, plans = list(records), list(plans)
    owners: dict[str, set[str]] = {}
    marked = False
    for item in (*records, *(cell for plan in plans for cell in plan["cells"])):
        mark = _mark(item)
        owners.setdefault(case_of(item), set()).add(mark)
        marked = marked or bool(mark)
    if not marked:
        return records, plans
    shared = {name for name, several in owners.items() if len(several) > 1}
    return (
        [_named(record, shared) for record in records],
        [{**plan, "cells": [_named(cell, shared) for cell in plan["cells"]]} for plan in plans],
    )


def case_of(item: Mapping[str, Any]) -> str:
    """Name of a record's or planned cell's case as its own project has it."""
    case, mark = str(item["case"]), _mark(item)
    return case.removesuffix(f"@{mark}") if mark else case


def is_of(item: Mapping[str, Any], case: Case) -> bool:
    """Return whether a record, or a planned cell, belongs to a case, and not to another project's of its name; cumatrix's own have no project."""
    return case_of(item) == case.name and item.get("project", "") == case.project


def _mark(item: Mapping[str, Any]) -> str:
    """The part that separates it from others of its name."""
    return str(item["program"])[:DIGITS] if item.get("program") else str(item.get("project") or "")


def _named(item: _Named, shared: set[str]) -> _Named:
    mark = _mark(item)
    if not mark:
        return item
    plain = case_of(item)
    name = f"{plain}@{mark}" if plain in shared else plain
    if name == item["case"]:
        return item
    renamed: Any = {**item, "case": name, "cell": name + item["cell"].removeprefix(item["case"])}
    return cast("_Named", renamed)


def identity(item: Mapping[str, Any]) -> tuple[str, str]:
    """Identity of a record or a planned cell: the cell's id, and the case's project, or for a program without a case its place."""
    return item["cell"], item.get("program") or item.get("project", "")
