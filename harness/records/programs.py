"""Programs without a case are called by their file's name: those that only share it are told apart where they meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from harness.records.plan import Plan
from harness.records.record import Record

_Named = TypeVar("_Named", bound=Mapping[str, Any])

DIGITS = 6
"""Of the digest of a program's place, as they stand in names."""


def tell_apart(records: Iterable[Record], plans: Iterable[Plan]) -> tuple[list[Record], list[Plan]]:
    """Give programs of one name that lie in different folders names of their own: ``kernel.cu@3fa9c1``.

    A name that one program has for itself stays, or becomes, the plain one, so that it does not matter in which order and in how many
    steps records are merged.
    """
    records, plans = list(records), list(plans)
    programs: dict[str, set[str]] = {}
    for item in (*records, *(cell for plan in plans for cell in plan["cells"] if "program" in cell)):
        if "program" in item:
            programs.setdefault(_plain(item), set()).add(item["program"])
    if not programs:
        return records, plans
    shared = {name for name, several in programs.items() if len(several) > 1}
    return (
        [_named(record, shared) for record in records],
        [{**plan, "cells": [_named(cell, shared) for cell in plan["cells"]]} for plan in plans],
    )


def _plain(item: Mapping[str, Any]) -> str:
    return str(item["case"]).removesuffix(f"@{item['program'][:DIGITS]}")


def _named(item: _Named, shared: set[str]) -> _Named:
    if "program" not in item:
        return item
    plain = _plain(item)
    name = f"{plain}@{item['program'][:DIGITS]}" if plain in shared else plain
    if name == item["case"]:
        return item
    renamed: Any = {**item, "case": name, "cell": name + item["cell"].removeprefix(item["case"])}
    return cast("_Named", renamed)
