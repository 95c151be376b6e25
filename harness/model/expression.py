"""Integer expressions of launches over a case's definitions: ``BYTES // 4``, ``2 * (M + N)``, ``min(N, 1024)``.

The grammar is a subset of Python's expressions. `ast` parses the text, and walking the tree evaluates it; nothing is
executed. The length of a text and the depth of its tree are limited, so walking the tree or pickling a result cannot
exhaust the stack.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.errors import did_you_mean

_MAX_DEPTH = 120


class ReadError(ValueError):
    """A text that cannot be read. The message is one sentence.

    Parameters
    ----------
    message : str
        The sentence.
    position : int
        Character of the text with the error, counted from 1; 0 if unknown.
    """

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class ExpressionText:
    """The text of an expression or a condition.

    Parameters
    ----------
    text : str
        Text as written.
    name : str
        Name in messages: ``"condition"``.
    error : type of ReadError
        Class of the errors.
    """

    text: str
    name: str
    error: type[ReadError]

    def parse(self, *, longest: int, instead: str = "") -> ast.expr:
        """Return the syntax tree.

        Parameters
        ----------
        longest : int
            Maximum number of characters.
        instead : str
            Message for syntax that Python's parser refuses; by default the parser's own message.

        Raises
        ------
        ReadError
            Of the class `error`, if the text is too long, too deep or no Python expression.
        """
        text = self.text.strip()
        if len(text) > longest:
            raise self.error(f"{self._a} may have {longest} characters, this one has {len(text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's advice on literals does not apply here
                tree = ast.parse(text, mode="eval").body
        except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
            why, position = self._parser_message(error)
            raise self.error(f"cannot read the {self.name} {text!r}: {instead or why}", position) from None
        if _is_deep(tree):
            raise self.error(f"{self._a} may be nested {_MAX_DEPTH} levels deep, and this one is deeper")
        return tree

    def refuse(self, node: ast.AST, message: str) -> ReadError:
        """Return the error for a part of the text, with its position."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return self.error(message, self._position(line, column) if line else 0)

    @property
    def _a(self) -> str:
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    def _position(self, line: int, column: int) -> int:
        """Return a position in characters; Python counts columns in UTF-8 bytes of the stripped text."""
        lines = self.text.strip().split("\n")
        return self._start(line) + len(lines[line - 1].encode()[:column].decode("utf-8", "replace")) + 1

    def _start(self, line: int) -> int:
        """Return the number of characters before a line."""
        before = len(self.text) - len(self.text.lstrip())
        return before + sum(len(each) + 1 for each in self.text.strip().split("\n")[: line - 1])

    def _parser_message(self, error: Exception) -> tuple[str, int]:
        """Return the message of Python's parser and its position in characters."""
        if not isinstance(error, SyntaxError) or not error.lineno:
            return str(error), 0
        if not error.offset:
            return "something is missing at its end", len(self.text.rstrip()) + 1
        return error.msg, self._start(error.lineno) + error.offset


def _is_deep(tree: ast.AST) -> bool:
    """Return whether a tree has more levels than allowed, without recursion."""
    level: list[ast.AST] = [tree]
    for _ in range(_MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


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
    """An expression that is invalid or has no value. The message is one sentence."""


@dataclass(frozen=True)
class Expression:
    """A number, or an expression over definitions.

    Parameters
    ----------
    text : str
        Text as written.
    names : frozenset of str
        Definitions that the expression uses.
    """

    text: str
    names: frozenset[str]
    _tree: ast.expr = field(compare=False)

    @classmethod
    def parse(cls, value: Any, known: Collection[str]) -> Expression:
        """Read a number or an expression.

        Raises
        ------
        ExpressionError
            If the value is neither, or uses a name outside `known`.
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
        """Evaluate the expression.

        Raises
        ------
        ExpressionError
            If there is no value, as for a division by zero or a definition that is not a number.
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
