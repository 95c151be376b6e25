"""A program compiled once, with a precompiled header where there is one, in the place of Jitify's and CuPy's two compilations (`harness.backends.cupy.precompiled`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from harness.nvidia.first_includes import Words
from harness.nvidia.first_includes import defined as lines_for
from harness.nvidia.pch_store import SILENT, behind, for_header

PREFIX = "#include <cupy/cuda_workaround.h>\n"
OWN_MACRO = "-DCUPY_USE_JITIFY"
# Whatever else a case asks for may write files, and the child that makes a header is kept from nothing: it is never given it.
# Nor what Jitify takes for a library to link and keeps from its own compilation, as -lineinfo.
PLAIN = re.compile(
    rf"--std=c\+\+\d\d|-arch=(sm|compute)_\d+|-ftz=true|--device-c|-dc|--relocatable-device-code=true"
    rf"|--use_fast_math|--device-as-default-execution-space|--pre-include=jitify_preinclude\.h|{OWN_MACRO}"
)
"""Options that allow compiling a program once, except macros."""
# Jitify compiles a program a line further down, and looks for pragmas in strings too: where one of the two could make it refuse
# what CuPy then would not, it is asked. Names that are put together could be any of these.
_LEFT = re.compile(r"LINE|source_location|R\"|##|%:%:|\?\?")
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
    log : str or None
        What NVRTC says of it, and would say of each program before anything else; None where the two cannot be put together.
    """

    path: str
    options: tuple[str, ...]
    log: str | None


class Program:
    """In a cell: the program, compiled once, for Jitify and for CuPy; else nothing but what they are."""

    def __init__(
        self,
        nvrtc: Any,
        jitify: Callable[..., Any],
        header: Header | None,
        added: tuple[str, ...],
        refusal: str,
        table: tuple[list[bytes], list[bytes]],
        words: Words,
    ) -> None:
        self._nvrtc, self._jitify, self._header, self._added = nvrtc, jitify, header, added
        self._refusal, self._words = refusal, words
        self._texts, self._names = table
        self._same: tuple[str, str, tuple[str, ...]] | None = None
        self._made: Any = None
        self.calls: list[tuple[str, ...]] = []
        """The options with which Jitify would have compiled it; empty if it has compiled it itself."""
        self.log = ""
        """NVRTC's, where Jitify would have refused it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvrtc, name)

    def jitify(self, source: str, options: tuple[str, ...]) -> Any:
        """The return value of ``cupy.cuda.jitify.jitify``."""
        name, _, text = source.partition("\n")
        plain = tuple(option for option in options if not option.startswith("-I"))
        every = (*plain, *self._added)
        defined = macros(text, plain, self._header.options, self._words) if self._header else None
        if self._header and defined is not None:
            given = [option for option in plain if not option.startswith("-D") or option == OWN_MACRO]
            use = (*given, *self._added, f"--use-pch={self._header.path}", SILENT)
            program = self._with_header(self._header, name, defined, text[len(PREFIX) :], use)
        else:
            program = self._without(name, text, every)
        if self.log:
            self.calls = [(*self._added, *plain)]
            raise RuntimeError(self._refusal)
        if program is None:
            return self._jitify(source, options)
        self._made, self._same = program, (text, name, every)
        self.calls = [(*self._added, *plain)]
        return name, every, self._texts, self._names

    def _without(self, name: str, text: str, every: tuple[str, ...]) -> Any:
        """Compile a program as CuPy will, which is what Jitify does, too, where it has all headers."""
        if not same_for_jitify(text) or any(map(_LEFT.search, every)):
            return None
        if not all(PLAIN.fullmatch(option) for option in every if not option.startswith("-D")):
            return None
        return self._compile(name, text, every)[0]

    def _with_header(self, header: Header, name: str, defined: str, rest: str, use: tuple[str, ...]) -> Any:
        """Compile a program with the header; where Jitify would refuse it, `log` is NVRTC's."""
        program, _ = self._compile(name, f"{PREFIX}{defined}{rest}", use)
        if program is not None or header.log is None or not self._refusal or "pragma" in rest:
            return program
        # As Jitify compiles it: a line further down.
        program, log = self._compile(name, f"{PREFIX}{defined}#line 3\n{rest}", use)
        if program is not None:
            self._nvrtc.destroyProgram(program)
        elif "precompiled header" not in log and not (defined and "declared at line" in log):
            self.log = behind(header.log, log)
        return None

    def _compile(self, name: str, source: str, options: tuple[str, ...]) -> tuple[Any, str]:
        """A program; None where NVRTC refuses it, with its log."""
        program = self._nvrtc.createProgram(source, name, self._texts, self._names)
        try:
            self._nvrtc.compileProgram(program, options)
        except self._nvrtc.NVRTCError as error:
            log = str(self._nvrtc.getProgramLog(program)) if "COMPILATION" in str(error) else "precompiled header"
            self._nvrtc.destroyProgram(program)
            return None, log
        return program, ""

    def createProgram(self, source: str, name: str, texts: Any, names: Any) -> Any:
        if self._same and (source, name) == self._same[:2] and texts is self._texts and names is self._names:
            return self._made
        return self._nvrtc.createProgram(source, name, texts, names)

    def compileProgram(self, program: Any, options: tuple[str, ...]) -> None:
        if self._made is None or program != self._made:
            self._nvrtc.compileProgram(program, options)
        elif self._same is None or tuple(options) != self._same[2]:
            raise RuntimeError(f"CuPy compiles with {options} what Jitify was asked about with {self._same}")


def same_for_jitify(text: str) -> bool:
    """Return whether a program is the same for Jitify and for CuPy, although Jitify writes it a line further down."""
    joined = text.replace("\\\n", "")
    if not text.startswith(PREFIX) or _LEFT.search(joined) or _JOINED.search(text):
        return False
    return len(_PRAGMA.findall(joined)) == len(_UNROLL.findall(text))


def macros(text: str, options: Sequence[str], made_for: Sequence[str], words: Words) -> str | None:
    """The text between the header and a program for the macros among its options; None if that could change the program.

    Parameters
    ----------
    text : str
        The program.
    options, made_for : sequence of str
        Its options, and those of the header.
    words : Words
        Those of the header.
    """
    if not same_for_jitify(text):
        return None
    asked = [option for option in options if option.startswith("-D") and option != OWN_MACRO]
    if for_header([option for option in options if option not in asked]) != for_header(made_for):
        return None
    if any(macro.startswith(OWN_MACRO) or _LEFT.search(macro) for macro in asked):
        return None
    lines = lines_for(asked, words)
    return f"{lines}#line 2\n" if lines else lines
