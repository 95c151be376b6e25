"""Reading a part of Python's expressions: what conditions and numbers of launches have in common.

Python's own parser makes the tree, and nothing of it is ever executed. The length of a text and the depth of its tree are limited,
so that walking the tree, or pickling a result, cannot exhaust the stack.
"""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass

_MAX_DEPTH = 120


class ReadError(ValueError):
    """A text that cannot be read; the message is one sentence.

    Parameters
    ----------
    message : str
        The sentence.
    position : int
        Character of the text that it is about, counted from 1; 0 where that is not known.
    """

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


@dataclass(frozen=True)
class ExpressionText:
    """A text that is read.

    Parameters
    ----------
    text : str
        The expression, as it was written.
    name : str
        What messages call it: ``"condition"``.
    error : type of ReadError
        What is raised.
    """

    text: str
    name: str
    error: type[ReadError]

    def parse(self, *, longest: int, instead: str = "") -> ast.expr:
        """Its tree.

        Parameters
        ----------
        longest : int
            Number of characters that it may have.
        instead : str
            A replacement for syntax that Python's parser refuses; without it, the parser's own words are used.

        Raises
        ------
        ReadError
            Of the kind `error`, where the text is too long, too deep or no expression of Python's.
        """
        text = self.text.strip()
        if len(text) > longest:
            raise self.error(f"{self._a} may have {longest} characters, this one has {len(text)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python's advice on literals is not for these
                tree = ast.parse(text, mode="eval").body
        except (SyntaxError, MemoryError, RecursionError, ValueError) as error:
            why, position = self._said(error)
            raise self.error(f"cannot read the {self.name} {text!r}: {instead or why}", position) from None
        if _is_deep(tree):
            raise self.error(f"{self._a} may be nested {_MAX_DEPTH} levels deep, and this one is deeper")
        return tree

    def refuse(self, node: ast.AST, message: str) -> ReadError:
        """The error for a part of the text, which knows where that stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return self.error(message, self._position(line, column) if line else 0)

    @property
    def _a(self) -> str:
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"

    def _position(self, line: int, column: int) -> int:
        """Character of the text; Python counts a column in bytes of UTF-8, from the first that is no space."""
        lines = self.text.strip().split("\n")
        return self._start(line) + len(lines[line - 1].encode()[:column].decode("utf-8", "replace")) + 1

    def _start(self, line: int) -> int:
        """Characters before a line."""
        before = len(self.text) - len(self.text.lstrip())
        return before + sum(len(each) + 1 for each in self.text.strip().split("\n")[: line - 1])

    def _said(self, error: Exception) -> tuple[str, int]:
        """The message of Python's parser, and its position in characters."""
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
