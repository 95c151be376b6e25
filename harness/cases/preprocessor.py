"""The lines of a C++ file as a preprocessor sees them, without reading any header."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

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
_MOST_OF_GUARD = 200
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
        Whether it is there, or is left out, whatever headers define.
    live : bool
        Whether it is compiled.
    guard : str
        The outermost condition around it that is not known to hold, as a directive: ``#if __CUDA_ARCH__ >= 900``.
    """

    number: int
    text: str
    directive: str
    certain: bool
    live: bool = True
    guard: str = ""


@dataclass
class _Open:
    """An ``#if`` that is open: what holds around it, and whether one of its branches was taken (None: perhaps)."""

    live: bool
    certain: bool
    taken: bool | None = False
    first: str = ""
    around: str = ""


def lines_of(text: str, macros: Mapping[str, str]) -> Iterator[SourceLine]:
    """Lines that are compiled with these macros; of an unknown condition the first branch, as uncertain. Parameters as for `all_lines`."""
    return (line for line in all_lines(text, macros) if line.live)


def all_lines(text: str, macros: Mapping[str, str]) -> Iterator[SourceLine]:
    """Every line of code, and every directive that is no condition, with whether it is compiled.

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
    guard = ""
    for number, line in _logical(text):
        match = _DIRECTIVE.fullmatch(line)
        name, rest = (match[1], match[2].strip()) if match else ("", "")
        if name in ("if", "ifdef", "ifndef"):
            opened.append(_Open(live, certain, around=guard))
        elif name == "endif" and opened:
            last = opened.pop()
            live, certain, guard = last.live, last.certain, last.around
        if name in ("if", "ifdef", "ifndef", "elif", "else") and opened:
            # After a branch that may have been taken, none is certain: it represents all of them.
            last, free = opened[-1], opened[-1].taken is False
            truth = _truth(_condition(name, rest), known, guards) if free and last.live else False
            live, certain = last.live and truth is not False, last.certain and truth is not None
            last.taken = truth if free else last.taken
            directive = f"#{name} {rest}".strip()[:_MOST_OF_GUARD]
            last.first = last.first or directive
            guard = last.around or ("" if truth else f"#else of {last.first}" if name == "else" else directive)
        elif name != "endif":
            if live and name in ("define", "undef") and (word := _NAME.match(rest)):
                known.pop(word[0], None)
                if name == "define":
                    known[word[0]] = rest[word.end() :].strip() if certain else _MAYBE
            yield SourceLine(number, rest if match else _STRING.sub('""', line), name, certain, live, guard)


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


# What NVRTC defines, so that code behind #ifndef __CUDACC_RTC__ does not count. The architecture differs from cell to cell.
_NVRTC = {"__CUDACC__": "1", "__CUDACC_RTC__": "1", "__CUDA_ARCH__": ""}
# Headers for what only a host can do. Others of the host (stdio.h, cmath) are included for printf() and the like, too.
_HOST_HEADER = re.compile(
    r"algorithm|atomic|chrono|condition_variable|deque|filesystem|fstream|future|iomanip|iostream|istream|list|map|memory|mutex|ostream"
    r"|queue|random|set|sstream|stdexcept|streambuf|string|thread|unordered_map|unordered_set|vector"
    r"|(?:sys|arpa|net|netinet)/\w+\.h|unistd\.h|pthread\.h|fcntl\.h|dlfcn\.h|omp\.h|mpi\.h|getopt\.h"
    r"|thrust/(?:host|device)_vector\.h"
)
_HOST_CALL = re.compile(
    r"cuda(?:Malloc|Memcpy|Memset|Launch|StreamCreate|EventCreate|FuncSet|GetDeviceProperties|SetDevice)\w*"
)
_TOKEN = re.compile(r'[A-Za-z_]\w*|<<<|<<|""|[^\s\w]')
KINDS = ("main", "launch", "call", "header")
"""Kinds of signs, the most telling first."""
_INCLUDE = re.compile(r"<([^>]+)>")


@dataclass(frozen=True)
class Sign:
    """Something that makes a file a program of the host: its kind (`KINDS`), what it is, and its line."""

    kind: str
    what: str
    line: int

    def __str__(self) -> str:
        return f"{self.what} in line {self.line}"


@dataclass
class _Scope:
    """The owner of an open brace: a host or device function, `extern "C"`, or none of them."""

    function: bool = False
    host: bool = False
    linkage: bool = False


@dataclass
class _Reader:
    """Reads tokens and tracks the enclosing function; `head` is the text before the next brace."""

    device_words: set[str]
    scopes: list[_Scope] = field(default_factory=list)
    head: list[str] = field(default_factory=list)

    def read(self, line: SourceLine) -> Iterator[Sign]:
        before = ""
        for token in _TOKEN.findall(line.text):
            inside = next((scope for scope in reversed(self.scopes) if scope.function), None)
            if token == "{":
                if sign := self._open(inside, line):
                    yield sign
            elif token == "}":
                if self.scopes:
                    self.scopes.pop()
                self.head.clear()
            elif token == ";":
                self.head.clear()
            else:
                self.head.append(token)
            if inside and inside.host and line.certain:
                if token == "<<<" and before != "operator":
                    yield Sign("launch", "a launch", line.number)
                elif token == "(" and _HOST_CALL.fullmatch(before):
                    yield Sign("call", before, line.number)
            before = token

    def _open(self, inside: _Scope | None, line: SourceLine) -> Sign | None:
        head, last = self.head, self.head[-1] if self.head else ""
        device = bool(self.device_words.intersection(head))
        self.head = []
        if inside:
            # A block, or a lambda, which may be for the device.
            self.scopes.append(_Scope(function=device))
        elif last in ("", '""', "=", ",", "(") or (
            last != ")" and {"namespace", "class", "struct", "union", "enum"} & set(head)
        ):
            self.scopes.append(_Scope(linkage=head[-2:] == ["extern", '""']))
        else:
            main = ("main", "(") in pairwise(head) and all(scope.linkage for scope in self.scopes)
            self.scopes.append(_Scope(function="(" in head, host="(" in head and not device))
            if main and not device and line.certain:
                return Sign("main", "main()", line.number)
        return None


def host_signs(text: str, macros: Mapping[str, str] | None = None) -> list[Sign]:
    """Evidence that a file is a host program, the first of each kind, most telling first; empty without certain evidence.

    Counted is what NVRTC would be given: nothing in comments and texts, nothing behind ``#ifndef __CUDACC_RTC__`` or
    behind an undecidable condition, no launch by device code.

    Parameters
    ----------
    text : str
        The program.
    macros : Mapping, optional
        Macros that are defined on the command line, with their values.
    """
    reader = _Reader({"__global__", "__device__"})
    found: dict[str, Sign] = {}
    for sign in _signs(lines_of(text, {**_NVRTC, **(macros or {})}), reader):
        found.setdefault(sign.kind, sign)
    return [found[kind] for kind in KINDS if kind in found]


def _signs(lines: Iterable[SourceLine], reader: _Reader) -> Iterator[Sign]:
    for line in lines:
        if line.directive == "include":
            name = _INCLUDE.match(line.text)
            if name and line.certain and _HOST_HEADER.fullmatch(name[1].strip()):
                yield Sign("header", f"<{name[1].strip()}>", line.number)
        elif line.directive == "define":
            # A name for __global__ or __device__ is one of them.
            words = _TOKEN.findall(line.text)
            if words and reader.device_words.intersection(words[1:]):
                reader.device_words.add(words[0])
        elif not line.directive:
            yield from reader.read(line)
