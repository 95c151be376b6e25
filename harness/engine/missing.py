"""A header that is not found because the part of CUDA that it belongs to is not installed: no word on the program."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from harness.model import Outcome, Status, ToolkitRef
from harness.toolkits.parts import PARTS

# NVRTC and cudafe++; gcc; clang.
_NOT_FOUND = re.compile(
    r'(?:cannot|could not) open source file "([^"]+)"|^(\S+): No such file or directory$|\'([^\']+)\' file not found'
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)


def part_of(header: str) -> str | None:
    """The part of CUDA that a header belongs to, of those that a toolkit may lack (``parts.toml``)."""
    return next((name for name, part in PARTS.items() if any(fnmatchcase(header, item) for item in part.headers)), None)


def without_part(outcome: Outcome, ref: ToolkitRef, include: Iterable[Path], source: Path) -> Outcome:
    """The outcome; ``unavailable``, with what to do, where a header of a part was missing that is not installed.

    Parameters
    ----------
    outcome : Outcome
        What came of a cell.
    ref : ToolkitRef
        Its toolkit.
    include : iterable of Path
        The include directories of that toolkit's headers. A header that is there was not looked for there: that is a refusal.
    source : Path
        The program, whose other missing parts are told with the first.
    """
    first = next((item for item in outcome.diagnostics if item.severity in ("error", "fatal")), None)
    found = _NOT_FOUND.search(first.message) if first and outcome.status is Status.REJECTED else None
    if not found:
        return outcome
    header = next(filter(None, found.groups()))
    folders = list(include)
    if part_of(header) is None or _is_there(header, folders):
        return outcome
    named = [header, *(name for name in _INCLUDE.findall(_text(source)) if not _is_there(name, folders))]
    parts = list(dict.fromkeys(filter(None, map(part_of, named))))
    reason = f"{header} is a header of {parts[0]}, a part of CUDA that is not installed with {ref}"
    how = (
        f"add it to {ref.home}"
        if ref.local
        else f"run `cumatrix toolkits install {ref.headers} --with {','.join(parts)}`"
    )
    return replace(outcome, status=Status.UNAVAILABLE, stage=None, reason=f"{reason}: {how}")


def _is_there(header: str, folders: Iterable[Path]) -> bool:
    return any((folder / header).is_file() for folder in folders)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
