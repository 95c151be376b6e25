"""The headers that a program includes first, and the placement of command-line macros after them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.protocol.backend import Setup

_MOST = 1 << 16  # maximum length of the first includes, in characters
_ASIDE = re.compile(r"[ \t\n]+|//[^\n\\]*\n|/\*[^\\]*?\*/")
_INCLUDE = re.compile(r"#[ \t]*include[ \t]*<([A-Za-z0-9_][\w./+-]*)>[ \t]*(?://[^\n\\]*|/\*[^\\\n]*?\*/[ \t]*)?\n")
_MACRO = re.compile(r"-D([A-Za-z_][A-Za-z0-9_]*)(?:=([ -~]*))?")
# Texts that a line interprets differently from the command line.
_APART = re.compile(r"\\|//|/\*|\?\?|\bdefined\b|__VA_")
_WORD = re.compile(rb"[A-Za-z_]\w*")
# Comments, and quotes, which may contain comment markers.
_QUOTES = re.compile(rb""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | //[^\n]* | /\*.*?\*/ """, re.DOTALL | re.VERBOSE)
_FUNCTION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class FirstIncludes:
    """The first includes of a program.

    Parameters
    ----------
    names : tuple of str
        Names of headers in angle brackets, in order.
    end : int
        End of the last include's line, in characters.
    lines : int
        Number of lines up to that end.
    """

    names: tuple[str, ...]
    end: int
    lines: int

    @property
    def text(self) -> str:
        """A program with these includes and nothing else."""
        return "".join(f"#include <{name}>\n" for name in self.names)


def first_includes(text: str) -> FirstIncludes | None:
    """Return the includes in angle brackets that only comments precede; None if there is none."""
    names: list[str] = []
    place = end = 0
    while place < min(len(text), _MOST):
        if found := _INCLUDE.match(text, place):
            if ".." in found[1]:
                break
            names.append(found[1])
            end = found.end()
        elif not (found := _ASIDE.match(text, place)):
            break
        place = found.end()
    if not names or re.search(r"[\r\f\v\0]|\?\?", text[:end]):
        return None
    return FirstIncludes(tuple(names), end, text.count("\n", 0, end))


class Words:
    """The identifiers of headers that a macro of a program could change; a header is parsed only if it contains a name.

    Parameters
    ----------
    texts : iterable of bytes
        The headers.
    """

    def __init__(self, texts: Iterable[bytes]) -> None:
        self._texts = list(texts)
        self._words: dict[int, set[bytes]] = {}
        self._found: dict[bytes, bool] = {}

    def __bool__(self) -> bool:
        return bool(self._texts)

    def __contains__(self, name: bytes) -> bool:
        if name not in self._found:
            self._found[name] = any(
                _stands_in(text, name) and name in self._of(number) for number, text in enumerate(self._texts)
            )
        return self._found[name]

    def _of(self, number: int) -> set[bytes]:
        if number not in self._words:
            self._words[number] = words_of(self._texts[number])
        return self._words[number]


def _stands_in(text: bytes, name: bytes) -> bool:
    """Return whether a name is a word of a text, comments included."""
    before = (text[found.start() - 1 : found.start()] for found in re.finditer(name + rb"(?!\w)", text))
    return any(not (each.isalnum() or each == b"_") for each in before)


def defined(macros: Sequence[str], words: Words) -> str | None:
    """Return lines that define the macros of ``-D`` options after headers; None if that could change the program.

    Parameters
    ----------
    macros : sequence of str
        The options.
    words : Words
        Words of the headers; if empty, the result is None.
    """
    lines: dict[str, str] = {}
    for macro in macros:
        found = _MACRO.fullmatch(macro)
        if not found or found[1] in lines or _APART.search(macro):
            return None
        if not words or found[1].encode() in words or found[1].startswith("__"):
            return None
        lines[found[1]] = f"#define {found[1]} {'1' if found[2] is None else found[2]}\n"
    return "".join(lines.values())


def words_of(text: bytes) -> set[bytes]:
    """Return the identifiers of a header that macros of a program can change, without comments and macro parameters."""
    text = text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    text = _QUOTES.sub(lambda found: b" " if found[0].startswith(b"/") else found[0], text)
    words: set[bytes] = set()
    for name, parameters, body in _FUNCTION.findall(text):
        words |= {name, *_WORD.findall(body)} - set(_WORD.findall(parameters))
    return words | set(_WORD.findall(_FUNCTION.sub(b"", text)))


_PLACES = (
    ("cudart", "cuda_runtime_api.h", "CUDART_VERSION", 1000, 10),
    ("cccl", "cuda/std/__cccl/version.h", "CCCL_VERSION", 1000000, 1000),
    ("cub", "cub/version.cuh", "CUB_VERSION", 100000, 100),
)


def version(setup: Setup) -> dict[str, str]:
    """Return the versions in the toolkit's headers: ``{"cudart": "12.4", "cccl": "2.3"}``."""
    return version_in(setup.include)


def version_in(folders: Iterable[str]) -> dict[str, str]:
    """Return the versions in the headers that are first in these include directories."""
    folders, found = list(folders), {}
    for name, file, macro, major, minor in _PLACES:
        for folder in folders:
            path = Path(folder, file)
            if path.is_file():
                match = re.search(rf"#\s*define\s+{macro}\s+(\d+)", path.read_text("utf-8", "replace"))
                if match:
                    number = int(match[1])
                    found[name] = f"{number // major}.{number % major // minor}"
                break
    return found
