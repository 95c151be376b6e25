"""Compiled modules of what cells import: a cell may not write them beside the library, so its fork server has that done.

Otherwise each cell would compile again what the ones before it have imported, where the library's installer compiles nothing.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
import sys
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from harness.protocol import aside

_LIST = "imported"
_MOST, _MOST_MODULES = 1 << 20, 10_000  # bytes, and names
_SECONDS = 10.0
"""How long the next cell waits; modules that are left are compiled after it."""


def tell(scratch: Path, known: int) -> None:
    """In a cell: name the modules that have no compiled one, but for the first `known` of this process."""
    found = []
    # From the end: to pass a module by is to write to it, and each page that this process shares with its fork server would be copied.
    for module in list(islice(reversed(sys.modules.values()), max(0, len(sys.modules) - known))):
        spec = getattr(module, "__spec__", None)
        source, compiled = getattr(spec, "origin", None), getattr(spec, "cached", None)
        if source and compiled and source.endswith(".py") and not os.path.exists(compiled):
            found.append(source)
    if found:
        (scratch / _LIST).write_text("\n".join(found), "utf-8", "surrogateescape")


def modules_named_in(scratch: Path) -> list[str]:
    """In the fork server: sources that a cell has named, and that are modules which this process would import, too."""
    try:
        handle = os.open(scratch / _LIST, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    with open(handle, "rb", buffering=0) as file:
        try:
            text = file.read(_MOST) or b""
        except OSError:
            return []  # no plain file
    folders = tuple(os.path.realpath(folder) + os.sep for folder in sys.path if os.path.isdir(folder))
    told = dict.fromkeys(name for name in os.fsdecode(text).replace("\0", "\n").split("\n") if name.endswith(".py"))
    names = map(os.path.realpath, islice(told, _MOST_MODULES))
    return [name for name in names if name.endswith(".py") and name.startswith(folders)]


def compile_all(sources: Iterable[str]) -> None:
    """Compile them in a process of its own, so that nothing of it stays in this one."""
    child = os.fork()
    if child == 0:
        try:
            for source in sources:
                with suppress(Exception):  # a folder that may not be written, or no Python after all
                    if not os.path.exists(importlib.util.cache_from_source(source)):
                        py_compile.compile(source, doraise=True)
        finally:
            os._exit(0)
    aside.wait(child, seconds=_SECONDS)
