"""Numbers of launches, written with a case's definitions: ``BYTES // 4``, ``2 * (M + N)``, ``min(N, 1024)``.

A part of Python's expressions, read with `ast` and evaluated by walking the tree; nothing is ever executed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import did_you_mean
from harness.model.syntax import ExpressionText, ReadError

_MAX_LENGTH = 200
_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {"min": min, "max": max}
_HELP = "use numbers, definitions, + - * / // %, min() and max()"


class ExpressionError(ReadError):
    """An expression that cannot be read or has no value; the message is one sentence."""


@dataclass(frozen=True)
class Expression:
    """A number, or how to compute one from definitions.

    Parameters
    ----------
    text : str
        As written.
    names : frozenset of str
        Definitions that it needs.
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(compare=False)

    @classmethod
    def parse(cls, value: Any, known: Collection[str]) -> Expression:
        """Read a number or a text.

        Raises
        ------
        ExpressionError
            When it is neither, or uses a name that is not `known`.
        """
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ExpressionError(f"must be a number or an expression such as {'BYTES // 4'!r}, not {value!r}")
        source = ExpressionText(str(value).strip(), "expression", ExpressionError)
        tree = source.parse(longest=_MAX_LENGTH, instead=_HELP)
        text, names = source.text, frozenset(_names(tree, source))
        for name in sorted(names):
            if name not in known:
                raise ExpressionError(f"{name!r} in {text!r} is no definition of the case{did_you_mean(name, known)}")
        return cls(text, names, tree)

    def __call__(self, definitions: Mapping[str, Any]) -> int | float:
        """The value.

        Raises
        ------
        ExpressionError
            When there is none, as for a division by zero or a definition that is no number.
        """
        try:
            value: int | float = _value(self._tree, definitions)
        except (ArithmeticError, TypeError, ValueError) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(f"{self.text!r} has no value: {error}") from None
        if not -(2**64) < value < 2**64:
            raise ExpressionError(f"{self.text!r} is too large")
        return value


def _names(node: ast.expr, source: ExpressionText) -> list[str]:
    match node:
        case ast.Constant(value=bool()):
            raise source.refuse(node, f"{ast.unparse(node)!r} is not a number: {_HELP}")
        case ast.Constant(value=int() | float()):
            return []
        case ast.Name(id=name):
            return [name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _names(operand, source)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return [*_names(left, source), *_names(right, source)]
        case ast.Call(func=ast.Name(id=function), args=[_, *_] as arguments, keywords=[]) if function in _FUNCTIONS:
            return [name for argument in arguments for name in _names(argument, source)]
    raise source.refuse(node, f"{ast.unparse(node)!r} is not allowed here: {_HELP}")


def _value(node: ast.expr, definitions: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            found = definitions.get(name)
            if isinstance(found, str) or found is None:
                raise ExpressionError(f"{name} is {found!r} here, not a number")
            if not isinstance(found, int | float):
                raise ExpressionError(f"{name} is a {type(found).__name__} here, not a number")
            return int(found) if isinstance(found, bool) else found
        case ast.UnaryOp(operand=operand):
            return -_value(operand, definitions)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_value(left, definitions), _value(right, definitions))
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _FUNCTIONS[function](*(_value(argument, definitions) for argument in arguments))
    raise AssertionError(ast.dump(node))
