"""Parts of conditions: tests of facts, as plain values that can be compared, hashed and pickled."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from packaging.version import InvalidVersion, Version

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

ConditionValues = Mapping[str, Any]

ORDER: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""Comparisons by their symbols."""


class Spelled(str):
    """A value of a parameter as the name of a variant spells it, which does not say what kind of value it was.

    It takes the type of the other side: a number or a text.
    """

    __slots__ = ()

    def like(self, value: Any) -> Any:
        """The value as one of the same kind as `value`; None where it cannot be one."""
        if isinstance(value, bool):
            return {"true": True, "false": False}.get(str(self))
        if isinstance(value, str):
            return str(self)
        try:
            return float(self)
        except ValueError:
            return None


class Predicate(Protocol):
    """A test of facts."""

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""


@dataclass(frozen=True)
class All:
    """Every part holds; without parts, always."""

    parts: tuple[Predicate, ...]

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        for part in self.parts:  # noqa: SIM110 (a generator costs more than the tests)
            if not part.holds(facts):
                return False
        return True


@dataclass(frozen=True)
class Some:
    """At least one part holds."""

    parts: tuple[Predicate, ...]

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        for part in self.parts:  # noqa: SIM110
            if part.holds(facts):
                return True
        return False


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Predicate

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        return not self.part.holds(facts)


@dataclass(frozen=True)
class Constant:
    """Always or never."""

    value: bool

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        return self.value


@dataclass(frozen=True)
class Flag:
    """A fact is true."""

    name: str

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        found = facts.get(self.name)
        return found == "true" if isinstance(found, Spelled) else bool(found)


@dataclass(frozen=True)
class InVersions:
    """A version fits a specifier of PEP 440; one that a cell does not have fits none.

    Parameters
    ----------
    name : str
        The fact.
    specifier : str
        ``">=12.4"``.
    """

    name: str
    specifier: str

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        found = facts.get(self.name)
        return found is not None and _fits(self.specifier, found)


@dataclass(frozen=True)
class Compared:
    """A fact compares with a value as `symbol` says; one that a cell does not have never does."""

    name: str
    symbol: str
    value: str | int | float | bool

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        found = facts.get(self.name)
        if isinstance(found, Spelled):
            found = found.like(self.value)
        if found is None:
            return False
        try:
            return bool(ORDER[self.symbol](found, self.value))
        except TypeError:  # of several cases, this one has another kind of value under the same name
            return False


@dataclass(frozen=True)
class Contains:
    """A text has `part` in it, in capitals or not."""

    name: str
    part: str

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        found = facts.get(self.name)
        return isinstance(found, str) and self.part.casefold() in found.casefold()


@lru_cache(maxsize=1 << 14)
def _fits(specifier: str, version: Version | str) -> bool:
    try:
        return specifier_set(specifier).contains(version, prereleases=True)
    except InvalidVersion:
        return False


@lru_cache(maxsize=1 << 10)
def specifier_set(text: str) -> SpecifierSet:
    """Read a specifier of PEP 440, once; raises ValueError (`InvalidSpecifier`) as `packaging` does."""
    from packaging.specifiers import SpecifierSet  # as long an import as all else that conditions need

    return SpecifierSet(text)
