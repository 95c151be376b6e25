"""What CuPy puts before each program for Jitify, read by NVRTC once for many cells, as a precompiled header.

From 13.0 on that is ``#include <cupy/cuda_workaround.h>``: NVRTC 12.9 needs 0.6 s for it, and a program goes through it twice,
once by Jitify, which looks for missing headers by compiling, and once by CuPy. From CUDA 12.8 on NVRTC has precompiled headers
(https://docs.nvidia.com/cuda/nvrtc/index.html#precompiled-headers-pch). One is made for each set of options, in a child of the fork server,
out of the table of headers that every cell is given anyway. A cell then compiles its program with it, once. Where that
succeeds, Jitify has nothing to look for, and CuPy's own call of NVRTC is the same call: it is given this program. Where it
fails, Jitify runs as without this module: what NVRTC says of a program depends on how it came to it.

Macros of a case are options, which a precompiled header would have to have been made with. They are defined behind the header
instead: only those that occur nowhere in it. ``benchmarks/jitify.py`` and the tests hold both ways against each other.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from harness.backends.cupy.precompiled_program import OWN_MACRO, PREFIX, SILENT, Header, Program, words_of
from harness.protocol import own_folder
from harness.protocol.backend import Job

# Whatever else a case asks for may write files, and the child that makes a header is kept from nothing: it is never given it.
# Nor what Jitify takes for a library to link and keeps from its own compilation, as -lineinfo.
_PLAIN = re.compile(
    rf"--std=c\+\+\d\d|-arch=(sm|compute)_\d+|-ftz=true|--device-c|-dc|--relocatable-device-code=true"
    rf"|--use_fast_math|--device-as-default-execution-space|--pre-include=jitify_preinclude\.h|{OWN_MACRO}"
)
_WORTH = 2
"""A header takes as long as one cell without it: it is made for so many cells that ask for the same."""
_MOST = 2
"""Headers that one fork server has at a time, the ones used last; each is a file of 70 MB, in memory where the temporary folder is. Cells of one header come one after another."""
# Of the builtin headers, which are texts in a library of NVRTC.
_TEXT = re.compile(rb"[\t\n\v\f\r -~]{200,}")
_ROOM = 1 << 30  # bytes that have to be free where they are kept
_SECONDS = 30.0
_BEAT = 0.5  # seconds


class _Options(BaseException):
    """Leaves CuPy with the options that it gives to Jitify; no ``except Exception`` of CuPy's holds it up."""

    def __init__(self, options: tuple[str, ...]) -> None:
        self.options = options


class Precompiled:
    """The precompiled headers of one fork server.

    Parameters
    ----------
    compiler, jitify : module
        ``cupy.cuda.compiler`` and ``cupy.cuda.jitify``.
    table : dict
        The headers that Jitify is given, texts by name.
    """

    def __init__(self, compiler: Any, jitify: Any, table: dict[bytes, bytes]) -> None:
        self._nvrtc, self._jitify = compiler.nvrtc, jitify
        self._names, self._texts = list(table), list(table.values())
        self._table = table
        self._headers: OrderedDict[str, Header] = OrderedDict()
        self._asked_for: Counter[str] = Counter()
        self._added: tuple[str, ...] | None = None
        self._folder = own_folder.make()
        # The header can be used where its memory lies at the same place: all children have it from here.
        self._compile("", "nothing.cu", (f"--pch-dir={self._folder}", "--pch"))

    @cached_property
    def words(self) -> set[bytes]:
        """Every identifier in the table and in NVRTC's builtin headers that a macro could change; none where those are not found."""
        builtin = _builtin()
        return set().union(*map(words_of, [*self._texts, *builtin])) if builtin else set()

    def ahead(
        self,
        job: Job,
        asked: Sequence[str],
        alike: int,
        compile_job: Callable[[Job], None],
        pulse: Callable[[], None],
    ) -> None:
        """Make the header for a cell and all like it, when it is not the first of them.

        Parameters
        ----------
        job : Job
            The cell.
        asked : sequence of str
            Its own options, without macros and include directories beside it.
        compile_job : callable
            Compiles a job as cells are compiled.
        pulse : callable
            Called now and then.
        """
        key = _key(job)
        if job.definitions:
            _ = self.words  # once here, not in each cell
        if key in self._headers:
            self._headers.move_to_end(key)
            return
        self._asked_for[key] += 1
        if self._asked_for[key] != _WORTH:
            return
        if not all(map(_PLAIN.fullmatch, asked)):
            return
        while len(self._headers) >= _MOST:
            old, gone = self._headers.popitem(last=False)
            del self._asked_for[old]
            shutil.rmtree(Path(gone.path).parent, ignore_errors=True)
        try:
            room = os.statvfs(self._folder)
            if room.f_bavail * room.f_frsize < _ROOM:
                return
            folder = Path(tempfile.mkdtemp(dir=self._folder))
        except OSError:
            return  # no room, as above
        child = os.fork()
        if child == 0:
            blank = Job("headers", folder / "headers.cu", {}, {}, job.target, job.options, [], scratch=folder)
            self._make(folder, blank, compile_job)
        _wait(child, pulse)
        try:
            said = json.loads((folder / "made.json").read_text("utf-8"))
        except (OSError, ValueError):
            shutil.rmtree(folder, ignore_errors=True)
            return
        self._added = tuple(said["added"])
        self._headers[key] = Header(str(folder / "header.pch"), tuple(said["options"]))

    def stand_before(self, compiler: Any, jitify: Any, job: Job) -> Program | None:
        """In a cell: compile its program with its header where that is possible; None where there is no header for it."""
        header = self._headers.get(_key(job))
        if header is None or self._added is None:
            return None
        table, words = (self._texts, self._names), self.words if job.definitions else set()
        program = Program(self._nvrtc, jitify.jitify, header, self._added, table, words)
        jitify.jitify, compiler.nvrtc = program.jitify, program
        return program

    def _make(self, folder: Path, blank: Job, compile_job: Callable[[Job], None]) -> NoReturn:
        """In a child: make a header, see that it can be used, and write down what for."""
        try:
            options = self._options(blank, compile_job)
            plain = tuple(option for option in options if not option.startswith("-I"))
            added = self._asked(plain, options) if self._added is None else self._added
            path = folder / "header.pch"
            every = (*plain, *added)
            if all(map(_PLAIN.fullmatch, every)):
                self._compile(PREFIX, "headers.cu", (*every, f"--create-pch={path}", SILENT))
                use = (*every, f"--use-pch={path}")
                if "using precompiled header" in self._compile(PREFIX, "headers.cu", use):
                    made = {"options": plain, "added": added}
                    part = folder / "made.part"
                    part.write_text(json.dumps(made), "utf-8")
                    os.replace(part, folder / "made.json")
        except BaseException:  # noqa: BLE001 (cells of these options are compiled without a header then)
            traceback.print_exc()
        finally:
            os._exit(0)

    def _options(self, blank: Job, compile_job: Callable[[Job], None]) -> tuple[str, ...]:
        """What CuPy asks Jitify for with a cell's options, but for the cell's macros."""
        blank.source.write_text("")
        real = self._jitify.jitify

        def leave(_source: str, options: tuple[str, ...]) -> None:
            raise _Options(tuple(options))

        self._jitify.jitify = leave
        try:
            compile_job(blank)
        except _Options as found:
            return found.options
        finally:
            self._jitify.jitify = real
        raise RuntimeError("CuPy has not asked Jitify")

    def _asked(self, plain: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
        """Ask Jitify what it adds to options."""
        _, used, texts, names = self._jitify.jitify("headers.cu\n" + PREFIX, options)
        if tuple(used[: len(plain)]) != plain or dict(zip(names, texts)) != self._table:  # noqa: B905 (Python 3.9)
            raise RuntimeError(f"Jitify makes {used} of {options}")
        return tuple(used[len(plain) :])

    def _compile(self, source: str, name: str, options: Sequence[str]) -> str:
        """Compile, and return the log."""
        program = self._nvrtc.createProgram(source, name, self._texts, self._names)
        try:
            self._nvrtc.compileProgram(program, tuple(options))
            return str(self._nvrtc.getProgramLog(program))
        finally:
            self._nvrtc.destroyProgram(program)


def begin(library: ctypes.CDLL, compiler: Any, jitify: Any, table: dict[bytes, bytes]) -> Precompiled | None:
    """Precompiled headers of this process; None where there is nothing to make them of, or NVRTC has none."""
    if not table or not hasattr(library, "nvrtcGetPCHHeapSize"):
        return None
    try:
        return Precompiled(compiler, jitify, table)
    except (compiler.nvrtc.NVRTCError, OSError):
        return None  # no memory for it, for one


def _builtin() -> list[bytes]:
    """NVRTC's builtin headers, which a macro of a program's command line is in front of too."""
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split(maxsplit=5)[5].strip() for line in maps if "libnvrtc-builtins" in line}
        return [text for path in paths for text in _TEXT.findall(Path(path).read_bytes())]
    except OSError:
        return []


def _key(job: Job) -> str:
    return json.dumps([job.target, job.options], sort_keys=True, default=str)


def _wait(child: int, pulse: Callable[[], None]) -> None:
    """Wait for a child, and end it when it takes too long."""
    end, ended = time.monotonic() + _SECONDS, os.pidfd_open(child)
    while not select.select([ended], [], [], _BEAT)[0]:
        pulse()
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            break
    os.close(ended)
    os.waitpid(child, 0)
