"""A program compiled once, with a precompiled header, in the place of Jitify's and CuPy's two compilations (`harness.backends.cupy.precompiled`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PREFIX = "#include <cupy/cuda_workaround.h>\n"
SILENT = "--pch-messages=false"
OWN_MACRO = "-DCUPY_USE_JITIFY"
_MACRO = re.compile(r"-D([A-Za-z_][A-Za-z0-9_]*)(?:=([ -~]*))?")
# What would be read another way in a line than on the command line.
_APART = re.compile(rf"\\|//|/\*|\?\?|{OWN_MACRO}\b")
# Jitify compiles a program a line further down, and looks for pragmas in strings too: where one of the two could make it refuse
# what CuPy then would not, it is asked. Names that are put together could be any of these.
_LEFT = re.compile(r"LINE|source_location|R\"|##|%:%:|\?\?")
_WORD = re.compile(rb"[A-Za-z_]\w*")
# Quotes, which may hold what looks like a comment, and comments.
_ASIDE = re.compile(rb""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | //[^\n]* | /\*.*?\*/ """, re.DOTALL | re.VERBOSE)
_FUNCTION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)(.*)$", re.MULTILINE)
# Jitify writes pragmas another way before it compiles a program; this one is the same as an operator.
_PRAGMA = re.compile(r"pragma", re.IGNORECASE)
_JOINED = re.compile(r"\\[ \t]*\n[ \t]*#pragma")
_UNROLL = re.compile(r"^[ \t]*#pragma unroll(?:[ \t]+\w+)?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """A precompiled header.

    Parameters
    ----------
    path : str
        The file.
    options : tuple of str
        What it was made for, without include directories, which Jitify keeps to itself.
    """

    path: str
    options: tuple[str, ...]


class Program:
    """In a cell: the program, compiled once with the header, for Jitify and for CuPy; else nothing but what they are."""

    def __init__(
        self,
        nvrtc: Any,
        jitify: Callable[..., Any],
        header: Header,
        added: tuple[str, ...],
        table: tuple[list[bytes], list[bytes]],
        words: set[bytes],
    ) -> None:
        self._nvrtc, self._jitify, self._header, self._added = nvrtc, jitify, header, added
        self._words = words
        self._texts, self._names = table
        self._same: tuple[str, str, tuple[str, ...]] | None = None
        self._made: Any = None
        self.calls: list[tuple[str, ...]] = []
        """The options with which Jitify would have compiled it; empty where it has compiled it itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvrtc, name)

    def jitify(self, source: str, options: tuple[str, ...]) -> Any:
        """What ``cupy.cuda.jitify.jitify`` answers."""
        name, _, text = source.partition("\n")
        plain = tuple(option for option in options if not option.startswith("-I"))
        defined = macros(text, plain, self._header.options, self._words)
        if defined is None:
            return self._jitify(source, options)
        program = self._compile(name, f"{PREFIX}{defined}{text[len(PREFIX) :]}")
        if program is None:
            return self._jitify(source, options)
        self._made, self._same = program, (text, name, (*plain, *self._added))
        self.calls = [(*self._added, *plain)]
        return name, self._same[2], self._texts, self._names

    def _compile(self, name: str, source: str) -> Any:
        """A program compiled with the header; None where NVRTC refuses it."""
        program = self._nvrtc.createProgram(source, name, self._texts, self._names)
        use = f"--use-pch={self._header.path}"
        try:
            self._nvrtc.compileProgram(program, (*self._header.options, *self._added, use, SILENT))
        except self._nvrtc.NVRTCError:
            self._nvrtc.destroyProgram(program)
            return None
        return program

    def createProgram(self, source: str, name: str, texts: Any, names: Any) -> Any:
        if self._same and (source, name) == self._same[:2] and texts is self._texts and names is self._names:
            return self._made
        return self._nvrtc.createProgram(source, name, texts, names)

    def compileProgram(self, program: Any, options: tuple[str, ...]) -> None:
        if self._made is None or program != self._made:
            self._nvrtc.compileProgram(program, options)
        elif self._same is None or tuple(options) != self._same[2]:
            raise RuntimeError(f"CuPy compiles with {options} what Jitify was asked about with {self._same}")


def macros(text: str, options: Sequence[str], made_for: Sequence[str], words: set[bytes]) -> str | None:
    """What stands between the header and a program for the macros among its options; None where that could be another program.

    Parameters
    ----------
    text : str
        The program.
    options, made_for : sequence of str
        Its options, and those of the header.
    words : set of bytes
        Every identifier in the header.
    """
    joined = text.replace("\\\n", "")
    if not text.startswith(PREFIX) or _LEFT.search(joined) or _JOINED.search(text):
        return None
    if len(_PRAGMA.findall(joined)) != len(_UNROLL.findall(text)):
        return None
    asked = [option for option in options if option.startswith("-D") and option != OWN_MACRO]
    if [option for option in options if option not in asked] != list(made_for):
        return None
    defined: dict[str, str] = {}
    for macro in asked:
        found = _MACRO.fullmatch(macro)
        if not found or found[1] in defined or _APART.search(macro) or _LEFT.search(macro):
            return None
        if not words or found[1].encode() in words or found[1].startswith("__"):
            return None
        defined[found[1]] = f"#define {found[1]} {'1' if found[2] is None else found[2]}\n"
    return "".join([*defined.values(), "#line 2\n"]) if defined else ""


def words_of(text: bytes) -> set[bytes]:
    """Identifiers of a header, without those in comments and the parameters of its macros, which no macro of a program changes."""
    text = text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    text = _ASIDE.sub(lambda found: b" " if found[0].startswith(b"/") else found[0], text)
    words: set[bytes] = set()
    for name, parameters, body in _FUNCTION.findall(text):
        words |= {name, *_WORD.findall(body)} - set(_WORD.findall(parameters))
    return words | set(_WORD.findall(_FUNCTION.sub(b"", text)))
