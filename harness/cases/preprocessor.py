"""The lines of a C++ file after preprocessing, without reading any header."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import pairwise

_SPLICE = re.compile(r"\\[ \t]*\n")
# Tokens with arbitrary content: comments, raw strings, strings, characters. A number may contain an apostrophe (1'000).
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
# Names that compilers and CUDA's headers define, with unknown values.
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
        First line, from 1.
    text : str
        Code without comments and with empty strings; for a directive, the text after its name.
    directive : str
        ``include``, ``define``, …; empty for code.
    certain : bool
        Whether the line is compiled or skipped independently of the headers.
    live : bool
        Whether the line is compiled.
    guard : str
        Outermost enclosing condition that is not known to hold, as a directive: ``#if __CUDA_ARCH__ >= 900``.
    """

    number: int
    text: str
    directive: str
    certain: bool
    live: bool = True
    guard: str = ""


@dataclass
class _Open:
    """An open ``#if``: the state around it, and whether one of its branches was taken (None: perhaps)."""

    live: bool
    certain: bool
    taken: bool | None = False
    first: str = ""
    around: str = ""


def lines_of(text: str, macros: Mapping[str, str]) -> Iterator[SourceLine]:
    """Yield the lines that are compiled with these macros; parameters as for `all_lines`.

    The first branch of an unknown condition counts as compiled, but not as certain.
    """
    return (line for line in all_lines(text, macros) if line.live)


def all_lines(text: str, macros: Mapping[str, str]) -> Iterator[SourceLine]:
    """Yield every line of code, and every directive except conditions, with whether it is compiled.

    Parameters
    ----------
    text : str
        C++ source.
    macros : Mapping
        Definitions before the first line. Other ``_…`` and ``CUDA…`` names are unknown, all other names are undefined.
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
            # After a branch that may have been taken, no branch is certain: the first branch represents all of them.
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
    """Yield logical lines with their numbers.

    Spliced lines are joined. Comments and raw strings are removed; ordinary strings remain for directives.
    """
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
        # The values 0, 1 and 10**9 sample the unknown; if all give the same truth, the condition does not depend on it.
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


# Macros of NVRTC, which exclude code behind #ifndef __CUDACC_RTC__. The architecture differs from cell to cell.
_NVRTC = {"__CUDACC__": "1", "__CUDACC_RTC__": "1", "__CUDA_ARCH__": ""}
# Headers that only host code uses. Other host headers (stdio.h, cmath) also serve printf() and similar functions.
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
"""Kinds of evidence, the strongest first."""
_INCLUDE = re.compile(r"<([^>]+)>")


@dataclass(frozen=True)
class Sign:
    """Evidence that a file is a host program: kind (`KINDS`), description and line."""

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
    """Return the certain evidence that a file is a host program, the first of each kind, strongest first.

    The code for NVRTC counts: nothing in comments and strings, nothing behind ``#ifndef __CUDACC_RTC__`` or an
    undecidable condition, and no launch by device code.

    Parameters
    ----------
    text : str
        C++ source.
    macros : Mapping, optional
        Macros from the command line, with their values.
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
            # A macro for __global__ or __device__ counts as that word.
            words = _TOKEN.findall(line.text)
            if words and reader.device_words.intersection(words[1:]):
                reader.device_words.add(words[0])
        elif not line.directive:
            yield from reader.read(line)
