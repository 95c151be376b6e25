"""Cases of several projects, and programs without a case, may share a name: what tells them apart in one set of records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from harness.records.plan import Plan
from harness.records.record import Record

_Named = TypeVar("_Named", bound=Mapping[str, Any])

DIGITS = 6
"""Of the digest of a program's place, as they stand in names."""


def tell_apart(records: Iterable[Record], plans: Iterable[Plan]) -> tuple[list[Record], list[Plan]]:
    """Give cases the name of their project, ``fast/softmax@flash-attn``, and programs of one name in different folders their digest, ``kernel.cu@3fa9c1``.

    Cumatrix's own cases have no project, and keep their names. A project's have its name whatever else is there, so that their rows are the same in every set; a
    program's name that one has for itself stays, or becomes, the plain one, so that it does not matter in which order and in how many steps records are merged.
    """
    records, plans = list(records), list(plans)
    programs: dict[str, set[str]] = {}
    any_project = False
    for item in (*records, *(cell for plan in plans for cell in plan["cells"])):
        if "program" in item:
            programs.setdefault(case_of(item), set()).add(item["program"])
        any_project = any_project or bool(item.get("project"))
    if not programs and not any_project:
        return records, plans
    shared = {name for name, several in programs.items() if len(several) > 1}
    return (
        [_named(record, shared) for record in records],
        [{**plan, "cells": [_named(cell, shared) for cell in plan["cells"]]} for plan in plans],
    )


def case_of(item: Mapping[str, Any]) -> str:
    """Name of a record's or planned cell's case as its own project has it."""
    case, mark = str(item["case"]), _mark(item)
    return case.removesuffix(f"@{mark}") if mark else case


def _mark(item: Mapping[str, Any]) -> str:
    """What tells it from others of its name."""
    return str(item["program"])[:DIGITS] if item.get("program") else str(item.get("project") or "")


def _named(item: _Named, shared: set[str]) -> _Named:
    mark = _mark(item)
    if not mark:
        return item
    plain = case_of(item)
    name = f"{plain}@{mark}" if plain in shared or not item.get("program") else plain
    if name == item["case"]:
        return item
    # A project stands in the cell's id from the beginning.
    cell = name + item["cell"].removeprefix(item["case"]) if item.get("program") else item["cell"]
    renamed: Any = {**item, "case": name, "cell": cell}
    return cast("_Named", renamed)


def identity(item: Mapping[str, Any]) -> tuple[str, str]:
    """What makes two records, or planned cells, tell of the same thing: the cell's id, and for a program without a case where it lies."""
    return item["cell"], item.get("program", "")
