"""Diagnostics from the logs of NVRTC, nvcc, ptxas, nvJitLink and Numba."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import PurePath

from harness.model import Diagnostic
from harness.protocol.text import clean, no_command, one_line

_WIDTH = 4000
_SEVERITY = {
    "catastrophic error": "fatal",
    "fatal error": "fatal",
    "internal compiler error": "fatal",
    "internal error": "fatal",
    "info": "note",
}

# A log is hostile text. To avoid backtracking, every repetition below is bounded or possessive (`*+`).
_CODE = r"(?P<code>#?(?=[\w-]*\d)[\w-]++)"

# kernel.cu(12): error #1234-D: message      kernel.cu:12:5: error: message      kernel.cu(2): Error: Formal parameter space …
_PLACED = re.compile(
    r"^(?P<file>[^\s(](?:[^(\n]|\(x86\)){0,400}?)(?:\((?P<line>\d{1,9})(?:,\d{1,9})?\)|:(?P<line2>\d{1,9})(?P<column>:\d{1,9})?)\s*+:\s*"
    r"(?P<severity>catastrophic error|fatal error|internal compiler error|internal error|error|warning|remark|note)\s*+"
    rf"(?:{_CODE}\s*+)?:\s*(?P<message>.+)$",
    re.IGNORECASE,
)
# nvc++: "kernel.cpp", line 12: error: message
_QUOTED = re.compile(
    r'^"(?P<file>[^"\n]{1,400})", line (?P<line>\d{1,9}): (?P<severity>catastrophic error|error|warning|remark)\s*+'
    rf"(?:{_CODE}\s*+)?: (?P<message>.+)$"
)
# ptxas kernel.ptx, line 5; error   : message
_PTX_LINE = re.compile(
    r"^(?P<tool>ptxas|nvlink)\s+(?P<file>\S.{0,400}?), line (?P<line>\d{1,9});\s*(?P<severity>error|warning|fatal)\s*:\s*(?P<message>.+)$"
)
# ptxas fatal   : message      nvrtc: error: message      error   : message      At end of source: error: message
_BARE = re.compile(
    r"^(?:(?P<tool>ptxas|nvlink|nvrtc|nvcc|cudafe\+\+|cicc|nvvm|fatbinary)(?::\s*|\s+)|At end of source:\s*|Command-line\s+(?=error))?"
    r"(?P<severity>catastrophic error|fatal error|fatal|error|warning|remark|note)\s*+"
    rf"(?:{_CODE}\s*+)?:\s*(?P<message>.+)$",
    re.IGNORECASE,
)
# /usr/bin/g++-12: fatal error: message      cc1plus: error: message      collect2: error: message      /usr/bin/ld: error: message
_HOST = re.compile(
    r"^(?P<tool>\S{0,300}?(?:gcc|g\+\+|c\+\+|clang|clang\+\+|zig|cc1|cc1plus|cc|collect2|as|ld|ld\.gold|ld\.lld|lld)(?:-[\d.]+)?): "
    r"(?P<severity>fatal error|internal compiler error|error|warning): (?P<message>.+)$"
)
# a.obj : error LNK2001: message      c1xx : fatal error C1083: message
# The message keeps the code, because the code is the same in every display language.
_MSVC = re.compile(
    r"^(?P<file>[^\s:(][^:(\n]{0,300}?) : (?P<severity>fatal error|error|warning) (?P<message>(?P<code>LNK\d{4}|C\d{4}): .+)$"
)
_CL = re.compile(r"C\d{4}")
# The linker names no severity: a.cpp:(.text+0x8b): undefined reference to `f()'
_LINK = re.compile(
    r"^(?:[^\n]{0,600}?:\s?)?(?P<message>(?:undefined reference to |multiple definition of |cannot find -l|relocation (?:R_X86_64_|truncated to fit: )"
    r"|undefined symbol: |DSO missing from |hidden symbol )[^\n]*)$"
)
# /bin/sh: 1: nvcc: not found      make: nvcc: No such file or directory
_SHELL = re.compile(
    r"^\S{0,100}?(?:sh|make|env)(?:\[\d+\])?: (?:(?:line )?\d+: )?[^\s:]{1,300}: "
    r"(?:command not found|not found|No such file or directory|Command not found|Permission denied)\s*$"
)
# CMake Error at CMakeLists.txt:3 (project):, with the message on the lines below
_CMAKE = re.compile(
    r"^CMake (?P<severity>Error|Warning)(?: (?:at|in) (?P<file>(?:[A-Za-z]:)?[^\n:]{1,400})(?::(?P<line>\d{1,9}) \(\w+\))?)?:?$"
)
# Messages of compiler back ends without a severity.
_PLAIN = re.compile(
    r"^(?:LLVM ERROR: .+|Broken module found, compilation aborted!.*|terminate called after throwing .+)$"
)
# NumbaError classes and other exceptions of Python: `LoweringError: Failed in cuda mode pipeline …`
_PYTHON = re.compile(
    r"^(?P<name>(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit|Interrupt|Iteration)): ?(?P<message>.*)$"
)

# Messages that a tool prints after the actual error.
_SUMMARY = re.compile(
    r"Ptx assembly aborted due to errors|compilation (?:terminated|aborted)\.?$|(?<!\d)\d++ (?:catastrophic )?errors? detected in the compilation"
    r"|ld returned \d+ exit status|merge_elf failed|Error limit reached|linker command failed|link failed|final link failed"
    r"|too many errors emitted|nvvmCompileProgram returned|Error building extension|Error compiling objects for extension"
    r"|(?<!'cl'\]' )returned non-zero exit status|failed with exit (?:code|status)|subcommand failed|^make(?:\[\d+\])?: \*\*\*"
    r"|is not able to compile a simple test program|Compiling the CUDA compiler identification source file|could not compile `|Failed building wheel|metadata-generation-failed|subprocess-exited-with-error|^JIT the PTX|^NVRTC_ERROR_COMPILATION|^nvJitLinkError: ERROR_PTX_COMPILE",
    re.IGNORECASE,
)  # fmt: skip
# Lines that continue the message above them.
_TYPES = re.compile(r"^\s{4,}((?:argument|operand) types are: .+|object type is: .+)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """A message of a log.

    Parameters
    ----------
    number : int
        Line number in the log, from 1.
    severity : str
        ``fatal``, ``error``, ``warning``, ``remark`` or ``note``.
    message : str
        The text without severity, place and code, and with the argument types from the lines below.
    head : str
        The first line of `message`; the fingerprint is a hash of it.
    tool : str
        The tool, recognized by the form of the message: ``ptxas``, ``nvlink``, ``nvrtc``, ``nvcc``, ``gcc``, ``ld``, ``sh``, ``python``;
        ``edg`` for the front end that nvcc and NVRTC share.
    code, file : str
        Number of the warning; file as printed.
    place : str
        Line number in the file, or empty.
    summary : bool
        Whether the message only summarizes earlier errors.
    """

    number: int
    severity: str
    message: str
    head: str
    tool: str
    code: str = ""
    file: str = ""
    place: str = ""
    summary: bool = False


def read_lines(log: str) -> Iterator[LogLine]:
    """Yield the messages of a log that have a known form, in the order of the lines."""
    lines = [line[:_WIDTH].rstrip() for line in clean(log).splitlines()]
    for number, line in enumerate(lines, 1):
        # cuda.core prefixes the first line of the linker's log; earlier releases write "Linker" instead of "nvJitLink".
        text = line.removeprefix("nvJitLink error log: ").removeprefix("Linker error log: ")
        if text and (found := read_line(text, _beneath(lines, number), number)):
            yield found


def _beneath(lines: list[str], number: int) -> Iterator[str]:
    """Yield the 39 lines after line `number`, which may continue its message."""
    return (lines[place] for place in range(number, min(number + 39, len(lines))))


def read_line(text: str, after: Iterable[str] = (), number: int = 0) -> LogLine | None:
    """Parse up to 4000 characters of a line as a message; `after` are the lines below it."""
    text = text[:_WIDTH]
    if (
        match := _PLACED.match(text)
        or _QUOTED.match(text)
        or _PTX_LINE.match(text)
        or _HOST.match(text)
        or _BARE.match(text)
    ):
        return _message(match, after, number)
    if match := _LINK.match(text):
        message = match["message"]
        return LogLine(number=number, severity="error", message=message, head=message, tool="ld")
    if _SHELL.match(text):
        return LogLine(number=number, severity="error", message=text, head=text, tool="sh")
    if match := _CMAKE.match(text):
        message = " ".join(_following(line for line in islice(after, 12) if not line.strip() or line.startswith("  ")))
        severity = match["severity"].lower()
        return LogLine(number=number, severity=severity, message=message or text, head=message or text, tool="cmake",
                    file=match["file"] or "", place=match["line"] or "", summary=bool(_SUMMARY.search(message)))  # fmt: skip
    if _PLAIN.match(text) or (" Assertion `" in text and text.endswith("' failed.")):
        return LogLine(number=number, severity="error", message=text, head=text, tool="nvvm")
    if match := _PYTHON.match(text):
        name = match["name"].rpartition(".")[2]
        # Numba prints the message on the lines below the class, up to the first empty line or caret.
        following = list(islice(after, 11))
        # "Failed in cuda mode pipeline (step: …)" alone does not name the error; the next line does.
        inner = following[:1] if match["message"].startswith("Failed in ") else []
        parts = [match["message"], *map(str.strip, inner), *_following(following[len(inner) :])]
        message = f"{name}: {' '.join(parts)}"
        severity = "warning" if name.endswith("Warning") else "error"
        summary = bool(_SUMMARY.search(match["message"][:400]))
        return LogLine(number=number, severity=severity, message=message, head=message, tool="python", code=name, summary=summary)  # fmt: skip
    return None


def _message(match: re.Match[str], after: Iterable[str], number: int) -> LogLine:
    groups = match.groupdict()
    severity, text = groups["severity"].lower(), groups["message"]
    tool, bare = groups.get("tool") or "", match.re is _BARE
    if match.re is _HOST:
        tool = "ld" if re.search(r"(?:^|/)(?:ld|collect2|lld)", tool) else "gcc"
    elif match.re is _MSVC:
        tool = "ld" if groups["code"].startswith("LNK") else "gcc"
    elif match.re in (_PLACED, _QUOTED):
        tool = "gcc" if groups.get("column") or _CL.fullmatch(groups.get("code") or "") else "edg"
    head = f"{tool}: {text}" if bare and tool else text
    return LogLine(
        number=number,
        severity=_SEVERITY.get(severity, severity),
        message=head + (_types(after) if tool == "edg" or (bare and not tool) else ""),
        head=head,
        tool=tool.lower(),
        code=groups.get("code") or "",
        file=groups.get("file") or "",
        place=groups.get("line") or groups.get("line2") or "",
        summary=bool(_SUMMARY.search(text[:400])),
    )


def _types(after: Iterable[str]) -> str:
    """Return the types of arguments or operands that the front end prints below a message."""
    for line in after:
        if match := _TYPES.match(line[:_WIDTH]):
            return f"; {match[1].rstrip()}"
        if not line.startswith(" ") and not line.endswith(": here"):
            break
    return ""


def _following(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = line.strip()
        cut = line[:_WIDTH]
        other = _PYTHON.match(cut) or _PLACED.match(cut) or _BARE.match(cut) or line.startswith("ptxas ")
        if other or (set(text) <= set("^~- ") and text):
            return
        if text:
            yield text


_MAX = 40
_RANK = {"fatal": 0, "error": 0, "warning": 2, "remark": 3, "note": 4}
_SUMMARY_RANK = 1


def parse_log(log: str, source: str = "") -> tuple[Diagnostic, ...]:
    """Return at most 40 diagnostics of a log, the most informative first.

    Errors come before warnings, in the order of the log. Summaries, such as ``Ptx assembly aborted due to errors``, come after errors.

    Parameters
    ----------
    log : str
        The output of the tool.
    source : str
        File name of the program, which replaces the program's temporary names. If it is a path in a project, diagnostics name the
        project's other files by their paths, too.
    """
    lines = (line for line in read_lines(log) if line.place or line.severity != "note")
    found = [_diagnostic(line, source) for line in sorted(lines, key=_rank)]
    return tuple(dict.fromkeys(found))[:_MAX]


def _rank(line: LogLine) -> int:
    rank = _RANK[line.severity]
    return _SUMMARY_RANK if line.summary and rank < _SUMMARY_RANK else rank


def _diagnostic(line: LogLine, source: str) -> Diagnostic:
    place = PurePath(line.file.strip())
    # Files of a project keep their paths in the project.
    name = (
        place.name
        if "/" not in source or place.is_absolute() or place.parts[:1] in (("..",), ("$CUDA_HOME",), ("$ROCM_PATH",))
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
    """Return a hash of a message without paths, quoted names, addresses and decimal numbers."""
    text = re.sub(r"/\S+/", "", message)
    text = re.sub(r'"[^"]*"|\'[^\']*\'|`[^`]*`', '""', text)
    text = re.sub(r"0x[0-9a-fA-F]+|\b\d+\b", "N", text)
    return hashlib.sha256(f"{severity}:{text}".encode()).hexdigest()[:16]


_NUMBA = re.compile(
    r"(?:\w+Error|UnsupportedBytecode\w*): (?:Failed in \w+ mode pipeline|No implementation of function |Internal error at )"
)
_STEPS = re.compile(r"Failed in \w+ mode pipeline \(step: [^()]{1,200}\) ?")
# The text from here on: the typed call, and lines of the program.
_BEHIND = re.compile(r" (?:During: |File \"|There (?:is|are) \d+ candidate implementations?:)")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")
# Reasons for rejecting candidates. They can be nested; the innermost is the actual error.
_SPECIFIC = re.compile(r"^\s*(?:\w+Error): (.*)$")
_RAISED = re.compile(r"^\s*raised from ")
_PLACE = re.compile(r'\s*File "([^"\n]{1,400})", line (\d{1,9}):$')
# During: lowering "$58call.7 = call …" at d.py (5)
_DURING = re.compile(r"(\S{1,400}) \((\d{1,9})\)$")
_INSTALLED = re.compile(r"-packages[/\\]|^<")
_LINES, _LINE_WIDTH, _MOST = 2000, 4000, 12


def tells_most(message: str, log: str) -> str:
    """Shorten a message of Numba to its error.

    The result lacks the pipeline steps and includes the reason from deep in the log. Messages of other tools are returned unchanged.

    Parameters
    ----------
    message : str
        The message of a diagnostic of `harness.diagnostics.parse_log`.
    log : str
        The log of that diagnostic.
    """
    if not _NUMBA.match(message):
        return message
    name, _, words = message.partition(": ")
    core = _ADDRESS.sub("", _BEHIND.split(_STEPS.sub("", words).lstrip(), maxsplit=1)[0]).rstrip()
    reason = _reason(log) if core.startswith("No implementation of function ") else ""
    return one_line(f"{name}: {core}{': ' if reason else ''}{reason}") if core else message


def place_of(log: str) -> tuple[str, int] | None:
    """Return the file and line of a Numba error: the first place in the log that is not in an installed library."""
    return next(filter(None, map(_place, _lines(log))), None)


def _place(line: str) -> tuple[str, int] | None:
    match = _DURING.match(line.rpartition(" at ")[2]) if line.startswith("During: ") else _PLACE.match(line)
    return None if match is None or _INSTALLED.search(match[1]) else (match[1], int(match[2]))


def _lines(log: str) -> list[str]:
    return [line[:_LINE_WIDTH] for line in islice(clean(log).splitlines(), _LINES)]


def telling_part(message: str, log: str) -> str:
    """Return the lines of a log that `tells_most` and `place_of` read. A run keeps these lines of each record instead of whole logs."""
    if not _NUMBA.match(message):
        return ""
    return "\n".join([*_turned_down(log), *filter(_place, _lines(log))][: _MOST + 2])


def _turned_down(log: str) -> list[str]:
    """Return the lines with the reason for rejecting the first candidate, and the line that ends it; empty if only types mismatched."""
    lines = _lines(log)
    end = next((number for number, line in enumerate(lines) if _RAISED.match(line)), 0)
    starts = (number for number in range(end - 1, max(end - _MOST, -1), -1) if _SPECIFIC.match(lines[number]))
    start = next(starts, None)
    return [] if start is None else lines[start : end + 1]


def _reason(log: str) -> str:
    first, *others = _turned_down(log) or [""]
    match = _SPECIFIC.match(first)
    words = " ".join([match[1], *others[:-1]]) if match else ""
    return _ADDRESS.sub("", _BEHIND.split(_STEPS.sub("", one_line(words)), maxsplit=1)[0]).strip()


__all__ = [
    "LogLine",
    "clean",
    "no_command",
    "one_line",
    "parse_log",
    "place_of",
    "read_line",
    "read_lines",
    "telling_part",
    "tells_most",
]


@cache
def hint(text: str) -> None:
    """Print a hint to stderr, once per process."""
    print(no_command(f"cumatrix: {one_line(text, 2000)}"), file=sys.stderr)
