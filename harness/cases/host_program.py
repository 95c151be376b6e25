"""Detection of host programs, which device-only compilers cannot compile."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from harness.cases.preprocess import SourceLine, lines_of

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
