"""Logs of NVRTC, nvcc, ptxas, nvJitLink and Numba to diagnostics."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import PurePath

from harness.diagnostics.text import clean, one_line
from harness.model import Diagnostic

_MAX = 40
_RANK = {"fatal": 0, "error": 1, "warning": 2, "remark": 3, "note": 4}
_SEVERITY = {"catastrophic error": "fatal", "fatal error": "fatal", "fatal": "fatal", "info": "note"}

# kernel.cu(12): error #1234-D: message      kernel.cu:12:5: error: message       ptxas kernel.ptx, line 5; error   : message
_PLACED = re.compile(
    r"^(?P<file>[^\s(][^(\n]{0,400}?)(?:\((?P<line>\d+)\)|:(?P<line2>\d+)(?::\d+)?)\s*:\s*"
    r"(?P<severity>catastrophic error|fatal error|error|warning|remark|note)\s*(?P<code>#?[\w-]*\d[\w-]*)?\s*:\s*(?P<message>.+)$"
)
_PTX_LINE = re.compile(
    r"^(?:ptxas|nvlink)\s+(?P<file>\S.{0,400}?), line (?P<line>\d+);\s*(?P<severity>error|warning|fatal)\s*:\s*(?P<message>.+)$"
)
_BARE = re.compile(
    r"^(?:(?P<tool>ptxas|nvlink|nvrtc|nvcc|cudafe\+\+|cicc|nvvm)(?::\s*|\s+))?"
    r"(?P<severity>catastrophic error|fatal error|fatal|error|warning|remark)\s*(?P<code>#?[\w-]*\d[\w-]*)?\s*:\s*(?P<message>.+)$",
    re.IGNORECASE,
)
# NumbaError classes and other exceptions of Python: `LoweringError: Failed in cuda mode pipeline …`
_PYTHON = re.compile(
    r"^(?P<name>(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration)): ?(?P<message>.*)$"
)


def parse_log(log: str, source: str = "") -> tuple[Diagnostic, ...]:
    """Diagnostics of a log, most telling first: errors before warnings, as they came within each.

    Parameters
    ----------
    log : str
        What the tool printed.
    source : str
        File name of the program; temporary names of it in the log are written so.
    """
    found = sorted(_read(clean(log), source), key=lambda item: _RANK[item.severity])
    return tuple(dict.fromkeys(found))[:_MAX]


def _read(log: str, source: str) -> Iterator[Diagnostic]:
    lines = log.splitlines()
    for number, line in enumerate(lines):
        # cuda.core puts its own words before the first line of the linker's log.
        line = line.rstrip()[:4000].removeprefix("nvJitLink error log: ")
        if match := _PLACED.match(line) or _PTX_LINE.match(line) or _BARE.match(line):
            groups = match.groupdict()
            severity = groups["severity"].lower()
            place = groups.get("line") or groups.get("line2")
            tool = groups.get("tool")
            message = f"{tool}: {groups['message']}" if tool else groups["message"]
            yield _diagnostic(
                _SEVERITY.get(severity, severity),
                groups.get("code") or "",
                message,
                groups.get("file") or "",
                place,
                source,
            )
        elif match := _PYTHON.match(line):
            name = match["name"].rpartition(".")[2]
            # Numba puts the telling words on the lines after the class; they end at the first empty line or caret.
            following = lines[number + 1 : number + 12]
            # "Failed in cuda mode pipeline (step: …)" says nothing without the exception in it, which comes next.
            inner = following[:1] if match["message"].startswith("Failed in ") else []
            message = " ".join([match["message"], *map(str.strip, inner), *_following(following[len(inner) :])])
            severity = "warning" if name.endswith("Warning") else "error"
            yield _diagnostic(severity, name, f"{name}: {message}", "", None, source)


def _following(lines: list[str]) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        other = _PYTHON.match(line) or _PLACED.match(line) or _BARE.match(line) or line.startswith("ptxas ")
        if other or (set(text) <= set("^~- ") and text):
            return
        if text:
            yield text


def _diagnostic(severity: str, code: str, message: str, file: str, line: str | None, source: str) -> Diagnostic:
    name = PurePath(file.strip()).name
    if source and (
        (PurePath(name).suffix in (".cu", ".ptx", ".cubin") and "tmp" in file)
        or re.fullmatch(r"[0-9a-f]{20,}\.\w+\.?\w*", name)
    ):
        name = source
    message = one_line(message)
    return Diagnostic(
        severity=severity,
        code=code.lstrip("#"),
        message=message,
        file=name,
        line=int(line) if line else None,
        fingerprint=fingerprint(severity, message),
    )


def fingerprint(severity: str, message: str) -> str:
    """Hash of what stays of a message when paths, quoted names, addresses and decimal numbers go."""
    text = re.sub(r"/\S+/", "", message)
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`', '""', text)
    text = re.sub(r"0x[0-9a-fA-F]+|\b\d+\b", "N", text)
    return hashlib.sha256(f"{severity}:{text}".encode()).hexdigest()[:16]
