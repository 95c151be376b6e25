"""CuPy's Jitify header as a precompiled header, which NVRTC reads once for many cells.

From 13.0 on, this header is ``#include <cupy/cuda_workaround.h>``. NVRTC 12.9 needs 0.6 s for it, and every program
compiles it twice: Jitify compiles to find missing headers, then CuPy compiles. From CUDA 12.8 on, NVRTC supports
precompiled headers (https://docs.nvidia.com/cuda/nvrtc/index.html#precompiled-headers-pch). A child of the fork server
creates one for each set of options, from the header table that every cell receives anyway. A cell then compiles its
program with it, once. If that succeeds, Jitify has no header to find, and CuPy's own call of NVRTC would be the same
call, so CuPy receives this program. If it fails, the program is compiled once more as Jitify does, which would have
refused the program before CuPy: the log is that of this compilation, after NVRTC's messages about the header itself. A
cell without a precompiled header compiles its program once, unchanged. Jitify compiles the program too only if that
fails.

Macros of a case are options, and a precompiled header must be created with the same options. The macros are therefore
defined after the header, and only if they occur nowhere in it. ``benchmarks/jitify.py`` and the tests compare both
ways.
"""

from __future__ import annotations

import ctypes
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.nvidia.includes import Words
from harness.nvidia.includes import defined as lines_for
from harness.nvidia.pch import ONCE, SILENT, Store, behind, builtin, for_header
from harness.protocol import process_output
from harness.protocol.backend import Job
from harness.protocol.messages import header_options

PREFIX = "#include <cupy/cuda_workaround.h>\n"
OWN_MACRO = "-DCUPY_USE_JITIFY"
# Any other option of a case may write files, and nothing restricts the child that creates a header, so the child never
# receives such an option. It does not receive options that Jitify takes for libraries to link and omits from its own
# compilation either, such as -lineinfo.
PLAIN = re.compile(
    rf"--std=c\+\+\d\d|-arch=(sm|compute)_\d+|-ftz=true|--device-c|-dc|--relocatable-device-code=true"
    rf"|--use_fast_math|--device-as-default-execution-space|--pre-include=jitify_preinclude\.h|{OWN_MACRO}"
)
"""Options, apart from macros, with which a program can be compiled once for Jitify and CuPy."""
# Jitify compiles a program one line further down, and searches strings for pragmas too. If either could make Jitify
# refuse a program that CuPy accepts, Jitify compiles it itself. Concatenated names could be any of these words.
_LEFT = re.compile(r"LINE|source_location|R\"|##|%:%:|\?\?")
# Jitify rewrites pragmas before it compiles a program. `#pragma unroll` means the same in that form, an operator.
_PRAGMA = re.compile(r"pragma", re.IGNORECASE)
_JOINED = re.compile(r"\\[ \t]*\n[ \t]*#pragma")
_UNROLL = re.compile(r"^[ \t]*#pragma unroll(?:[ \t]+\w+)?[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """A precompiled header.

    Parameters
    ----------
    path : str
        The file's path.
    options : tuple of str
        The options that it was created with, without include directories, which Jitify does not pass on.
    log : str or None
        NVRTC's messages about the header, which it would repeat before each program's messages; None if the two logs
        cannot be joined.
    """

    path: str
    options: tuple[str, ...]
    log: str | None


class Program:
    """In a cell: a wrapper of NVRTC and Jitify that compiles the program once for both, if possible."""

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
        """The options of Jitify's compilation; empty if Jitify has compiled the program itself."""
        self.log = ""
        """NVRTC's log, if Jitify would have refused the program."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nvrtc, name)

    def jitify(self, source: str, options: tuple[str, ...]) -> Any:
        """Return the value of ``cupy.cuda.jitify.jitify``."""
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
        """Compile a program as CuPy does; with all headers in its table, Jitify does the same."""
        if not same_for_jitify(text) or any(map(_LEFT.search, every)):
            return None
        if not all(PLAIN.fullmatch(option) for option in every if not option.startswith("-D")):
            return None
        return self._compile(name, text, every)[0]

    def _with_header(self, header: Header, name: str, defined: str, rest: str, use: tuple[str, ...]) -> Any:
        """Compile a program with the header; set `log` to NVRTC's log if Jitify would refuse the program."""
        program, _ = self._compile(name, f"{PREFIX}{defined}{rest}", use)
        if program is not None or header.log is None or not self._refusal or "pragma" in rest:
            return program
        # As Jitify compiles it: one line further down.
        program, log = self._compile(name, f"{PREFIX}{defined}#line 3\n{rest}", use)
        if program is not None:
            self._nvrtc.destroyProgram(program)
        elif "precompiled header" not in log and not (defined and "declared at line" in log):
            self.log = behind(header.log, log)
        return None

    def _compile(self, name: str, source: str, options: tuple[str, ...]) -> tuple[Any, str]:
        """Return the compiled program, or None and the log if NVRTC refuses it."""
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
    """Return whether a program is equivalent for Jitify and CuPy, although Jitify compiles it one line further down."""
    joined = text.replace("\\\n", "")
    if not text.startswith(PREFIX) or _LEFT.search(joined) or _JOINED.search(text):
        return False
    return len(_PRAGMA.findall(joined)) == len(_UNROLL.findall(text))


def macros(text: str, options: Sequence[str], made_for: Sequence[str], words: Words) -> str | None:
    """Return the text between the header and a program that defines the macros in its options.

    Return None if that could change the program.

    Parameters
    ----------
    text : str
        The program.
    options, made_for : sequence of str
        The program's options, and the header's.
    words : Words
        The header's words.
    """
    if not same_for_jitify(text):
        return None
    definitions = [option for option in options if option.startswith("-D") and option != OWN_MACRO]
    if for_header([option for option in options if option not in definitions]) != for_header(made_for):
        return None
    if any(macro.startswith(OWN_MACRO) or _LEFT.search(macro) for macro in definitions):
        return None
    lines = lines_for(definitions, words)
    return f"{lines}#line 2\n" if lines else lines


_WORTH = 2
"""Minimum number of cells that share a header: creating one takes as long as a cell without it."""


class _Options(BaseException):
    """Leaves CuPy with the options that it passes to Jitify; CuPy's ``except Exception`` does not catch it."""

    def __init__(self, options: tuple[str, ...]) -> None:
        self.options = options


class Precompiled:
    """The precompiled headers of one fork server.

    Parameters
    ----------
    compiler, jitify : module
        ``cupy.cuda.compiler`` and ``cupy.cuda.jitify``.
    table : dict
        The headers that Jitify receives: texts by name.
    """

    def __init__(self, compiler: Any, jitify: Any, table: dict[bytes, bytes]) -> None:
        self._nvrtc, self._jitify = compiler.nvrtc, jitify
        self._names, self._texts = list(table), list(table.values())
        self._table = table
        self._store = Store()
        self._requests: Counter[str] = Counter()
        self._added: tuple[str, ...] | None = None
        self._has_learned = False
        self._refusal = ""
        self._in_vain: set[str] = set()
        self._compile("", "nothing.cu", (f"--pch-dir={self._store.folder}", "--pch"))

    @cached_property
    def words(self) -> Words:
        """Words of the table and of NVRTC's builtin headers; empty if the builtin headers are not found."""
        own = builtin()
        return Words([*own, *self._texts] if own else [])

    def ahead(
        self,
        job: Job,
        own_options: Sequence[str],
        alike: int,
        compile_job: Callable[[Job], None],
        pulse: Callable[[], None],
    ) -> None:
        """Create the header for a cell and all cells like it, if there are enough of them.

        Parameters
        ----------
        job : Job
            The cell.
        own_options : sequence of str
            The cell's own options, without macros and include directories.
        alike : int
            Number of following cells with the same options; 0 if unknown, negative to create nothing.
        compile_job : callable
            Compiles a job as a cell is compiled.
        pulse : callable
            Called repeatedly while a child runs.
        """
        key = _key(job)
        if job.definitions:
            _ = [name.encode() in self.words for name in job.definitions]  # done once here instead of in each cell
        if self._store.find(key):
            return
        if alike < 0 or key in self._in_vain or not all(map(PLAIN.fullmatch, own_options)):
            return
        self._requests[key] += 1
        blank = Job("headers", Path("headers.cu"), {}, {}, job.target, job.options, [])
        if not alike and self._requests[key] < _WORTH:
            if self._added is None and not self._has_learned:
                self._learn(blank, compile_job, pulse)
            return
        del self._requests[key]
        if not self._store.make(key, lambda folder: self._made(folder, blank, compile_job), pulse):
            self._in_vain.add(key)
            return
        if found := self._store.find(key):
            self._added, self._refusal = tuple(found[1]["added"]), found[1]["refusal"]

    def stand_before(self, compiler: Any, jitify: Any, job: Job) -> Program | None:
        """In a cell: compile its program once, with its header if there is one.

        Return None if Jitify's options are unknown.
        """
        if self._added is None:
            return None
        found = self._store.find(_key(job))
        header = Header(found[0], tuple(found[1]["options"]), found[1]["log"]) if found else None
        table, words = (self._texts, self._names), self.words if job.definitions else Words([])
        program = Program(self._nvrtc, jitify.jitify, header, self._added, self._refusal, table, words)
        jitify.jitify, compiler.nvrtc = program.jitify, program
        return program

    def _learn(self, blank: Job, compile_job: Callable[[Job], None], pulse: Callable[[], None]) -> None:
        """Find out which options Jitify adds, with an empty program; try only once."""
        self._has_learned = True

        def learned(folder: Path) -> dict[str, Any]:
            options = self._options(replace(blank, source=folder / blank.source, scratch=folder), compile_job)
            return {"added": self._added_by_jitify("", options)}

        try:
            with tempfile.TemporaryDirectory(dir=self._store.folder) as folder:
                reply = process_output.answer_of_helper(Path(folder), learned, pulse)
        except OSError:
            return  # no space on the device
        self._added = tuple(reply["added"]) if reply else None

    def _made(self, folder: Path, blank: Job, compile_job: Callable[[Job], None]) -> dict[str, Any] | None:
        """In a child: create a header, and return its properties."""
        blank = replace(blank, source=folder / blank.source, scratch=folder)
        options = self._options(blank, compile_job)
        plain = _without_folders(options)
        added = self._added_by_jitify(PREFIX, options) if self._added is None else self._added
        path, every = folder / "header.pch", (*plain, *added)
        if not all(map(PLAIN.fullmatch, every)):
            return None
        log = self._compile(PREFIX, "headers.cu", (*every, f"--create-pch={path}", SILENT))
        refusal = self._refusal
        if not refusal:
            # The first header is tested for use. If a later header cannot be used, NVRTC says so for each program, or
            # reads the includes instead.
            if "using precompiled header" not in self._compile(PREFIX, "headers.cu", (*every, f"--use-pch={path}")):
                return None
            refusal = self._refused(options)
        return {"options": plain, "added": added, "log": None if ONCE in log else log, "refusal": refusal}

    def _refused(self, options: tuple[str, ...]) -> str:
        """Return Jitify's message for a program that NVRTC refuses."""
        try:
            self._jitify.jitify("headers.cu\n#error\n", options)
        except RuntimeError as error:
            return str(error)
        return ""

    def _options(self, blank: Job, compile_job: Callable[[Job], None]) -> tuple[str, ...]:
        """Return the options that CuPy passes to Jitify for a cell's options, without the cell's macros."""
        blank.source.write_text("")
        real, known = self._jitify.jitify, self._added

        def leave(_source: str, options: tuple[str, ...]) -> None:
            raise _Options(tuple(options))

        self._jitify.jitify, self._added = leave, None  # so that no program is compiled early
        try:
            compile_job(blank)
        except _Options as found:
            return found.options
        finally:
            self._jitify.jitify, self._added = real, known
        raise RuntimeError("CuPy has not asked Jitify")

    def _added_by_jitify(self, text: str, options: tuple[str, ...]) -> tuple[str, ...]:
        """Return the options that Jitify adds."""
        plain = _without_folders(options)
        _, used, texts, names = self._jitify.jitify("headers.cu\n" + text, options)
        if tuple(used[: len(plain)]) != plain or dict(zip(names, texts)) != self._table:  # noqa: B905 (Python 3.9)
            raise RuntimeError(f"Jitify makes {used} of {options}")
        return tuple(used[len(plain) :])

    def _compile(self, source: str, name: str, options: Sequence[str]) -> str:
        """Compile a text and return the log."""
        program = self._nvrtc.createProgram(source, name, self._texts, self._names)
        try:
            self._nvrtc.compileProgram(program, tuple(options))
            return str(self._nvrtc.getProgramLog(program))
        finally:
            self._nvrtc.destroyProgram(program)


def begin(library: ctypes.CDLL, compiler: Any, jitify: Any, table: dict[bytes, bytes]) -> Precompiled | None:
    """Return the precompiled headers of this process; None if the table is empty or NVRTC does not support them."""
    if not table or not hasattr(library, "nvrtcGetPCHHeapSize"):
        return None
    try:
        return Precompiled(compiler, jitify, table)
    except (compiler.nvrtc.NVRTCError, OSError):
        return None  # for example, without memory


def _without_folders(options: Sequence[str]) -> tuple[str, ...]:
    """Return options without include directories, which Jitify does not pass on."""
    return tuple(option for option in options if not option.startswith("-I"))


def _key(job: Job) -> str:
    return json.dumps([job.target, header_options(job.options)], sort_keys=True, default=str)
