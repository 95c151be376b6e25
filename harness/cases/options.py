"""Options of a cell: the case's ``[[options]]`` that apply to it, merged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.model.case import Case, Scalar
from harness.model.cell import Cell

LISTS = ("include", "flags", "ptxas", "functions")
"""Options whose tables add to each other; of the others, the last table's counts."""

TOOLS = ("assembler", "linker")
"""Options that name another CUDA release for one tool."""

NAMED = ("compile_for", *TOOLS)
"""Options whose value may be the name of a definition, so that parameters vary them."""

_LITERAL = re.compile(r"\d+\.\d+|compute_\d+[af]?")

FIND_THE_DEVICE = ("cupy-nvrtc", "cupy-jitify", "numba", "numba-cuda")
"""Backends that take the architecture from the device by default; the others need one."""


def options_for(cell: Cell) -> dict[str, Any]:
    """Options for the backend of `cell`, by the names of `harness.cases.keys.OPTIONS`.

    ``arch`` is always there: where the case says nothing, it is ``implicit`` for libraries that ask
    the device, and ``given`` for bare compilers.
    """
    merged: dict[str, Any] = {"arch": "implicit" if cell.toolchain.backend in FIND_THE_DEVICE else "given"}
    if not cell.case.options:
        return merged
    facts = cell.facts()
    for rule in cell.case.options:
        if not rule.when(facts):
            continue
        for name, value in rule.values.items():
            merged[name] = [*merged.get(name, []), *value] if name in LISTS else value
    plain = {name: value for name, value in merged.items() if name not in NAMED}
    return {**plain, **named(merged, cell.variant.definitions)}


def named(options: Mapping[str, Any], definitions: Mapping[str, Scalar]) -> dict[str, Any]:
    """Those of `NAMED` among the options, each with the definition that it names in its place; left out where there is no such definition."""
    found = {name: definitions.get(options[name], options[name]) for name in NAMED if name in options}
    return {name: value for name, value in found.items() if value != options[name] or _LITERAL.fullmatch(value)}


def releases_named(cell: Cell) -> dict[str, str]:
    """CUDA releases of single tools in a cell, by the option that names them."""
    options = options_for(cell) if any(name in rule.values for rule in cell.case.options for name in TOOLS) else {}
    return {name: options[name] for name in TOOLS if name in options}


def include_of(case: Case, options: dict[str, Any]) -> list[Path]:
    """Include directories that the options of a case name, which are taken out of them; they are named as seen from the case's folder."""
    return [case.path.parent.absolute() / folder for folder in options.pop("include", ())]
