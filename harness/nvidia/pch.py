"""Precompiled headers: NVRTC reads the common first headers of programs once for many cells.

NVRTC 12.9 needs most of a second for ``#include <cooperative_groups.h>``, and a tenth of that for a kernel. Where several cells that differ by nothing else
than what follows begin with the same ``#include <…>`` lines, a child of the fork server compiles these lines alone, with the same options, into a precompiled
header (`harness.nvidia.pch`), and the programs are compiled with it. NVRTC itself holds options and first lines against those of the
header, and says so where they differ; such a program is compiled once more, without.

Macros of a case are options, which the header would have to have been made with. They are defined behind the last of these lines instead: only those
that occur nowhere in the headers. Names that NVRTC makes for what is local to a file come from a hash where the program defines nothing that others can see; such a program is compiled once more, too.
``benchmarks/precompiled.py`` holds both ways against each other.

A precompiled header can be used where its memory lies at the same place as when it was made. All children of a fork server have
that place from it, once it has compiled anything with precompiled headers itself.
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
"""Headers that one fork server has at a time, the ones used last; each is a file of 10 to 120 MB, in memory where the temporary folder is. Cells of one header come one after another."""
_ROOM = 1 << 30  # bytes that have to be free where they are kept
# Of the builtin headers, which are texts in a library of NVRTC: what they are written in, and how long they are at least.
_TEXT = bytes(byte in b"\t\n\v\f\r" or 32 <= byte < 127 for byte in range(256))
_LEAST = 200


class Store:
    """The precompiled headers of one fork server, each with what its maker has said of it.

    Raises
    ------
    OSError
        Where there is no room for headers. NVRTC writes them through memory, and ends this process with SIGBUS where the disk is full.
    """

    def __init__(self) -> None:
        if not _has_room(tempfile.gettempdir()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
        self.folder = process_output.helper_folder()
        self._kept: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()

    def find(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """The file of a header and its log; None without one."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def make(self, key: str, maker: Callable[[Path], dict[str, Any] | None], pulse: Callable[[], None]) -> bool:
        """Have a child make a header.

        Parameters
        ----------
        key : str
            What it is found by.
        maker : callable
            Called in the child with a new folder, where it leaves ``header.pch``; it returns the header's log, or None if the header is unusable.
        pulse : callable
            Called now and then.
        """
        while len(self._kept) >= _MOST:
            _, (gone, _) = self._kept.popitem(last=False)
            shutil.rmtree(Path(gone).parent, ignore_errors=True)
        try:
            if not _has_room(self.folder):
                return False
            folder = Path(tempfile.mkdtemp(dir=self.folder))
        except OSError:
            return False  # no room, as above
        reply = process_output.answer_of_helper(folder, maker, pulse)
        if reply is None:
            shutil.rmtree(folder, ignore_errors=True)
            return False
        self._kept[key] = str(folder / "header.pch"), reply
        return True


def for_header(options: Sequence[str]) -> list[str]:
    """The options that a precompiled header depends on: how often, where and in which spelling the architecture and relocatable code appear does not matter.

    NVRTC itself holds options against those of a header, and says so where they differ (CUDA 12.9 and 13.5 take these for the same).
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
    """NVRTC's log of a program as it is without a precompiled header: `log`, behind what was `said` of the header, but for what NVRTC says of its options in both."""
    own = _OF_OPTIONS.match(first_log)
    return first_log + log.removeprefix(own[0] if own else "")


@cache
def builtin() -> list[bytes]:
    """NVRTC's builtin headers, which a macro of a program's command line is in front of too; empty where they are not found."""
    try:
        with open("/proc/self/maps") as maps:
            loaded = {line.split(maxsplit=5)[5].strip() for line in maps if "/libnvrtc" in line}
        # NVRTC loads them when it compiles first: they are in its folder.
        paths = {path.resolve() for each in loaded for path in Path(each).parent.glob("libnvrtc-builtins*")}
        return [text for path in sorted(paths) for text in _texts_in(path.read_bytes())]
    except OSError:
        return []


def _texts_in(data: bytes) -> list[bytes]:
    """Equivalent to ``re.findall(rb"[\\t\\n\\v\\f\\r -~]{200,}", data)``, ten times as fast."""
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
"""Options that allow preparing a program: any other option may write files, and the preparing process is unconfined; line information depends on the compiled text."""
_BY_HASH = re.compile(rb"(?:_INTERNAL_|GLOBAL__N__)[0-9a-f]{8}_\d+_\w+?_[0-9a-f]{8}_\d")
_NOT_USED = "precompiled header"  # in what NVRTC says where a header does not fit
_PLACED = "declared at line"  # of a macro: where it was defined, which is not said of the command line
# A header saves each program this share of its own compile time, minus the time to load it. Making a header costs these additional seconds, and the
# first one more. Without a measurement, a header is assumed to be cheap, because its programs may have to be compiled without it.
_SPARED, _TAKES, _OVERHEAD, _FIRST, _UNKNOWN = 0.7, 0.025, 0.05, 0.1, 0.2

Compile = Callable[[bytes, str, Sequence[str]], tuple[bool, str]]
"""Compiles a text of a name with options; whether it was built, and the log."""


class _Request(BaseException):
    """Leaves a library with the options that it gives to NVRTC; no ``except Exception`` holds it up."""

    def __init__(self, options: Sequence[str]) -> None:
        self.options = tuple(options)


@dataclass(frozen=True)
class Early:
    """A program as it is compiled with a precompiled header.

    Parameters
    ----------
    text : bytes
        The program.
    options : tuple of str
        All that NVRTC is given.
    log : str
        What NVRTC said of the header, and would say of each program that includes it, before anything else.
    defines : bool
        Whether macros of the command line are in the text.
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
        NVRTC.
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
        """Make the header for a cell, where enough cells like it come next.

        Parameters
        ----------
        setup, job
            The toolchain's and the cell's.
        alike : int
            How many cells come next that ask for the same.
        compile_job : callable
            Compiles a job as cells are compiled.
        pulse : callable
            Called now and then.
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
        # Each is looked up once here, not in each cell. What occurs in headers for one architecture is taken to occur in those for the next.
        if job.definitions and {name for name in job.definitions if name.encode() in self._words_of(key)}:
            self._unplaced.add(macros)

    def early(self, setup: Setup, job: Job, text: bytes, options: Sequence[str], macros: Sequence[str]) -> Early | None:
        """The way to compile a program with its header; None without one.

        Parameters
        ----------
        setup, job
            The toolchain's and the cell's.
        text : bytes
            The program.
        options, macros : sequence of str
            All that NVRTC is to be given, and those of them that define the case's macros.
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
        # Words are not looked for where there is no macro: `ahead` has had no reason to either, and each cell would read headers and NVRTC's library.
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
        """In a child: make a header, see of the first one of its names that it can be used, and say what it was made for and of."""
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
        # One for another architecture was used before. Where this one cannot be, NVRTC says so to each program, or reads what it includes.
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
        """Those of the files of a header and of NVRTC's builtin headers; none where these are not found."""
        kept, own = self._store.find(key) if self._store else None, builtin()
        if kept is None or not own:
            return Words([])
        paths = tuple(path for path, signature in kept[1]["files"].items() if signature)
        if paths not in self._words:
            self._words[paths] = Words([*own, *(Path(path).read_bytes() for path in paths)])
        return self._words[paths]


def _includes_of(setup: Setup, job: Job, text: bytes | None = None) -> FirstIncludes | None:
    """Headers allowed in a precompiled one: the toolkit's, because a program's own could be anything."""
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
        return None  # the cell will tell


def _key(job: Job, found: FirstIncludes) -> str:
    return json.dumps([job.target, header_options(job.options), job.include, found.names], sort_keys=True, default=str)


def _files(records: bytes) -> dict[str, list[int] | None] | None:
    """The files read, with their signatures: none for missing ones, an empty one for folders. None if changes cannot be detected."""
    files: dict[str, list[int] | None] = {}
    for record in reads.unique(records):
        kind, *numbers, path = record.split(" ", 6)
        if kind not in "RMD":
            return None
        files[path] = None if kind == "M" else [] if kind == "D" else list(map(int, numbers))
    return files


def _unchanged(files: dict[str, list[int] | None]) -> bool:
    """Return whether files are unchanged. Looking at each also informs the follower of this process that it depends on them."""
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
