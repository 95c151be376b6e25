"""The messages of a log or a record in order of weight, with the tool that printed each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.backends import BACKENDS
from harness.diagnostics import LogLine, clean, one_line, read_line

_MAX_LOG = 2_000_000
_MOST_MESSAGES = 2000
_TEXT = 200_000
_RANK = {"fatal": 0, "error": 0, "": 1, "warning": 2, "remark": 2, "note": 2}

# Prefixes of lines: times of build services, docker's steps, margins of pytest and quotations, and prefixes of library logs.
_STAMP = re.compile(
    r"^(?:> ?)?(?:\((?:\w+ ){0,2}pid=\d+\) ?)?(?:"
    r"\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}\d(?:: [EWIF] \S{1,300}:\d+\] |Z? )"
    r"|\d\d:\d\d:\d\d |\[cmake\] |\d{1,3}>|(?:#\d+ )?\d+\.\d{1,3} |##\[(?:error|warning)\]"
    r"|(?:ERROR|WARNING|INFO) \d\d-\d\d [\d:]{8} \[[^\]\s]{1,300}\] "
    r"|[EWIF]\d{4} [\d:.]{8,20} {1,9}\d+ \S{1,300}:\d+\] (?:\[[\d/_]{1,30}\] ?)?"
    r")?(?: {0,12}E {3}){0,2}"
)
# A library's own warning precedes the error that stops the program, and is seldom its reason.
_NOTICE = re.compile(
    r"^(?:\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}\d: )?[WI](?:\d{4} [\d:.]{8,20} {1,9}\d+)? \S{1,300}:\d+\] "
    r"|^(?:\((?:\w+ ){0,2}pid=\d+\) ?)?\[?(?:INFO|DEBUG)\]?(?: \d\d-\d\d |[:\s])"
)
# Lines of the program, and the markers below them.
_SHOWN = re.compile(r"^\s*(?:\d+\s+)?\|(?:\s|$)|^[\s~]*\^[\s^~]*$")
# CMake probes libraries for a function, and writes each failure into CMakeError.log.
_PROBE = re.compile(
    r"\b(?:Check\w+|src)\.c:\S{0,60}:? undefined reference to .pthread_create\b|cannot find -lpthreads\b"
)
# A program that prints a compiler's log adds its own words before the first line.
_INNER = re.compile(r"\b(?:nvrtc: (?:fatal )?error|(?:ptxas|nvlink|nvcc) {1,3}(?:fatal|error) {0,5}): ")
_CARET = re.compile(r"^\s+[\^~][\s^~]*$")
# Lines without a known form that may contain an error. Printed commands do not.
_MAY_TELL = re.compile(
    r"error|fail|not |n't|cannot|unsupported|undefined|mismatch|missing|died|dumped|terminated|Killed|memory|requires|invalid|incompatible"
    r"|too |no |unable|unknown|deprecated|must |more than|insufficient|unresolved|unexpected|duplicate|overflow|broken|incomplete|older|newer"
    r"|denied|attempt|outside|redefin|sm_|bad input|declaration|aborted|ended by|asked for|suffix|silently|identifier|forward|once|lowering"
    r"|parse expected|feature|disabled|has a bug|ambiguous|only allowed|set to|compiled with|higher than|unreachable|only supports|mask|sure that|panicked|ADVANCED",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:\[\d+/\d+\]\s+)?(?:\S*/)?(?:nvcc|g?cc|[gc]\+\+|clang\S*|(?:x86_64|aarch64)\S*|cd|ninja|make|cmake|ld|ptxas|cicc|python\S*)\s.*\s-\w"
)
# A command names options; it reports no failure, wherever a build prints it.
_OPTIONS = re.compile(r"(?:^|\s)[\"'(]?-{1,2}[A-Za-z]")
_QUIET = re.compile(r"^(?:-- |Looking in |Collecting |Requirement already|copying |creating |running )|^\s*File \"")
# The next line shows the Python program.
_FRAME = re.compile(r"^\s*File \"[^\"\n]{1,400}\", line \d{1,9}, in ")

_SPEAKERS = {
    "nvcc": re.compile(r"tmpxft_|__attribute__\(\((?:global|device|shared|host)|\bnvcc\b(?! flag)|cudafe|\bcicc\b|\.cudafe1\.|building extension"),
    "nvrtc": re.compile(
        # nvcc's front end prints the preprocessed program, NVRTC prints the source.
        r"(?im)^\s(?>.*?__(?:global|device|shared)__\b).*+\n\s++\^|^\W{0,8}default_program\(\d|nvrtc|\bjit (?:mode|compile log)|cupy|jitify|no directories in search list|^\s{0,12}(?:[^\"\s][^\n]{0,400}?)?catastrophic error: cannot open source file|compileexception"
    ),
}  # fmt: skip
# Intel's compilers and Visual Studio's editor use the same front end as nvcc and NVRTC, and print the same messages.
_OTHER_FRONT_END = re.compile(
    r"(?m)^compilation aborted for \S{1,300} \(code \d|C/C\+\+\(\d{1,5}\)|^\s{0,12}E\d{4}\s|^\s{0,12}ic(?:c|pc|x): error"
)
_PREFIX = re.compile(r"^(ptxas|nvlink|nvrtc|nvcc|cudafe\+\+|cicc|nvvm): ", re.IGNORECASE)
# An unknown type causes errors in the text around it before the front end reports the type.
_STUMBLE = re.compile(r'attribute "__(?:global|device)__" does not apply here')
_NAMES_IT = re.compile(r'^identifier "[^"]+" is undefined|^name followed by|^texture is not a template|has no member')


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """A message, or a line that may contain one. `first` marks the first error that is not a summary, `notice` a library's warning."""

    message: str
    text: str
    severity: str = ""
    tool: str = ""
    file: str = ""
    number: int = 0
    first: bool = False
    notice: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The default tool of a log (``nvcc``, ``nvrtc``, ``numba``, ``other`` or empty), its text with and without stamps, and whether program lines are missing."""

    speaker: str
    text: str
    whole: str
    terse: bool


class Words(NamedTuple):
    """The searchable parts of a record. `diagnostics` has message, severity, file and line of each diagnostic."""

    case: str
    backend: str
    diagnostics: tuple[tuple[str, str, str, Any], ...]
    reason: str
    log: str
    built: bool


def words_of(record: Mapping[str, Any]) -> Words:
    """Return the searchable text of a record."""
    diagnostics = tuple(
        (item["message"], item["severity"], item.get("file", ""), item.get("line")) for item in record["diagnostics"]
    )
    built = record["status"] == "built"
    return Words(record.get("case", ""), record["backend"], diagnostics, record["reason"], record["log"], built)


def messages_of_record(words: Words) -> tuple[tuple[LogMessage, ...], Context]:
    """Return the text of a record's diagnostics and reason."""
    found, first = [], True
    hidden = _stumbles([(message, file, line) for message, _, file, line in words.diagnostics])
    for place, (message, severity, file, _) in enumerate(words.diagnostics):
        if place in hidden:
            continue
        match = _PREFIX.match(message)
        grave = severity in ("error", "fatal")
        found.append(LogMessage(message=one_line(message), text=message, severity=severity, file=file,
                         tool=match[1].lower() if match else "", first=first and grave))  # fmt: skip
        first = first and not grave
    if words.reason:
        found.append(LogMessage(message=one_line(words.reason), text=words.reason))
    found.sort(key=lambda each: _RANK.get(each.severity, len(_RANK)))
    messages = (message for message, *_ in words.diagnostics)
    text = "\n".join((words.case, words.backend, *messages, words.log[:_TEXT]))
    speaker = BACKENDS[words.backend].compiler if words.backend in BACKENDS else ""
    return tuple(found), Context(speaker=speaker, text=text, whole=text, terse=_terse(words.log))


def messages_in_log(log: str, speaker: str = "") -> tuple[tuple[LogMessage, ...], Context]:
    """Return the messages of a log: errors in order, unknown lines that may matter, then warnings."""
    whole = clean(log[:_MAX_LOG])
    printed = whole.splitlines()
    lines = [_STAMP.sub("", line, count=1) for line in printed]
    plain = [line[:4100].strip() for line in lines]
    # CMake quotes the compiler's messages below its own. CMake's count if the compiler's have no known cause.
    messages = [
        line for line in _messages(lines, plain) if isinstance(line, int) or not line.summary or line.tool == "cmake"
    ]
    heads = [line for line in messages if isinstance(line, LogLine) and not line.summary]
    places = _stumbles([(line.message, line.file, line.place) for line in heads])
    hidden = {heads[place].number for place in places}
    errors = (line.number for line in heads if line.severity in ("error", "fatal") and line.number not in hidden)
    first = next(errors, 0)
    found: dict[tuple[str, str], LogMessage] = {}
    for line in messages:
        if isinstance(line, LogLine):
            if line.number in hidden:
                continue
            severity = "" if line.summary else line.severity
            message = LogMessage(message=one_line(line.message, 4000), text=plain[line.number - 1], severity=severity, tool=line.tool,
                        file=line.file, number=line.number, first=line.number == first, notice=bool(_NOTICE.match(printed[line.number - 1])))  # fmt: skip
        else:
            severity = "error" if _INNER.search(plain[line]) else ""
            message = LogMessage(
                message=one_line(plain[line], 4000),
                text=plain[line],
                severity=severity,
                number=line + 1,
                notice=bool(_NOTICE.match(printed[line])),
            )
        found.setdefault((message.severity, message.message), message)
        if len(found) >= _MOST_MESSAGES:
            break
    text = "\n".join(lines)[:_TEXT]
    context = Context(speaker=speaker or _speaker(text), text=text, whole=whole[:_TEXT], terse=_terse(text))
    return tuple(sorted(found.values(), key=lambda each: _RANK[each.severity])), context


def _messages(lines: list[str], plain: list[str]) -> Iterator[LogLine | int]:
    """Return the messages, and the positions of other lines that may contain one."""
    # Logs repeat lines. A line without a form or a message is the same everywhere.
    silent: set[str] = set()
    for place, text in enumerate(plain):
        if not text or lines[place] in silent or _SHOWN.match(lines[place]) or _PROBE.search(text):
            continue
        margin = len(lines[place]) - len(lines[place].lstrip())
        after = (line[margin:] for line in lines[place + 1 : place + 40])
        if found := read_line(text[:4000], after, place + 1):
            yield found
        elif (
            (place + 1 < len(lines) and _CARET.match(lines[place + 1]))
            or (place and _FRAME.match(lines[place - 1]))
            or len(_OPTIONS.findall(text)) > 3
        ):
            continue
        elif _MAY_TELL.search(text) and not _COMMAND.match(text) and not _QUIET.match(lines[place]):
            yield place
        else:
            silent.add(lines[place])


def _stumbles(messages: Sequence[tuple[str, str, Any]]) -> set[int]:
    """Return the messages (with file and line) that follow from an unknown type in the same line of the program."""
    stumbled = {(file, line) for message, file, line in messages if _STUMBLE.search(message)}
    named = {(file, line) for message, file, line in messages if _NAMES_IT.search(message)} & stumbled
    return {
        number
        for number, (message, file, line) in enumerate(messages)
        if (file, line) in named and not _NAMES_IT.search(message)
    }


def _speaker(text: str) -> str:
    """Return the tool if exactly one is visible; ``other`` if it is not a CUDA tool."""
    if _OTHER_FRONT_END.search(text):
        return "other"
    visible = [name for name, pattern in _SPEAKERS.items() if pattern.search(text)]
    return visible[0] if len(visible) == 1 else ""


def _terse(log: str) -> bool:
    """Return whether a log shows no program lines."""
    return not re.search(r"^[^\S\n]+[\^~]", log[:_TEXT], re.MULTILINE)
