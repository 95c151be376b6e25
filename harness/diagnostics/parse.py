"""Logs of NVRTC, nvcc, ptxas, nvJitLink and Numba to diagnostics."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePath

from harness.diagnostics.lines import LogLine, read_lines
from harness.model import Diagnostic
from harness.protocol.text import one_line

_MAX = 40
_RANK = {"fatal": 0, "error": 0, "warning": 2, "remark": 3, "note": 4}
_SUMMARY = 1


def parse_log(log: str, source: str = "") -> tuple[Diagnostic, ...]:
    """Diagnostics of a log, most telling first.

    Errors come before warnings, in their order; summaries, such as ``Ptx assembly aborted due to errors``,
    comes after the errors that it sums up.

    Parameters
    ----------
    log : str
        What the tool printed.
    source : str
        File name of the program, or its path in a project, as all files of it are then named; temporary names of it in the log are written so.
    """
    said = (line for line in read_lines(log) if line.place or line.severity != "note")
    found = [_diagnostic(line, source) for line in sorted(said, key=_rank)]
    return tuple(dict.fromkeys(found))[:_MAX]


def _rank(line: LogLine) -> int:
    rank = _RANK[line.severity]
    return _SUMMARY if line.summary and rank < _SUMMARY else rank


def _diagnostic(line: LogLine, source: str) -> Diagnostic:
    place = PurePath(line.file.strip())
    # A program of a project is named by its path there, and so are the files next to it.
    name = (
        place.name
        if "/" not in source or place.is_absolute() or place.parts[:1] in (("..",), ("$CUDA_HOME",))
        else str(place)
    )
    if source and (
        (place.suffix in (".cu", ".ptx", ".cubin") and "tmp" in line.file)
        or re.fullmatch(r"[0-9a-f]{20,}\.\w+(?:\.\w*)?", place.name)
    ):
        name = source
    return Diagnostic(
        severity=line.severity,
        code=line.code.lstrip("#"),
        message=one_line(line.message),
        file=name,
        line=int(line.place) if line.place else None,
        fingerprint=fingerprint(line.severity, one_line(line.head)),
    )


def fingerprint(severity: str, message: str) -> str:
    """Hash of what stays of a message when paths, quoted names, addresses and decimal numbers go."""
    text = re.sub(r"/\S+/", "", message)
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`', '""', text)
    text = re.sub(r"0x[0-9a-fA-F]+|\b\d+\b", "N", text)
    return hashlib.sha256(f"{severity}:{text}".encode()).hexdigest()[:16]
