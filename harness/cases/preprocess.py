"""A C++ text as a preprocessor sees its lines, without reading any header."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_SPLICE = re.compile(r"\\[ \t]*\n")
# What may hold anything: comments, raw strings, strings, characters. A number may hold an apostrophe (1'000).
_OPAQUE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)"
    r'|(?<![\w])(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)'
    r"|\b\d(?:'?[\w.])*"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*(?:#|%:)[ \t]*(\w*)[ \t]*(.*)")
_DEFINED = re.compile(r"\bdefined\s*(?:\(\s*(\w+)\s*\)|(\w+))")
_NAME = re.compile(r"\b[A-Za-z_]\w*\b")
# Names that compilers and CUDA's own headers define, each in its own way: nothing is known of them without asking.
_FOREIGN = re.compile(r"_|CUDA|NDEBUG\b")
_GUARD = re.compile(r"#[ \t]*ifndef[ \t]+(\w+)[^\n]*\n\s*#[ \t]*define[ \t]+\1\b")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_MAYBE = "?"
_ELSEWHERE = frozenset({"_WIN32", "_WIN64", "_MSC_VER", "__APPLE__", "WIN32", "__MINGW32__", "__CYGWIN__"})


@dataclass(frozen=True)
class SourceLine:
    """One line of code or one directive.

    Parameters
    ----------
    number : int
        Where it begins, from 1.
    text : str
        Code without comments and with empty strings; for a directive, the text after its name.
    directive : str
        ``include``, ``define``, …; empty for code.
    certain : bool
        Whether it is there whatever headers define.
    """

    number: int
    text: str
    directive: str
    certain: bool


@dataclass
class _Open:
    """An ``#if`` that is open: what holds around it, and whether one of its branches was taken (None: perhaps)."""

    live: bool
    certain: bool
    taken: bool | None = False


def lines_of(text: str, macros: Mapping[str, str]) -> Iterator[SourceLine]:
    """Lines that are compiled with these macros; of an unknown condition the first branch, as uncertain.

    Parameters
    ----------
    text : str
        The program.
    macros : Mapping
        Definitions before its first line. Other ``_…`` and ``CUDA…`` names are unknown, any other name is not defined.
    """
    known = dict(macros)
    guards = {match[1] for match in _GUARD.finditer(text)}
    opened: list[_Open] = []
    live = certain = True
    for number, line in _logical(text):
        match = _DIRECTIVE.fullmatch(line)
        name, rest = (match[1], match[2].strip()) if match else ("", "")
        if name in ("if", "ifdef", "ifndef"):
            opened.append(_Open(live, certain))
        elif name == "endif" and opened:
            last = opened.pop()
            live, certain = last.live, last.certain
        if name in ("if", "ifdef", "ifndef", "elif", "else") and opened:
            # After a branch that may have been taken, none is certain: it represents all of them.
            last, free = opened[-1], opened[-1].taken is False
            truth = _truth(_condition(name, rest), known, guards) if free and last.live else False
            live, certain = last.live and truth is not False, last.certain and truth is not None
            last.taken = truth if free else last.taken
        elif live and name != "endif":
            if name in ("define", "undef") and (word := _NAME.match(rest)):
                known.pop(word[0], None)
                if name == "define":
                    known[word[0]] = rest[word.end() :].strip() if certain else _MAYBE
            yield SourceLine(number, rest if match else _STRING.sub('""', line), name, certain)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; spliced ones are one, comments and long strings are gone, short ones stay for directives."""
    marked = _SPLICE.sub("\x01", text.replace("\r\n", "\n").replace("\x01", " "))

    def plain(match: re.Match[str]) -> str:
        found = match[0]
        if found[0] == "/" or match["end"] is not None or (found[0] == "'" and found[-1] == "'"):
            return " " + re.sub(r"[^\n\x01]", "", found)
        return found

    number = 1
    for line in _OPAQUE.sub(plain, marked).split("\n"):
        yield number, line.replace("\x01", " ")
        number += 1 + line.count("\x01")


def _condition(name: str, rest: str) -> str:
    if name in ("if", "elif"):
        return rest
    return "1" if name == "else" else f"{'!' if name == 'ifndef' else ''}defined({(rest.split() or ['0'])[0]})"


def _truth(text: str, known: Mapping[str, str], guards: AbstractSet[str]) -> bool | None:
    """Evaluate a condition; None if it depends on something unknown."""

    def of_nobody(name: str) -> str:
        return "0" if name in _ELSEWHERE or name in guards or not _FOREIGN.match(name) else "unknown"

    def defined(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return of_nobody(name) if name not in known else "unknown" if known[name] == _MAYBE else "1"

    def value(match: re.Match[str]) -> str:
        name = match[0]
        if name in ("unknown", "and", "or", "not"):
            return name
        return of_nobody(name) if name not in known else known[name] if known[name].isdecimal() else "unknown"

    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", _DEFINED.sub(defined, text))
    text = text.replace("&&", " and ").replace("||", " or ")
    text = _NAME.sub(value, re.sub(r"!(?!=)", " not ", text))
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        # Whatever the unknown values are, 0, 1 and a large one: where all agree, the condition does not hang on them.
        found = {bool(_value(tree, guess)) for guess in (0, 1, 10**9)}
    except (SyntaxError, ValueError, RecursionError, MemoryError, ArithmeticError):
        return None
    return found.pop() if len(found) == 1 else None


_COMPARE = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
            ast.Eq: operator.eq, ast.NotEq: operator.ne}  # fmt: skip
_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
           ast.BitOr: operator.or_, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod}  # fmt: skip


def _value(node: ast.expr, unknown: int) -> int:
    match node:
        case ast.Constant(value=int() as number):
            return number
        case ast.Name(id="unknown"):
            return unknown
        case ast.UnaryOp(op=ast.Not()):
            return int(not _value(node.operand, unknown))
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, unknown)
        case ast.BoolOp():
            each = (bool(_value(item, unknown)) for item in node.values)
            return int(all(each) if isinstance(node.op, ast.And) else any(each))
        case ast.Compare(ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return int(_COMPARE[type(op)](_value(node.left, unknown), _value(right, unknown)))
        case ast.BinOp() if type(node.op) in _BINARY:
            return int(_BINARY[type(node.op)](_value(node.left, unknown), _value(node.right, unknown)))
    raise ValueError("not a condition that is understood")
