"""A program compiled once, with a precompiled header, in the place of Jitify's and CuPy's two compilations (`harness.backends.cupy.precompiled`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.backends.cupy import nvrtc_tap
from harness.nvidia.nvrtc import COMPILATION

PREFIX = "#include <cupy/cuda_workaround.h>\n"
SILENT = "--pch-messages=false"
OWN_MACRO = "-DCUPY_USE_JITIFY"
_MACRO = re.compile(r"-D([A-Za-z_]\w*)(?:=(.*))?")
# What would be read another way in a line than on the command line.
_APART = re.compile(r"\\|//|/\*")
_WORD = re.compile(rb"[A-Za-z_]\w*")
# Quotes, which may hold what looks like a comment, and comments.
_ASIDE = re.compile(rb""" "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])' | //[^\n]* | /\*.*?\*/ """, re.DOTALL | re.VERBOSE)
_FUNCTION = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)\n]*)\)(.*)$", re.MULTILINE)
# What NVRTC says when Jitify has to look for a file.
_MISSING = "open source file"
# Jitify writes pragmas another way before it compiles a program; this one is the same as an operator.
_PRAGMA = re.compile(r"pragma", re.IGNORECASE)
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
    said : str or None
        What NVRTC says of it before it says anything of a program; None where that is not known.
    """

    path: str
    options: tuple[str, ...]
    said: str | None


@dataclass(frozen=True)
class Answers:
    """What Jitify adds to options, what it says of a program that NVRTC refuses, and by how many lines it moves programs down."""

    added: tuple[str, ...]
    refusal: str
    down: int


class Program:
    """In a cell: the program, compiled once with the header, for Jitify and for CuPy; else nothing but what they are."""

    def __init__(
        self,
        nvrtc: Any,
        jitify: Callable[..., Any],
        header: Header,
        answers: Answers,
        table: tuple[list[bytes], list[bytes]],
        words: set[bytes],
    ) -> None:
        self._nvrtc, self._jitify, self._header, self._answers = nvrtc, jitify, header, answers
        self._words = words
        self._texts, self._names = table
        self._same: tuple[str, str, tuple[str, ...]] | None = None
        self._made: Any = None
        self.options: tuple[str, ...] = ()
        """With what Jitify would have compiled it; empty where it has compiled it itself."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvrtc, name)

    def jitify(self, source: str, options: tuple[str, ...]) -> Any:
        """What ``cupy.cuda.jitify.jitify`` answers."""
        name, _, text = source.partition("\n")
        plain = tuple(option for option in options if not option.startswith("-I"))
        if macros(text, plain, self._header.options, self._words) is None:
            return self._jitify(source, options)
        added = self._answers.added
        program, said = self._compile(name, text, plain)
        if said is None:
            self._made, self._same = program, (text, name, (*plain, *added))
            self.options = (*added, *plain)
            return name, self._same[2], self._texts, self._names
        if self._header.said is not None and said and _MISSING not in said:
            _, said = self._compile(name, text, plain, self._answers.down)
            if said is not None:
                nvrtc_tap.note(nvrtc_tap.Call(COMPILATION, (*added, *plain), self._header.said + said))
                raise RuntimeError(self._answers.refusal)
        return self._jitify(source, options)

    def _compile(self, name: str, text: str, plain: tuple[str, ...], down: int = 0) -> tuple[Any, str | None]:
        """The program compiled with the header, `down` lines further down; and where it is refused, the log."""
        defined = macros(text, plain, self._header.options, self._words)
        line = f"#line {2 + down}\n" if defined or down else ""
        source = f"{PREFIX}{defined}{line}{text[len(PREFIX) :]}"
        program = self._nvrtc.createProgram(source, name, self._texts, self._names)
        use = f"--use-pch={self._header.path}"
        try:
            self._nvrtc.compileProgram(program, (*self._header.options, *self._answers.added, use, SILENT))
        except self._nvrtc.NVRTCError:
            log = str(self._nvrtc.getProgramLog(program))
            self._nvrtc.destroyProgram(program)
            return None, log
        return program, None

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
    if not text.startswith(PREFIX) or len(_PRAGMA.findall(text)) != len(_UNROLL.findall(text)):
        return None
    asked = [option for option in options if option.startswith("-D") and option != OWN_MACRO]
    if [option for option in options if option not in asked] != list(made_for):
        return None
    defined = ""
    for macro in asked:
        found = _MACRO.fullmatch(macro)
        if not found or found[1].encode() in words or found[1].startswith("__") or _APART.search(macro):
            return None
        defined += f"#define {found[1]} {'1' if found[2] is None else found[2]}\n"
    return defined


def words_of(text: bytes) -> set[bytes]:
    """Identifiers of a header, without those in comments and the parameters of its macros, which no macro of a program changes."""
    text = text.replace(b"\\\r\n", b"").replace(b"\\\n", b"")
    text = _ASIDE.sub(lambda found: b" " if found[0].startswith(b"/") else found[0], text)
    words: set[bytes] = set()
    for name, parameters, body in _FUNCTION.findall(text):
        words |= {name, *_WORD.findall(body)} - set(_WORD.findall(parameters))
    return words | set(_WORD.findall(_FUNCTION.sub(b"", text)))
