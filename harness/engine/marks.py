"""Words in programs and headers that make an outcome depend on more than the content of files: the time, a path, a file's metadata.

As ccache does (https://ccache.dev/manual/latest.html#_how_ccache_works), the text is searched for the words and not parsed: one in a comment counts too.
"""

from __future__ import annotations

import re
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
