"""Precompiled headers: NVRTC reads the common first headers of programs once for many cells.

NVRTC 12.9 needs most of a second for ``#include <cooperative_groups.h>``, and a tenth of that for a kernel. If several
cells begin with the same ``#include <…>`` lines and use the same options, a child of the fork server compiles these
lines into a precompiled header, and the programs are compiled with it. NVRTC compares options and first lines with
those of the header and reports differences. Such a program is compiled again without the header.

Macros of a case are options, and the header would have to be compiled with them. Instead, they are defined after the
last of these lines, if they do not occur in the headers. If a program defines nothing with external linkage, NVRTC
derives the names of file-local entities from a hash. Such a program is compiled again, too.
``benchmarks/precompiled.py`` compares both ways.

A precompiled header is usable only if its memory has the same address as when it was made. All children of a fork
server inherit that address, after the fork server itself has compiled a program with precompiled headers.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.nvidia.includes import FirstIncludes, Words, defined, first_includes
from harness.protocol import process_output, reads
from harness.protocol.backend import Job, Setup
from harness.protocol.messages import header_options

SILENT = "--pch-messages=false"
ONCE = "Remark: The warnings can be suppressed"
"""NVRTC appends this to the first warning of a compilation: with such a header, it would apply to the program too."""
_OF_OPTIONS = re.compile(r"(?:nvrtc: .*\n)*")
_ARCHITECTURE = re.compile(r"(?:-arch=|--gpu-architecture=)(?:sm|compute)_(\d+[af]?)")
_RELOCATABLE = {"--device-c", "-dc", "--relocatable-device-code=true"}
_MOST = 2
"""Maximum number of headers of one fork server, the most recently used ones.

Each is a file of 10 to 120 MB, in memory if the temporary folder is. Cells with the same header run one after another.
"""
_ROOM = 1 << 30  # required free space in bytes
# NVRTC's builtin headers are texts in a library: their characters, and their minimum length.
_TEXT = bytes(byte in b"\t\n\v\f\r" or 32 <= byte < 127 for byte in range(256))
_LEAST = 200


class Store:
    """The precompiled headers of one fork server, with NVRTC's log of each.

    Raises
    ------
    OSError
        If there is no space for headers. NVRTC writes them through memory, and a full disk ends this process with
        SIGBUS.
    """

    def __init__(self) -> None:
        if not _has_room(tempfile.gettempdir()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
        self.folder = process_output.helper_folder()
        self._kept: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()

    def find(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """Return the file of a header and its log; None without a header."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def make(self, key: str, maker: Callable[[Path], dict[str, Any] | None], pulse: Callable[[], None]) -> bool:
        """Make a header in a child process.

        Parameters
        ----------
        key : str
            Key for `find`.
        maker : callable
            Called in the child with a new folder for ``header.pch``; returns the header's log, or None if the header is
            unusable.
        pulse : callable
            Called periodically.
        """
        while len(self._kept) >= _MOST:
            _, (gone, _) = self._kept.popitem(last=False)
            shutil.rmtree(Path(gone).parent, ignore_errors=True)
        try:
            if not _has_room(self.folder):
                return False
            folder = Path(tempfile.mkdtemp(dir=self.folder))
        except OSError:
            return False  # no space, as above
        reply = process_output.answer_of_helper(folder, maker, pulse)
        if reply is None:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        self._kept[key] = str(folder / "header.pch"), reply
        return True


def for_header(options: Sequence[str]) -> list[str]:
    """Return the options that a precompiled header depends on, with the architecture and relocatable code normalized.

    NVRTC compares options with those of a header and reports differences (CUDA 12.9 and 13.5 treat these as equal).
    """
    others: list[str] = []
    folded: dict[str, None] = {}
    for option in options:
        if found := _ARCHITECTURE.fullmatch(option):
            folded[f"--gpu-architecture={found[1]}"] = None
        elif option in _RELOCATABLE:
            folded["--device-c"] = None
        else:
            others.append(option)
    return [*others, *sorted(folded)]


def _has_room(folder: str | Path) -> bool:
    room = os.statvfs(folder)
    return room.f_bavail * room.f_frsize >= _ROOM


def behind(first_log: str, log: str) -> str:
    """Return NVRTC's log of a program as without a precompiled header.

    The header's log precedes the program's, without the messages on options that both have.
    """
    own = _OF_OPTIONS.match(first_log)
    return first_log + log.removeprefix(own[0] if own else "")


@cache
def builtin() -> list[bytes]:
    """Return NVRTC's builtin headers, which a macro on the command line also affects; empty if they are not found."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[5].strip() for line in maps if "/libnvrtc" in line}
        # NVRTC loads them with its first compilation, from its own folder.
        paths = {path.resolve() for each in loaded for path in Path(each).parent.glob("libnvrtc-builtins*")}
        return [text for path in sorted(paths) for text in _texts_in(path.read_bytes())]
    except OSError:
        return []


def _texts_in(data: bytes) -> list[bytes]:
    """Return ``re.findall(rb"[\\t\\n\\v\\f\\r -~]{200,}", data)``, ten times as fast."""
    marks, found = data.translate(_TEXT), []
    begin = marks.find(b"\1" * _LEAST)
    while begin >= 0:
        end = marks.find(b"\0", begin)
        end = len(data) if end < 0 else end
        found.append(data[begin:end])
        begin = marks.find(b"\1" * _LEAST, end)
    return found


PLAIN = re.compile(
    r"--std=c\+\+\d\d|(-arch=|--gpu-architecture=)(sm|compute)_\d+[af]?|-ftz=true|--device-c|-dc|--relocatable-device-code=true"
    r"|--use_fast_math|--device-as-default-execution-space|-default-device|-D\w+(=\w*)?|-I.*"
)
"""Options with which a program can be prepared.

Other options may write files, and the preparing process is unconfined. Line information depends on the compiled text.
"""
_BY_HASH = re.compile(rb"(?:_INTERNAL_|GLOBAL__N__)[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}_\d")
_NOT_USED = "precompiled header"  # NVRTC's message for an unusable header
_PLACED = "declared at line"  # NVRTC's message on a macro's definition; it has none for the command line
# A header saves each program this fraction of the header's own compile time, minus the time to load the header. Making
# a header costs these additional seconds, and the first header costs more. Without a measurement, a header is assumed
# to be cheap, because its programs may have to be compiled without it.
_SPARED, _TAKES, _OVERHEAD, _FIRST, _UNKNOWN = 0.7, 0.025, 0.05, 0.1, 0.2

Compile = Callable[[bytes, str, Sequence[str]], tuple[bool, str]]
"""Compiles a named text with options; returns whether it was built, and the log."""


class _Request(BaseException):
    """Carries the options that a library passes to NVRTC out of it; no ``except Exception`` catches this."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options = tuple(options)


@dataclass(frozen=True)
class Early:
    """A program prepared for compilation with a precompiled header.

    Parameters
    ----------
    text : bytes
        The program.
    options : tuple of str
        All options for NVRTC.
    log : str
        NVRTC's log of the header, which would precede the log of each program that includes it.
    defines : bool
        Whether the text contains macros of the command line.
    """

    text: bytes
    options: tuple[str, ...]
    log: str
    defines: bool

    def usable(self, log: str, made: bytes) -> bool:
        """Return whether the outcome equals that of the program without a header: `made` is its PTX, if it was built."""
        return _NOT_USED not in log and not (self.defines and _PLACED in log) and not _BY_HASH.search(made)


class Precompiled:
    """The precompiled headers of one fork server.

    Parameters
    ----------
    compile_program : callable
        Compiles a program with NVRTC.
    """

    def __init__(self, compile_program: Compile) -> None:
        self._compile = compile_program
        self._store: Store | None = None
        self._asking: bytes | None = None
        self._in_vain: set[str] = set()
        self._unplaced: set[tuple[Any, ...]] = set()
        self._took: dict[tuple[str, ...], float] = {}
        self._words: dict[tuple[str, ...], Words] = {}

    def ahead(
        self, setup: Setup, job: Job, alike: int, compile_job: Callable[[Job], None], pulse: Callable[[], None]
    ) -> None:
        """Make the header for a cell if enough similar cells follow.

        Parameters
        ----------
        setup, job
            The toolchain's setup and the cell's job.
        alike : int
            Number of following cells with the same header.
        compile_job : callable
            Compiles a job as cells are compiled.
        pulse : callable
            Called periodically.
        """
        found = _includes_of(setup, job) if reads.followed() else None
        if found is None:
            return
        key, macros = _key(job, found), (found.names, *sorted(job.definitions))
        if key in self._in_vain or macros in self._unplaced:
            return
        if not (self._store and self._store.find(key)) and not (
            self._worth(found, alike) and self._make(key, job, found, compile_job, pulse)
        ):
            return
        # Looked up once here instead of in each cell. Headers for different architectures are assumed to contain the
        # same words.
        if job.definitions and {name for name in job.definitions if name.encode() in self._words_of(key)}:
            self._unplaced.add(macros)

    def early(self, setup: Setup, job: Job, text: bytes, options: Sequence[str], macros: Sequence[str]) -> Early | None:
        """Return the program for compilation with its header; None without a header.

        Parameters
        ----------
        setup, job
            The toolchain's setup and the cell's job.
        text : bytes
            The program.
        options, macros : sequence of str
            All options for NVRTC, and the subset that defines the case's macros.
        """
        if self._asking is not None:
            if text == self._asking:
                raise _Request(options)
            return None
        found = _includes_of(setup, job, text) if self._store else None
        kept = self._store.find(_key(job, found)) if self._store and found else None
        if found is None or kept is None:
            return None
        path, log = kept
        rest = [option for option in options if option not in macros]
        given = [option for option in options if option in macros]
        # Without macros, words are not needed; looking them up would make each cell read the headers and NVRTC's
        # library.
        lines = defined(given, self._words_of(_key(job, found))) if given else ""
        if for_header(rest) != for_header(log["options"]) or lines is None or not _unchanged(log["files"]):
            return None
        if lines:
            lines += f"#line {found.lines + 1}\n"
        program = text.decode("utf-8")
        early = program[: found.end] + lines + program[found.end :]
        return Early(early.encode("utf-8"), (*rest, f"--use-pch={path}", SILENT), log["log"], bool(lines))

    def _worth(self, found: FirstIncludes, alike: int) -> bool:
        seconds = self._took.get(found.names, _UNKNOWN)
        costs = seconds + _OVERHEAD + (0 if self._store else _FIRST)
        return (alike + 1) * (_SPARED * seconds - _TAKES) > costs

    def _make(
        self, key: str, job: Job, found: FirstIncludes, compile_job: Callable[[Job], None], pulse: Callable[[], None]
    ) -> bool:
        try:
            if self._store is None:
                self._store = Store()
                self._compile(b"", "nothing.cu", (f"--pch-dir={self._store.folder}", "--pch"))
        except OSError:
            return False
        blank = replace(job, definitions={}, entries={}, stages=[], command=[], logs=[], notes=[])
        made = self._store.make(key, lambda folder: self._made(folder, blank, found, compile_job), pulse)
        if made and (kept := self._store.find(key)):
            self._took[found.names] = kept[1]["seconds"]
        else:
            self._in_vain.add(key)
        return made

    def _made(
        self, folder: Path, blank: Job, found: FirstIncludes, compile_job: Callable[[Job], None]
    ) -> dict[str, Any] | None:
        """In a child: make a header, check the first one for its includes, and return its options, files, time and log."""
        os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
        os.chdir(folder)
        records, path = folder / "reads", folder / "header.pch"
        blank = replace(blank, source=folder / blank.source.name, scratch=folder)
        blank.source.write_text(found.text, "utf-8")
        options = self._options(blank, compile_job)
        records.touch()
        if not all(map(PLAIN.fullmatch, options)) or not reads.send_to(records):
            return None
        started, name, text = time.process_time(), str(blank.source), found.text.encode("utf-8")
        built, log = self._compile(text, name, (*options, f"--create-pch={path}", SILENT))
        if not built or ONCE in log:
            return None
        seconds = time.process_time() - started
        files = _files(reads.without(records.read_bytes(), [folder]))
        if files is None:
            return None
        # Headers for other architectures are not checked again: if one is unusable, NVRTC reports that to each program,
        # or reads the includes.
        if found.names not in self._took:
            used = self._compile(text, name, (*options, f"--use-pch={path}"))[1]
            if "using precompiled header" not in used:
                return None
        return {"options": options, "files": files, "seconds": seconds, "log": log}

    def _options(self, blank: Job, compile_job: Callable[[Job], None]) -> tuple[str, ...]:
        self._asking = blank.source.read_bytes()
        try:
            compile_job(blank)
        except _Request as request:
            return request.options
        raise RuntimeError("NVRTC was not asked")

    def _words_of(self, key: str) -> Words:
        """Return the words of a header's files and of NVRTC's builtin headers; none without the builtin headers."""
        kept, own = self._store.find(key) if self._store else None, builtin()
        if kept is None or not own:
            return Words([])
        paths = tuple(path for path, signature in kept[1]["files"].items() if signature)
        if paths not in self._words:
            self._words[paths] = Words([*own, *(Path(path).read_bytes() for path in paths)])
        return self._words[paths]


def _includes_of(setup: Setup, job: Job, text: bytes | None = None) -> FirstIncludes | None:
    """Return the first includes of a program; None if it may include headers from outside of the toolkit."""
    if (
        job.together
        or job.include_next_to_source(setup)
        or not job.toolkit_include(setup)
        or job.source.suffix != ".cu"
    ):
        return None
    if any(flag.startswith("-I") for flag in job.options.get("flags", ())):
        return None
    try:
        return first_includes((job.source.read_bytes() if text is None else text).decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None  # compiling the cell reports the error


def _key(job: Job, found: FirstIncludes) -> str:
    return json.dumps([job.target, header_options(job.options), job.include, found.names], sort_keys=True, default=str)


def _files(records: bytes) -> dict[str, list[int] | None] | None:
    """Return the read files with their signatures, None for missing files and empty for folders.

    Return None if changes cannot be detected.
    """
    files: dict[str, list[int] | None] = {}
    for record in reads.unique(records):
        kind, *numbers, path = record.split(" ", 6)
        if kind not in "RMD":
            return None
        files[path] = None if kind == "M" else [] if kind == "D" else list(map(int, numbers))
    return files


def _unchanged(files: dict[str, list[int] | None]) -> bool:
    """Return whether files are unchanged; reading their state also records them as inputs of this process."""
    for path, before in files.items():
        try:
            found = os.stat(path)
        except OSError:
            if before is None:
                continue
            return False
        current = [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
        if before is None or (before and before != current):
            return False
    return True
