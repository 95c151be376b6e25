"""Options of programs, as a configuration or a build spells them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.model import OptionRule
from harness.model.condition import Condition

_ONE_BACKEND = re.compile(r"([A-Za-z][\w-]*):(-.*)", re.DOTALL)


def split_flags(texts: Iterable[str]) -> dict[str, list[str]]:
    """Options by the backend that they name, ``nvcc:-O3``; those for all have the empty key."""
    flags: dict[str, list[str]] = {}
    for text in texts:
        found = _ONE_BACKEND.fullmatch(text)
        flags.setdefault(found[1] if found else "", []).append(found[2] if found else text)
    return flags


def only(backend: str, flags: list[str]) -> OptionRule:
    """Options for one backend."""
    return OptionRule(when=Condition.parse(f'backend == "{backend}"'), values={"flags": flags})


def definitions_of(value: Any) -> dict[str, Any]:
    """Definitions by name, out of ``["N=4"]`` or a table."""
    if not isinstance(value, list):
        return dict(value or {})
    pairs = ((name, equals, item) for name, equals, item in (text.partition("=") for text in value))
    return {
        name: (int(item) if re.fullmatch(r"-?\d{1,18}", item) else item) if equals else 1
        for name, equals, item in pairs
    }


def from_root(root: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Options with include directories as they are seen from anywhere."""
    folders = [str((root / folder).absolute()) for folder in values.get("include", ())]
    return {**values, **({"include": folders} if folders else {})}


def listed(value: Any) -> list[Any]:
    """A value that may stand alone, as a list."""
    return value if isinstance(value, list) else [value]
