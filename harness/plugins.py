"""Plugins of other distributions, found by entry points: backends, libraries, causes, executors, exporters.

A distribution names objects in these groups. cumatrix loads a group when it first reads the group's table. An entry that fails to load
is skipped and reported (`problems`). Plugins never replace cumatrix's own entries. Workers read no entry points: the scheduler names
the objects to load. This module imports the standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

Value = TypeVar("Value")

GROUPS: Final = (
    "cumatrix.backends",
    "cumatrix.libraries",
    "cumatrix.causes",
    "cumatrix.executors",
    "cumatrix.exporters",
)
"""All entry point groups."""

OFF: Final = "CUMATRIX_NO_PLUGINS"
"""Environment variable that disables plugins if it is not empty; workers run with it."""

_problems: dict[str, str] = {}


@cache
def plugged(group: str) -> Mapping[str, Any]:
    """Load the objects of a group, by the names of their entry points."""
    if os.environ.get(OFF):
        return {}
    found: dict[str, Any] = {}
    for point in _points().select(group=group):
        who = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        if point.name in found:
            _problems[f"{group} {who}"] = f"{who}: another distribution has a {point.name} in {group} already"
            continue
        try:
            found[point.name] = point.load()
        except Exception as error:  # noqa: BLE001 (whatever a distribution raises as it is imported)
            words = f"{type(error).__name__}: {error}"
            _problems[f"{group} {point.name}"] = (
                f"{who}: its {point.name} in {group} cannot be loaded ({point.value}): {words}"
            )
    return found


@cache
def _points() -> EntryPoints:
    """Return all installed entry points. The result is cached because reading opens a file of every distribution."""
    from importlib.metadata import entry_points  # slow to import: not in workers, nor without plugins

    points: Any = entry_points()
    return points  # type: ignore[no-any-return]


def refuse(group: str, name: str, why: str) -> None:
    """Record that an object of a group cannot be used."""
    _problems[f"{group} {name}"] = f"{name} in {group} is left out: {why}"


def problems() -> list[str]:
    """Return a sentence for each unusable entry point of the groups loaded so far."""
    return list(_problems.values())


def place_of(module: str) -> str:
    """Return the file of a module's top-level package without importing the module; empty if it has none."""
    try:
        spec = find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        return ""
    return (spec.origin or "") if spec else ""


class Table(Mapping[str, Value]):
    """A table of cumatrix's own entries, followed by those of plugins, which load on first access.

    Parameters
    ----------
    own : Mapping
        cumatrix's own entries.
    group : str
        Entry point group of the plugins.
    made : callable
        Converts the name and the loaded object of an entry point into an entry. It raises ValueError or TypeError with a sentence if the
        object is invalid.
    """

    def __init__(self, own: Mapping[str, Value], group: str, made: Callable[[str, Any], Value]) -> None:
        self._own, self._group, self._made = own, group, made
        self._all: Mapping[str, Value] | None = None

    def _table(self) -> Mapping[str, Value]:
        if self._all is None:
            found = dict(self._own)
            for name, value in plugged(self._group).items():
                try:
                    if name in self._own:
                        raise ValueError("cumatrix has one of that name")
                    found[name] = self._made(name, value)
                except (TypeError, ValueError) as error:
                    refuse(self._group, name, str(error))
            self._all = found
        return self._all

    def __getitem__(self, name: str) -> Value:
        return self._table()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table())

    def __len__(self) -> int:
        return len(self._table())
