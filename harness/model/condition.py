"""Conditions of case files and ``--where``: ``backend == "cupy-jitify" and cupy < "13.1" and cc >= "8.0"``.

The grammar is a subset of Python's expressions: ``and``, ``or``, ``not``, comparisons and ``in``. Versions (of the
toolkit, a library, a compute capability) compare by PEP 440, with `packaging`.
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
"""Versions of a host compiler in conditions: its own, under the name of its family, and that of the C library whose headers it uses."""

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
"""Comparison functions by symbol."""


class Spelled(str):
    """A parameter's value as spelled in a variant's name, which does not record its type.

    The value takes the type of the other side of a comparison: a number or a text.
    """

    __slots__ = ()

    def like(self, value: Any) -> Any:
        """Convert to the type of `value`; None if that is impossible."""
        if isinstance(value, bool):
            return {"true": True, "false": False}.get(str(self))
        if isinstance(value, str):
            return str(self)
        try:
            return float(self)
        except ValueError:
            return None


class Words(str):
    """A list of words in one text: it compares as a whole with a text, and by the number of words with a number."""

    __slots__ = ()

    def like(self, value: Any) -> Any:
        """Return the text, or the number of words."""
        return str(self) if isinstance(value, str) else len(self.split())


class Predicate(Protocol):
    """A test of facts."""

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""


@dataclass(frozen=True)
class All:
    """True if every part holds, and without parts."""

    parts: tuple[Predicate, ...]

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        for part in self.parts:  # noqa: SIM110 (a generator costs more than the tests)
            if not part.holds(facts):
                return False
        return True


@dataclass(frozen=True)
class Some:
    """True if at least one part holds."""

    parts: tuple[Predicate, ...]

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        for part in self.parts:  # noqa: SIM110
            if part.holds(facts):
                return True
        return False


@dataclass(frozen=True)
class Not:
    """True if the part does not hold."""

    part: Predicate

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        return not self.part.holds(facts)


@dataclass(frozen=True)
class Constant:
    """True or false for all facts."""

    value: bool

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        return self.value


@dataclass(frozen=True)
class Flag:
    """True if a fact is true."""

    name: str

    def holds(self, facts: ConditionValues) -> bool:
        """Evaluate the test."""
        found = facts.get(self.name)
        return found == "true" if isinstance(found, Spelled) else bool(found)


@dataclass(frozen=True)
class InVersions:
    """True if a version matches a PEP 440 specifier; false if the cell has no such version.

    Parameters
    ----------
    name : str
        Name of the fact.
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
    """True if a fact compares with a value as `symbol` says; false if the cell has no such fact."""

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
        except TypeError:  # another case uses the same parameter name for another type
            return False


@dataclass(frozen=True)
class Contains:
    """True if a text contains `part`, ignoring case."""

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
    """Read a PEP 440 specifier, with a cache; raise ValueError (`InvalidSpecifier`) if it is invalid."""
    from packaging.specifiers import SpecifierSet  # this import takes as long as all others of conditions together

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
"""Names that every condition may use, with the types of their values."""

VALUES: Mapping[str, Collection[str]] = {
    "target": tuple(map(str, sorted((*KNOWN_TARGETS, *OLD_TARGETS), key=lambda target: target.sort_key))),
    "suffix": ("", "a", "f"),
}
"""Possible values of some of `NAMES`. The registry of backends lists those of ``backend``."""

_SYMBOLS: Mapping[type, tuple[str, str]] = {
    ast.Eq: ("==", "=="),
    ast.NotEq: ("!=", "!="),
    ast.Lt: ("<", ">"),
    ast.LtE: ("<=", ">="),
    ast.Gt: (">", "<"),
    ast.GtE: (">=", "<="),
}
"""Comparison operators, as written and with exchanged sides."""


@lru_cache(maxsize=1 << 12)
def read_version(text: str) -> Version:
    """Read a version, with a cache; raise `InvalidVersion` if it is invalid.

    The cells of a run have few different versions.
    """
    return Version(text)


class ConditionError(ReadError):
    """A condition that cannot be read. The message is one sentence."""


@dataclass(frozen=True)
class Condition:
    """A parsed and checked condition. Two conditions with the same text are equal.

    Parameters
    ----------
    text : str
        Text as written; the empty text always holds.
    tree : Predicate
        The parsed text.
    """

    text: str
    tree: Predicate = field(compare=False)

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        """Evaluate the condition for `facts`; a missing version makes its comparison false."""
        return self.tree.holds(facts)

    @classmethod
    def always(cls) -> Condition:
        """Return the condition that always holds."""
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
            Parameters of the case, with their possible values: `Version` for header libraries, `Spelled` if only the
            names of variants are known.
        names : Mapping[str, type]
            All other names. They take precedence over parameters of the same name.
        values : Mapping, optional
            Possible values of some of `names`, in addition to `VALUES`.

        Raises
        ------
        ConditionError
            If the text has a syntax error, an unknown name or value, or an impossible comparison.
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
        """Return the possible values of a name; empty if any value is possible."""
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
    """Return whether at least one value is known only from the name of a variant."""
    return any(isinstance(item, Spelled) for item in known)


def _are_versions(known: Collection[Any]) -> bool:
    """Return whether all values are known from variant names only and read as versions."""
    try:
        return bool(known) and all(isinstance(value, Spelled) and bool(Version(value)) for value in known)
    except InvalidVersion:
        return False
