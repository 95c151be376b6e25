"""Conditions: ``backend == "cupy-jitify" and cupy < "13.1" and cc >= "8.0"``, in case files and after ``--where``.

The grammar is a part of Python's expressions: ``and``, ``or``, ``not``, comparisons and ``in``. Where one side is a version (the
toolkit, a library, a compute capability), the comparison is PEP 440's, by `packaging`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from packaging.version import InvalidVersion, Version

from harness.errors import did_you_mean
from harness.libraries import names_in_conditions
from harness.model.expression import ExpressionText, ReadError
from harness.model.target import KNOWN_TARGETS, OLD_TARGETS

HOST_VERSIONS = ("gcc", "clang", "glibc")
"""Versions of a host compiler for conditions: its own, under the name of its family, and that of the C library whose headers it finds."""

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


class Words(str):
    """Words in a text: a text compares with all of them, and a number with how many there are."""

    __slots__ = ()

    def like(self, value: Any) -> Any:
        """The text, or the number of words."""
        return str(self) if isinstance(value, str) else len(self.split())


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
        if isinstance(found, Spelled | Words):
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


__all__ = ["NAMES", "VALUES", "Condition", "ConditionError", "Version", "read_version"]

_MAX_LENGTH = 2000

NAMES: Mapping[str, type] = {
    "backend": str,
    "target": str,
    "suffix": str,
    "virtual": bool,
    "device": bool,
    "wheels": bool,
    "cc": Version,
    "toolkit": Version,
    "headers": Version,
    "library": Version,
    "python": Version,
    **dict.fromkeys(HOST_VERSIONS, Version),
    **dict.fromkeys(names_in_conditions(), Version),
}
"""Names that every condition may use, and what kind of value each has."""

VALUES: Mapping[str, Collection[str]] = {
    "target": tuple(map(str, sorted((*KNOWN_TARGETS, *OLD_TARGETS), key=lambda target: target.sort_key))),
    "suffix": ("", "a", "f"),
}
"""For some of them, the only values that there are. Which backends there are, their table knows."""

_SYMBOLS: Mapping[type, tuple[str, str]] = {
    ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
    ast.Lt: ("<", ">"),
    ast.LtE: ("<=", ">="),
    ast.Gt: (">", "<"),
    ast.GtE: (">=", "<="),
}
"""Comparison operators, and each with its sides exchanged."""


@lru_cache(maxsize=1 << 12)
def read_version(text: str) -> Version:
    """A version, read once: the cells of a run have few different ones. Raises `InvalidVersion` as `packaging` does."""
    return Version(text)


class ConditionError(ReadError):
    """A condition that cannot be read; the message is one sentence."""


@dataclass(frozen=True)
class Condition:
    """A condition that was read and checked; two with the same text are equal.

    Parameters
    ----------
    text : str
        As written; the empty text always holds.
    tree : Predicate
        What it was read as.
    """

    text: str
    tree: Predicate = field(compare=False)

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        """Evaluate the condition for `facts`; a missing version makes its comparison false."""
        return self.tree.holds(facts)

    @classmethod
    def always(cls) -> Condition:
        """The condition that holds everywhere."""
        return cls("", All(()))

    @classmethod
    def parse(
        cls,
        text: str,
        parameters: Mapping[str, Collection[Any]] | None = None,
        *,
        names: Mapping[str, type] = NAMES,
        values: Mapping[str, Collection[str]] | None = None,
    ) -> Condition:
        """Read a condition.

        Parameters
        ----------
        text : str
            The condition.
        parameters : Mapping, optional
            The case's own parameters and the values each may have; `Version` for header libraries, `Spelled` where only names of
            variants are known.
        names : Mapping[str, type]
            All other names that it may use, which count before parameters of the same name.
        values : Mapping, optional
            For some of `names`, the only possible values, in addition to `VALUES`.

        Raises
        ------
        ConditionError
            On a syntax error, an unknown name or value, or a comparison that makes no sense.
        """
        if not text.strip():
            return cls.always()
        source = ExpressionText(text, "condition", ConditionError)
        tree = source.parse(longest=_MAX_LENGTH)
        return cls(text, _Reader(source, names, parameters or {}, {**VALUES, **(values or {})}).test(tree))


@dataclass(frozen=True)
class _Reader:
    source: ExpressionText
    names: Mapping[str, type]
    parameters: Mapping[str, Collection[Any]]
    values: Mapping[str, Collection[str]]

    def test(self, node: ast.expr) -> Predicate:
        match node:
            case ast.BoolOp(op=op, values=values):
                parts = tuple(self.test(value) for value in values)
                return All(parts) if isinstance(op, ast.And) else Some(parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.test(operand))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                sides = [left, *rights]
                links = tuple(self.compare(sides[i], op, sides[i + 1]) for i, op in enumerate(ops))
                return links[0] if len(links) == 1 else All(links)
            case ast.Constant(value=bool(value)):
                return Constant(value)
            case ast.Name(id="true" | "false" as word):
                return Constant(word == "true")
            case ast.Name(id=name):
                if self.kind(node) is not bool:
                    raise self.wrong(node, f"{name!r} is not true or false by itself: compare it with something")
                return Flag(name)
        raise self.wrong(node, f"{ast.unparse(node)!r} is not allowed here: use names, comparisons, and, or, not, in")

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Predicate:
        if isinstance(op, ast.In | ast.NotIn):
            found = self.member(left, right)
            return found if isinstance(op, ast.In) else Not(found)
        if type(op) not in _SYMBOLS:
            raise self.wrong(left, "compare with ==, !=, <, <=, >, >= or in")
        symbol, flipped = _SYMBOLS[type(op)]
        if isinstance(right, ast.Name) and right.id not in ("true", "false"):
            left, right, symbol = right, left, flipped
        if not isinstance(left, ast.Name) or left.id in ("true", "false"):
            raise self.wrong(
                left, f"{ast.unparse(left)!r}: a comparison needs a name on one side, a value on the other"
            )
        return self.compare_name(left, symbol, self.constant(right), right)

    def member(self, left: ast.expr, right: ast.expr) -> Predicate:
        match left, right:
            case ast.Name(), ast.Tuple(elts=items) | ast.List(elts=items):
                return Some(tuple(self.compare(left, ast.Eq(), item) for item in items))
            case ast.Constant(value=str(part)), ast.Name(id=name):
                kind, known = self.kind(right), self.known(name)
                if kind not in (str, Words, object) or (known and not any(isinstance(item, str) for item in known)):
                    raise self.wrong(right, f"{name} is not a text: compare it with ==, or write {name} in (…, …)")
                found = Contains(name, part)
                if known and not _are_spelled(known) and not any(found.holds({name: item}) for item in known):
                    hint = did_you_mean(part, map(_shown, known))
                    raise self.wrong(left, f"{part!r} is in no {name}{hint}")
                return found
        raise self.wrong(left, 'write "in" as: name in ("a", "b"), or "part" in name')

    def compare_name(self, node: ast.Name, symbol: str, value: Any, right: ast.expr) -> Predicate:
        name, kind, known = node.id, self.kind(node), self.known(node.id)
        if kind is Words:
            kind = str if isinstance(value, str) else float
        if kind is Version or (isinstance(value, str) and _are_versions(known)):
            if not isinstance(value, str):
                text = f'{name} is a version: compare it with a text such as {name} {symbol} "{value}"'
                raise self.wrong(right, text)
            try:
                specifier_set(f"{symbol}{value}")
                return InVersions(name, f"{symbol}{value}")
            except ValueError:
                text = f"{name} {symbol} {value!r} is not a comparison of versions (PEP 440)"
                raise self.wrong(right, text) from None
        spelled = _are_spelled(known)
        if known and not spelled and symbol in ("==", "!=") and value not in known:
            raise self.wrong(right, f"{name} is never {value!r}{did_you_mean(str(value), map(_shown, known))}")
        if kind is str and not isinstance(value, str):
            raise self.wrong(right, f'{name} is a text: compare it with "{value}"')
        if kind is float and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self.wrong(right, f"{name} is a number: compare it with one, such as {name} {symbol} 64")
        if symbol not in ("==", "!="):
            if kind is str or (spelled and isinstance(value, str)):
                raise self.wrong(node, f"{name} is a text: compare it with == or !=")
            if known and not spelled and all(isinstance(item, str) != isinstance(value, str) for item in known):
                raise self.wrong(right, f"{name} {symbol} {value!r} compares a text with a number")
        assert symbol in ORDER
        return Compared(name, symbol, value)

    def constant(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return value
            case ast.Name(id="true"):
                return True
            case ast.Name(id="false"):
                return False
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
        raise self.wrong(node, f"{ast.unparse(node)!r} is not a value: write a text in quotes, a number, true or false")

    def known(self, name: str) -> Collection[Any]:
        """Values that a name may have; empty where anything may be."""
        return self.values.get(name, ()) if name in self.names else self.parameters.get(name, ())

    def kind(self, node: ast.Name) -> type:
        name = node.id
        if name in self.names:
            return self.names[name]
        if name not in self.parameters:
            hint = did_you_mean(name, [*self.names, *self.parameters])
            raise self.wrong(node, f"unknown name {name!r}{hint}")
        known = self.parameters[name]
        for kind in (bool, Version):
            if all(isinstance(value, kind) for value in known):
                return kind
        return bool if all(isinstance(value, Spelled) and value in ("true", "false") for value in known) else object

    def wrong(self, node: ast.AST, message: str) -> ReadError:
        return self.source.refuse(node, message)


def _shown(value: Any) -> str:
    return str(value) or '""'


def _are_spelled(known: Collection[Any]) -> bool:
    """Return whether only variant names are known of a parameter's values, or of some of them."""
    return any(isinstance(item, Spelled) for item in known)


def _are_versions(known: Collection[Any]) -> bool:
    """Return whether variants spell a parameter's values as versions: their original type is not known."""
    try:
        return bool(known) and all(isinstance(value, Spelled) and bool(Version(value)) for value in known)
    except InvalidVersion:
        return False
