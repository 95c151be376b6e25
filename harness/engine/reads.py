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
"""Marks of a text that reads the time of compilation, the path of a file, or metadata of files and of the machine."""

LARGEST = 16 << 20
"""Size limit of a searched file in bytes. Sources and headers are smaller."""

# A first run searches thousands of files, and RE2 is a hundred times as fast here as Python's own engine.
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

# Options and their JSON values that write line information: -lineinfo, --generate-line-info, -G, -g, -ggdb and their
# names in cases.
_WITH_LINES = re.compile(r"line-?info|debug|(?<![\w-])-(?:G|g|ggdb\d?|g\d|gdwarf\S*|gline\S*)\b")


def marks_of(data: bytes, name: str) -> str:
    """Return the marks of a text.

    Parameters
    ----------
    data : bytes
        Content of the file. A NUL byte in the first 4096 bytes marks a binary file, which has no marks.
    name : str
        Name of the file; its suffix distinguishes Python from C++.
    """
    if b"\0" in data[:4096]:
        return ""
    python = name.endswith((".py", ".pyw"))
    if b"\\\n" in data and not python:
        data = data.replace(b"\\\n", b"")  # join continued lines
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
"""Device, inode, size, and times of modification and of change (ns): they change whenever the file changes.

For a directory whose names were listed, a sum over the names replaces the time of modification. The time of change
belongs to the kernel and cannot be set (https://man7.org/linux/man-pages/man7/inode.7.html, ctime).
"""

DIRECTORY: Signature = (0,)
"""State of a directory whose names were not listed."""

LINK = "link:"
"""Prefix of a symbolic link whose target path was read instead of the file behind it."""

TIMES = "times:"
"""Prefix of a path whose mode, owner, size and time of modification a program read instead of its content."""

BYTECODE = "pyc:"
"""Prefix of a bytecode cache with a recorded source: it counts only if Python loads it without checking the source."""

ASPECTS = (LINK, TIMES, BYTECODE)

# Virtual files of the kernel.
_SYSTEM = ("/proc/", "/sys/", "/dev/")
# A file system in memory with users' files.
_MEMORY_DISK = "/dev/shm/"  # noqa: S108 (the code only compares the path)
# Links from /proc and /dev to the root, the current folder or an open file of a process.
_OUT_OF_PROC = re.compile(r"/proc/([^/]+)(?:/task/[^/]+)?/(root|cwd|fd/[^/]+|map_files/[^/]+)(/.*)?|/dev/fd/[^/]+/.+")
_OWN_PROCESS = ("self", "thread-self")
# PEP 3147 (https://peps.python.org/pep-3147/).
_BYTECODE = re.compile(r"(.*/)__pycache__/([^/]+?)\.[a-z]+-?\d+[a-z]*(?:\.opt-\w+)?\.pyc(?:\.\d+)?")


_SIGNATURES: Mapping[str, Signature | None] = {"M": None, "k": None, "E": (), "D": DIRECTORY}
"""Signatures of records without numbers, by their kind."""

_ASPECT = {"K": LINK, "k": LINK, "T": TIMES}

# A program could write its own records.
_RECORD = re.compile(r"[RrMEDLKkTWXYBNA](?: -?\d{1,20}){5} ")


@dataclass(frozen=True)
class Reads:
    """Files that were opened or looked up.

    Parameters
    ----------
    states : Mapping[str, Signature or None]
        Signatures by absolute path, some with a prefix of `ASPECTS`; None for a missing file, empty if the file could
        not be examined.
    listed : frozenset of str
        Directories in `states` whose names were listed.
    unknown : str
        Reason why the reads may be incomplete; empty if they are complete.
    """

    states: Mapping[str, Signature | None] = field(default_factory=dict)
    listed: frozenset[str] = frozenset()
    unknown: str = ""


def is_system(path: str) -> bool:
    """Return whether a path, with or without an aspect, is a virtual file of the kernel; some of these never end."""
    path = os.path.normpath(plain(path)).replace("//", "/") + "/"
    return path.startswith(_SYSTEM) and not path.startswith(_MEMORY_DISK)


def reads_of(records: Sequence[str] | None, own: Iterable[str]) -> Reads:
    """Parse records into reads.

    Parameters
    ----------
    records : sequence of str or None
        Records from `harness.protocol.reads`; None if reads were not followed.
    own : iterable of str
        Folders of the worker and of cumatrix itself, with links resolved. Files in them are products, not inputs. A
        link from them to another folder counts as its target.
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
            return Reads(unknown="a record of the files that are read is invalid")
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
            # A link that is created there is a product; its target is not.
            if kind in "KkWA":
                continue
            path = os.path.realpath(path)
        of_system = f"{path}/".startswith(_SYSTEM) and not path.startswith(_MEMORY_DISK)
        if of_system or f"{path}/".startswith(apart) or path in written:
            continue
        if kind == "A":
            problem = f"a program asked for the attributes of {path}"
            continue
        if kind in "DMk" and path.endswith("/__pycache__"):  # Python creates it
            continue
        # Cells read mostly the same files: each name is stored once in a run of thousands.
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
    """Return a ``/proc`` path as every process sees it, and whether it differs between processes."""
    plain = "/" + os.path.normpath(path).lstrip("/")
    found = _OUT_OF_PROC.fullmatch(plain)
    if not found:
        return (plain if plain.startswith(_SYSTEM) else path), False
    process, link, rest = found[1], found[2], found[3]
    if process in _OWN_PROCESS and link == "root":
        return rest or "/", False
    # Files that the process opened itself are already recorded.
    opened = process in _OWN_PROCESS and link.startswith("fd/") and not rest
    return plain, not opened


def _without_bytecode(states: dict[str, Signature | None]) -> dict[str, Signature | None]:
    """Move bytecode caches with a recorded source under `BYTECODE`; Python rewrites outdated ones."""
    found: dict[str, Signature | None] = {}
    for path, signature in states.items():
        cached = _BYTECODE.fullmatch(path) if "/__pycache__/" in path else None
        if cached and states.get(f"{cached[1]}{cached[2]}.py"):
            found[sys.intern(BYTECODE + path)] = ()
        else:
            found[path] = signature
    return found


def plain(path: str) -> str:
    """Return a path without its aspect prefix."""
    for aspect in ASPECTS:
        if path.startswith(aspect):
            return path.removeprefix(aspect)
    return path


@lru_cache(1 << 13)
def _parsed(record: str) -> tuple[str, str, Signature | None] | None:
    """Return kind, path and signature; None for an invalid record. Cached, as most cells read the same files."""
    if not _RECORD.match(record):
        return None
    kind, *numbers, path = record.split(" ", 6)
    return kind, path, _SIGNATURES[kind] if kind in _SIGNATURES else tuple(map(int, numbers))
