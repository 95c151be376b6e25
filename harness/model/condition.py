"""Conditions of case files: ``backend == "cupy-jitify" and cupy < "13.1" and cc >= "8.0"``.

The grammar is a part of Python's expressions, read with `ast` and evaluated by walking the tree:
``and``, ``or``, ``not``, comparisons and ``in``; nothing is ever executed. Where one side is a version
(the toolkit, a library, a compute capability), the comparison is PEP 440's, by `packaging`.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from harness.errors import did_you_mean
from harness.libraries import names_in_conditions

__all__ = ["NAMES", "Condition", "ConditionError", "Version"]

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
    **dict.fromkeys(names_in_conditions(), Version),
}
"""Names that every condition may use, and what kind of value each has."""

_ORDER: Mapping[type, tuple[str, Callable[[Any, Any], bool], str]] = {
    ast.Eq: ("==", operator.eq, "=="),
    ast.NotEq: ("!=", operator.ne, "!="),
    ast.Lt: ("<", operator.lt, ">"),
    ast.LtE: ("<=", operator.le, ">="),
    ast.Gt: (">", operator.gt, "<"),
    ast.GtE: (">=", operator.ge, "<="),
}

_Test = Callable[[Mapping[str, Any]], bool]


class ConditionError(ValueError):
    """A condition that cannot be read; the message is one sentence."""


@dataclass(frozen=True)
class Condition:
    """A condition that was read and checked.

    Parameters
    ----------
    text : str
        As written; the empty text always holds.
    """

    text: str
    _test: _Test

    def __call__(self, facts: Mapping[str, Any]) -> bool:
        """Whether it holds for `facts`; a version that a cell does not have makes its comparison false."""
        return self._test(facts)

    @classmethod
    def always(cls) -> Condition:
        """The condition that holds everywhere."""
        return cls("", lambda facts: True)

    @classmethod
    def parse(cls, text: str, parameters: Mapping[str, Collection[Any]] | None = None) -> Condition:
        """Read a condition.

        Parameters
        ----------
        text : str
            The condition.
        parameters : Mapping, optional
                The case's own parameters and the values each may have; `Version` for header libraries.

        Raises
        ------
        ConditionError
            On a syntax error, an unknown name or value, or a comparison that makes no sense.
        """
        if not text.strip():
            return cls.always()
        if len(text) > _MAX_LENGTH:
            raise ConditionError(f"a condition may have {_MAX_LENGTH} characters, this one has {len(text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # Python's advice on literals is not for case files
                tree = ast.parse(text.strip(), mode="eval")
            return cls(text, _Reader(parameters or {}).test(tree.body))
        except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
            if isinstance(error, ConditionError):
                raise
            raise ConditionError(f"cannot read the condition {text!r}: {getattr(error, 'msg', error)}") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class _Reader:
    def __init__(self, parameters: Mapping[str, Collection[Any]]) -> None:
        self.parameters = parameters

    def test(self, node: ast.expr) -> _Test:
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                parts = [self.test(value) for value in values]
                return lambda facts: all(part(facts) for part in parts)
            case ast.BoolOp(values=values):
                parts = [self.test(value) for value in values]
                return lambda facts: any(part(facts) for part in parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self.test(operand)
                return lambda facts: not inner(facts)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                sides = [left, *rights]
                links = [self.compare(sides[i], op, sides[i + 1]) for i, op in enumerate(ops)]
                return lambda facts: all(link(facts) for link in links)
            case ast.Constant(value=bool(value)):
                return lambda facts: value
            case ast.Name(id="true" | "false" as word):
                return lambda facts: word == "true"
            case ast.Name(id=name):
                if self.kind(name) is not bool:
                    raise ConditionError(f"{name!r} is not true or false by itself: compare it with something")
                return lambda facts: bool(facts.get(name))
        raise ConditionError(f"{ast.unparse(node)!r} is not allowed here: use names, comparisons, and, or, not, in")

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> _Test:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(left, ast.Name) or not isinstance(right, ast.Tuple | ast.List):
                raise ConditionError('write "in" as: name in ("a", "b")')
            members = [self.compare(left, ast.Eq(), item) for item in right.elts]
            wanted = isinstance(op, ast.In)
            return lambda facts: any(member(facts) for member in members) is wanted
        if type(op) not in _ORDER:
            raise ConditionError("compare with ==, !=, <, <=, >, >= or in")
        symbol, function, flipped = _ORDER[type(op)]
        if isinstance(right, ast.Name) and right.id not in ("true", "false"):
            left, right, symbol = right, left, flipped
            function = {s: f for s, f, _ in _ORDER.values()}[symbol]
        if not isinstance(left, ast.Name) or left.id in ("true", "false"):
            raise ConditionError(f"{ast.unparse(left)!r}: a comparison needs a name on one side, a value on the other")
        return self.compare_name(left.id, symbol, function, self.constant(right))

    def compare_name(self, name: str, symbol: str, function: Callable[[Any, Any], bool], value: Any) -> _Test:
        kind = self.kind(name)
        if kind is Version:
            if not isinstance(value, str):
                raise ConditionError(f'{name} is a version: compare it with a text such as {name} {symbol} "{value}"')
            try:
                specifier = SpecifierSet(f"{symbol}{value}")
            except InvalidSpecifier:
                raise ConditionError(f"{name} {symbol} {value!r} is not a comparison of versions (PEP 440)") from None

            def versions(facts: Mapping[str, Any]) -> bool:
                found = facts.get(name)
                return found is not None and specifier.contains(found, prereleases=True)

            return versions
        known = self.parameters.get(name)
        if known is not None and symbol in ("==", "!=") and value not in known:
            raise ConditionError(f"{name} is never {value!r}{did_you_mean(str(value), map(str, known))}")
        if kind is str and not isinstance(value, str):
            raise ConditionError(f'{name} is a text: compare it with "{value}"')
        if kind is str and known is None and symbol not in ("==", "!="):
            raise ConditionError(f"{name} is a text: compare it with == or !=")
        if (
            known is not None
            and symbol not in ("==", "!=")
            and any(isinstance(item, str) != isinstance(value, str) for item in known)
        ):
            raise ConditionError(f"{name} {symbol} {value!r} compares a text with a number")
        return lambda facts: name in facts and bool(function(facts[name], value))

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
        raise ConditionError(f"{ast.unparse(node)!r} is not a value: write a text in quotes, a number, true or false")

    def kind(self, name: str) -> type:
        if name in self.parameters:
            for kind in (bool, Version):
                if all(isinstance(value, kind) for value in self.parameters[name]):
                    return kind
            return object
        if name in NAMES:
            return NAMES[name]
        raise ConditionError(f"unknown name {name!r}{did_you_mean(name, [*NAMES, *self.parameters])}")
