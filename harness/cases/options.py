"""Options of a cell: the case's ``[[options]]`` that apply to it, merged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.model.case import Case
from harness.model.cell import Cell

LISTS = ("include", "flags", "ptxas", "functions")
"""Options whose tables add to each other; of the others, the last table's counts."""

FIND_THE_DEVICE = ("cupy-nvrtc", "cupy-jitify", "numba", "numba-cuda")
"""Backends that take the architecture from the device when nobody names one; the others must be given one."""


def options_for(cell: Cell) -> dict[str, Any]:
    """Options for the backend of `cell`, by the names of `harness.cases.keys.OPTIONS`.

    ``arch`` is always there: where the case says nothing, it is ``implicit`` for libraries that ask
    the device, and ``given`` for bare compilers.
    """
    facts = cell.facts() if cell.case.options else {}
    merged: dict[str, Any] = {"arch": "implicit" if cell.toolchain.backend in FIND_THE_DEVICE else "given"}
    for rule in cell.case.options:
        if not rule.when(facts):
            continue
        for name, value in rule.values.items():
            merged[name] = [*merged.get(name, []), *value] if name in LISTS else value
    return merged


def include_of(case: Case, options: dict[str, Any]) -> list[Path]:
    """Include directories that the options of a case name, which are taken out of them; they are named as seen from the case's folder."""
    return [case.path.parent.absolute() / folder for folder in options.pop("include", ())]
