"""Files that a process read (recorded by ``native/reads.c``), and words in them that make an outcome unrepeatable."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import re2

TIME, PLACE, METADATA = "t", "p", "m"
"""Marks of a text: it names the time of compilation, the place of a file, or metadata of files and of the machine."""

LARGEST = 16 << 20
"""Size limit of a searched file in bytes. Sources and headers are smaller."""

# Thousands of files are searched before a first run: RE2 is a hundred times as fast here as Python's own engine.
_OPTIONS = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1


def _compiled(text: bytes) -> Any:
    return re2.compile(text, _OPTIONS)


_TIME = _compiled(rb"__(?:TIME|DATE|TIMESTAMP)__")
_PLACE = _compiled(
    rb"__(?:BASE_)?FILE(?:_NAME)?__|__builtin_(?:FILE|source_location)|\bsource_location\b|\b(?:assert|__assert_fail|__assertfail)\b"
    rb"|include\w*[ \t(]*[\"<]/"
)
_PLACE_IN_PYTHON = _compiled(
    rb"__file__|__path__|__cached__|__spec__|\bco_filename\b|\binspect\b|\btraceback\b|\b_getframe\b|\blinecache\b|\bsys\.(?:argv|path)\b|\blineinfo\b"
    rb"|\bdebug\b|\b(?:abspath|realpath|resolve|absolute|importlib)\b|[\"']/\w"
)
_METADATA = _compiled(
    rb"\bst_(?:mode|uid|gid|[amc]time)|\bl?stat\(|\.stat\b|\bget[acm]time\b|\bxattr|\b(?:get|list)xattr|\bsamestat\b|\bowner\(|\bos\.access\b"
    rb"|\bumask\b|\baffinity|\bcpu_count\b|\bnice\(|getpriority|getscheduler|getloadavg|hostname|\bgetnode\b|\buname\b|\bsocket\b|/proc/|/sys/|\bsysconf\b"
    rb"|\bget(?:e|res)?[ug]id\b|\bgetlogin\b|\bgetcwd\b|\bPath\.cwd\b|\bgettempdir\b|\bgetpid\b|\bsyscall\b|\bCDLL\b"
)

# Of options and their values in JSON: -lineinfo, --generate-line-info, -G, -g, -ggdb and what cases call them.
_WITH_LINES = re.compile(r"line-?info|debug|(?<![\w-])-(?:G|g|ggdb\d?|g\d|gdwarf\S*|gline\S*)\b")


def marks_of(data: bytes, name: str) -> str:
    """The marks of a text.

    Parameters
    ----------
    data : bytes
        The content of the file; one that holds a NUL byte early is no text and has no marks.
    name : str
        The name of the file, which tells Python from C++.
    """
    if b"\0" in data[:4096]:
        return ""
    python = name.endswith((".py", ".pyw"))
    if b"\\\n" in data and not python:
        data = data.replace(b"\\\n", b"")  # a line that goes on in the next one
    found = TIME if _TIME.search(data) else ""
    if (_PLACE_IN_PYTHON if python else _PLACE).search(data):
        found += PLACE
    if python and _METADATA.search(data):
        found += METADATA
    return found


def observes_place(text: str) -> bool:
    """Return whether options or macros make a compiler write paths into its output."""
    return bool(_PLACE.search(text.encode()) or _WITH_LINES.search(text))


Signature = tuple[int, ...]
"""Device, inode, size, time of modification and of change (ns): a file that changes gets another one.

A directory whose names were listed has a sum over these in the place of its time of modification. The time of change is the kernel's own and cannot be set (https://man7.org/linux/man-pages/man7/inode.7.html, ctime).
"""

DIRECTORY: Signature = (0,)
"""State of a directory whose names were not listed."""

LINK = "link:"
"""Prefix of a symbolic link whose target was read, and not the file behind it."""

TIMES = "times:"
"""Prefix of a path whose mode, owner, size and time of modification a program asked for, rather than its content."""

BYTECODE = "pyc:"
"""Prefix of the path of a bytecode cache whose source was read too: it counts only if Python loads it without checking that source."""

ASPECTS = (LINK, TIMES, BYTECODE)

# The kernel's own files.
_SYSTEM = ("/proc/", "/sys/", "/dev/")
# A disk in memory, where people keep files as on any other.
_MEMORY_DISK = "/dev/shm/"  # noqa: S108 (its name is looked for; nothing is put there)
# Links that lead out of /proc and /dev, to the root, the current folder or an open file of a process.
_OUT_OF_PROC = re.compile(r"/proc/([^/]+)(?:/task/[^/]+)?/(root|cwd|fd/[^/]+|map_files/[^/]+)(/.*)?|/dev/fd/[^/]+/.+")
_OWN_PROCESS = ("self", "thread-self")
# PEP 3147 (https://peps.python.org/pep-3147/).
_BYTECODE = re.compile(r"(.*/)__pycache__/([^/]+?)\.[a-z]+-?\d+[a-z]*(?:\.opt-\w+)?\.pyc(?:\.\d+)?")


_SIGNATURES: Mapping[str, Signature | None] = {"M": None, "k": None, "E": (), "D": DIRECTORY}
"""Of what has no numbers of its own, by the kind of record."""

_ASPECT = {"K": LINK, "k": LINK, "T": TIMES}

# A program could write records of its own.
_RECORD = re.compile(r"[RrMEDLKkTWXYBNA](?: -?\d{1,20}){5} ")


@dataclass(frozen=True)
class Reads:
    """Files that were opened or looked for.

    Parameters
    ----------
    states : Mapping[str, Signature or None]
        Absolute paths, some of them after one of `ASPECTS`, with the signature of what was there: None where nothing was, empty where it could not be looked at.
    listed : frozenset of str
        Those of `states` that are directories whose names were listed.
    unknown : str
        Why this may not be all; empty where it is.
    """

    states: Mapping[str, Signature | None] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    unknown: str = ""


def is_system(path: str) -> bool:
    """Return whether a path, with or without an aspect, is one of the kernel's own: reading some of these never ends."""
    path = os.path.normpath(plain(path)).replace("//", "/") + "/"
    return path.startswith(_SYSTEM) and not path.startswith(_MEMORY_DISK)


def reads_of(records: Sequence[str] | None, own: Iterable[str]) -> Reads:
    """Make sense of records.

    Parameters
    ----------
    records : sequence of str or None
        As `harness.protocol.reads` hands them over; None where nothing was followed.
    own : iterable of str
        Folders that belong to the worker and to cumatrix itself, links resolved: what lies there is a product, not an
        input. A link from there to elsewhere counts as what it leads to.
    """
    if records is None:
        return Reads(unknown="the files that are read could not be followed")
    apart = tuple(folder.rstrip("/") + "/" for folder in own)
    states: dict[str, Signature | None] = {}
    listed, written = set(), set()
    begun, problem = 0, ""
    for record in records:
        parsed = _parsed(record)
        if parsed is None:
            return Reads(unknown="what was said of the files that are read is no record of it")
        kind, path, signature = parsed
        if kind in "XYB":
            begun += {"X": -1, "Y": 1, "B": 1}[kind]
            continue
        if kind == "N":
            problem = path.removeprefix("/")
            continue
        if "/proc/" in path or "/dev/" in path:
            path, elsewhere = _out_of_proc(path)
            if elsewhere and kind not in "KkW":
                problem = f"{path} was read, which leads to another place in each process"
        if f"{path}/".startswith(apart):
            # A link that is made there is a product, and what it leads to is none.
            if kind in "KkWA":
                continue
            path = os.path.realpath(path)
        of_system = f"{path}/".startswith(_SYSTEM) and not path.startswith(_MEMORY_DISK)
        if of_system or f"{path}/".startswith(apart) or path in written:
            continue
        if kind == "A":
            problem = f"a program asked for the attributes of {path}"
            continue
        if kind in "DMk" and path.endswith("/__pycache__"):  # Python makes it
            continue
        # Cells read much the same files: each name is kept once in a run of thousands.
        path = sys.intern(_ASPECT.get(kind, "") + path)
        if kind == "W":
            written.add(path)
            continue
        if kind == "r" and not _BYTECODE.fullmatch(path):
            problem = f"{path} was changed at the moment when it was read"
        before = states.get(path, signature)
        if kind == "L":
            listed.add(path)
        if before == DIRECTORY and kind == "L":
            before = signature
        elif before not in (signature, ()) and signature not in ((), DIRECTORY) and not _BYTECODE.fullmatch(path):
            problem = f"{path} changed while it was read"
        states[path] = before
    if begun < 0:
        problem = "a program was started that cannot be followed: it is linked statically and may not be traced, or drops its environment"
    return Reads(_without_bytecode(states), frozenset(listed), problem)


def _out_of_proc(path: str) -> tuple[str, bool]:
    """A path through ``/proc`` as every process sees it, and whether its place is unknown."""
    plain = "/" + os.path.normpath(path).lstrip("/")
    found = _OUT_OF_PROC.fullmatch(plain)
    if not found:
        return (plain if plain.startswith(_SYSTEM) else path), False
    process, link, rest = found[1], found[2], found[3]
    if process in _OWN_PROCESS and link == "root":
        return rest or "/", False
    # An open file of the process itself was followed when it was opened.
    opened = process in _OWN_PROCESS and link.startswith("fd/") and not rest
    return plain, not opened


def _without_bytecode(states: dict[str, Signature | None]) -> dict[str, Signature | None]:
    """Bytecode caches whose source was read, by `BYTECODE`: Python writes them again whenever they are out of date."""
    found: dict[str, Signature | None] = {}
    for path, signature in states.items():
        cached = _BYTECODE.fullmatch(path) if "/__pycache__/" in path else None
        if cached and states.get(f"{cached[1]}{cached[2]}.py"):
            found[sys.intern(BYTECODE + path)] = ()
        else:
            found[path] = signature
    return found


def plain(path: str) -> str:
    """A path without the aspect of it that counts."""
    for aspect in ASPECTS:
        if path.startswith(aspect):
            return path.removeprefix(aspect)
    return path


@lru_cache(1 << 13)
def _parsed(record: str) -> tuple[str, str, Signature | None] | None:
    """Kind, path and signature; None of what is no record. Cells read much the same files."""
    if not _RECORD.match(record):
        return None
    kind, *numbers, path = record.split(" ", 6)
    return kind, path, _SIGNATURES[kind] if kind in _SIGNATURES else tuple(map(int, numbers))
