"""A program with the command line that a build has for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.model import Case, OptionRule
from harness.model.condition import Condition
from harness.project.commands import Unit
from harness.project.options import definitions_of, split_flags


def with_unit(case: Case, unit: Unit, source: Path) -> Case:
    """The program as the build compiles it; what the case says itself comes after.

    Parameters
    ----------
    case : Case
        The program.
    unit : Unit
        What the build compiles it with.
    source : Path
        The ``compile_commands.json``, by which its cells are told from others.
    """
    common: dict[str, Any] = {"include": list(unit.include)} if unit.include else {}
    common |= {"std": unit.std} if unit.std else {}
    common |= {"rdc": True} if unit.rdc else {}
    flags = split_flags(unit.flags)
    common |= {"flags": flags.pop("")} if "" in flags else {}
    rules = [OptionRule(when=Condition.always(), values=common)] if common else []
    for name, given in flags.items():
        names = [each.name for each in BACKENDS.values() if each.nvcc] if name == "nvcc" else [name]
        when = Condition.parse(" or ".join(f'backend == "{each}"' for each in names))
        rules.append(OptionRule(when=when, values={"flags": given}))
    define = definitions_of(list(unit.define))
    words = f"--compile-commands={os.path.relpath(source)}"
    variants = tuple(
        replace(each, definitions={**define, **each.definitions}, options=f"{words} {each.name}".strip())
        for each in case.variants
    )
    return replace(case, options=(*rules, *case.options), variants=variants)
