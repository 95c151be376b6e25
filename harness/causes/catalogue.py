"""The catalogue: from what a compiler said to its cause and remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from harness.backends import BACKENDS
from harness.diagnostics import LogLine, clean, one_line, read_line
from harness.model import Stage, Status
from harness.model.condition import Condition
from harness.plugins import plugged, refuse
from harness.records.record_names import facts_of
from harness.regex import Pattern, PatternError

_MAX_LOG = 2_000_000
_MAX_SAID = 2000
_TEXT = 200_000
_RANK = {"fatal": 0, "error": 0, "": 1, "warning": 2, "remark": 2, "note": 2}

# What build services put before a line: times, docker's steps, the margins of pytest, of a quotation, and of a library's log.
_STAMP = re.compile(
    r"^(?:> ?)?(?:\((?:\w+ ){0,2}pid=\d+\) ?)?(?:"
    r"\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}\d(?:: [EWIF] \S{1,300}:\d+\] |Z? )"
    r"|\d\d:\d\d:\d\d |\[cmake\] |\d{1,3}>|(?:#\d+ )?\d+\.\d{1,3} |##\[(?:error|warning)\]"
    r"|(?:ERROR|WARNING|INFO) \d\d-\d\d [\d:]{8} \[[^\]\s]{1,300}\] "
    r"|[EWIF]\d{4} [\d:.]{8,20} \d+ \S{1,300}:\d+\] (?:\[[\d/_]{1,30}\] ?)?"
    r")?(?: {0,12}E {3}){0,2}"
)
# Lines that show the program, and the marks beneath them.
_SHOWN = re.compile(r"^\s*(?:\d+\s+)?\|(?:\s|$)|^[\s~]*\^[\s^~]*$")
_CARET = re.compile(r"^\s+[\^~][\s^~]*$")
# Lines without a known form that may say what went wrong; commands that are shown do not.
_MAY_TELL = re.compile(
    r"error|fail|not |n't|cannot|unsupported|undefined|mismatch|missing|died|dumped|terminated|Killed|memory|requires|invalid|incompatible"
    r"|too |no |unable|unknown|deprecated|must |more than|insufficient|unresolved|unexpected|duplicate|overflow|broken|incomplete|older|newer"
    r"|denied|attempted|outside|redefin|sm_|bad input|declaration|aborted|ended by|asked for|suffix|silently|identifier|forward|once"
    r"|feature|disabled|has a bug|ambiguous|only allowed|set to|mask|sure that|panicked|ADVANCED",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^(?:\[\d+/\d+\]\s+)?(?:\S*/)?(?:nvcc|g?cc|[gc]\+\+|clang\S*|x86_64\S*|cd|ninja|make|cmake|ld|ptxas|cicc|python\S*)\s.*\s-\w"
)
_QUIET = re.compile(r"^(?:-- |Looking in |Collecting |Requirement already|copying |creating |running )|^\s*File \"")

_SPEAKERS = {
    "nvcc": re.compile(r"tmpxft_|__attribute__\(\((?:global|device|shared|host)|\bnvcc\b(?! flag)|cudafe|\bcicc\b|\.cudafe1\.|building extension"),
    "nvrtc": re.compile(
        # nvcc's front end shows the program as the host's preprocessor leaves it, NVRTC as it was written.
        r"(?im)^\s(?>.*?__(?:global|device|shared)__\b).*+\n\s++\^|^\W{0,8}default_program\(\d|nvrtc|\bjit mode|cupy|jitify|no directories in search list|catastrophic error: cannot open source file|compileexception"
    ),
}  # fmt: skip
_PREFIX = re.compile(r"^(ptxas|nvlink|nvrtc|nvcc|cudafe\+\+|cicc|nvvm): ", re.IGNORECASE)

# An unknown type makes the front end stumble over everything around it before it says so.
_STUMBLE = re.compile(r'attribute "__(?:global|device)__" does not apply here')
_NAMES_IT = re.compile(r'^identifier "[^"]+" is undefined|^name followed by|^texture is not a template|has no member')

# A name that the host's compiler does not know, unless it is one of device code's own: patterns have it in nvcc's words.
_UNDECLARED = re.compile(
    r"^[`'‘](?P<name>(?!__(?!half|nv_))[\w:]{1,200})['’](?: was not declared in this scope|: undeclared identifier|: identifier not found)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LogMessage:
    """A message, or a line that may tell; `first` where it is the first error that is more than a summary."""

    message: str
    text: str
    severity: str = ""
    tool: str = ""
    file: str = ""
    number: int = 0
    first: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Context:
    """The default tool of a log (``nvcc``, ``nvrtc``, ``numba`` or empty), its words, and whether it shows no program."""

    speaker: str
    text: str
    terse: bool


class Words(NamedTuple):
    """The searchable parts of a record; `diagnostics` are message, severity, file and line of each."""

    case: str
    backend: str
    diagnostics: tuple[tuple[str, str, str, Any], ...]
    reason: str
    log: str
    built: bool


def words_of(record: Mapping[str, Any]) -> Words:
    """Searchable text of a record."""
    said = tuple(
        (item["message"], item["severity"], item.get("file", ""), item.get("line")) for item in record["diagnostics"]
    )
    built = record["status"] == "built"
    return Words(record.get("case", ""), record["backend"], said, record["reason"], record["log"], built)


def said_of(words: Words) -> tuple[tuple[LogMessage, ...], Context]:
    """Text of a record's diagnostics and reason."""
    said, first = [], True
    hidden = _stumbles([(message, file, line) for message, _, file, line in words.diagnostics])
    for place, (message, severity, file, _) in enumerate(words.diagnostics):
        if place in hidden:
            continue
        match = _PREFIX.match(message)
        grave = severity in ("error", "fatal")
        said.append(LogMessage(message=one_line(message), text=message, severity=severity, file=file,
                         tool=match[1].lower() if match else "", first=first and grave))  # fmt: skip
        first = first and not grave
    if words.reason:
        said.append(LogMessage(message=one_line(words.reason), text=words.reason))
    said.sort(key=lambda each: _RANK.get(each.severity, len(_RANK)))
    messages = (message for message, *_ in words.diagnostics)
    text = "\n".join((words.case, words.backend, *messages, words.log[:_TEXT]))
    speaker = BACKENDS[words.backend].compiler if words.backend in BACKENDS else ""
    return tuple(said), Context(speaker=speaker, text=text, terse=_terse(words.log))


def said_in(log: str, speaker: str = "") -> tuple[tuple[LogMessage, ...], Context]:
    """Text of a log: errors in order, unknown lines that may matter, then warnings."""
    lines = [_STAMP.sub("", line, count=1) for line in clean(log[:_MAX_LOG]).splitlines()]
    plain = [line[:4100].strip() for line in lines]
    # CMake quotes what the compiler said beneath its own words, which count where the compiler's have no known cause.
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
            said = LogMessage(message=one_line(line.message, 4000), text=plain[line.number - 1], severity=severity, tool=line.tool,
                        file=line.file, number=line.number, first=line.number == first)  # fmt: skip
        else:
            said = LogMessage(message=one_line(plain[line], 4000), text=plain[line], number=line + 1)
        found.setdefault((said.severity, said.message), said)
        if len(found) >= _MAX_SAID:
            break
    text = "\n".join(lines)[:_TEXT]
    context = Context(speaker=speaker or _speaker(text), text=text, terse=_terse(text))
    return tuple(sorted(found.values(), key=lambda each: _RANK[each.severity])), context


def _messages(lines: list[str], plain: list[str]) -> Iterator[LogLine | int]:
    """Messages, and the places of other lines that may tell something."""
    # Logs say the same again and again: what has no form and tells nothing does so wherever it stands.
    silent: set[str] = set()
    for place, text in enumerate(plain):
        if not text or lines[place] in silent or _SHOWN.match(lines[place]):
            continue
        margin = len(lines[place]) - len(lines[place].lstrip())
        after = (line[margin:] for line in lines[place + 1 : place + 40])
        if found := read_line(text[:4000], after, place + 1):
            yield found
        elif place + 1 < len(lines) and _CARET.match(lines[place + 1]):
            continue
        elif _MAY_TELL.search(text) and not _COMMAND.match(text) and not _QUIET.match(lines[place]):
            yield place
        else:
            silent.add(lines[place])


def _stumbles(said: Sequence[tuple[str, str, Any]]) -> set[int]:
    """The messages (with file and line) that only follow from an unknown type in the same line of the program."""
    stumbled = {(file, line) for message, file, line in said if _STUMBLE.search(message)}
    named = {(file, line) for message, file, line in said if _NAMES_IT.search(message)} & stumbled
    return {
        number
        for number, (message, file, line) in enumerate(said)
        if (file, line) in named and not _NAMES_IT.search(message)
    }


def _speaker(text: str) -> str:
    """The tool, if exactly one is visible."""
    seen = [name for name, pattern in _SPEAKERS.items() if pattern.search(text)]
    return seen[0] if len(seen) == 1 else ""


def _terse(log: str) -> bool:
    """Return whether a log shows no line of the program."""
    return not re.search(r"^[^\S\n]+[\^~]", log[:_TEXT], re.MULTILINE)


FILES = (
    "libraries.toml", "headers.toml", "linking.toml", "device.toml", "language.toml", "types.toml", "cupy.toml", "options.toml", "causes.toml", "host.toml",
)  # fmt: skip
"""The tables, in search order."""
GROUP = "cumatrix.causes"
"""Entry points of other distributions: each names the file of a table."""

_KEYS = frozenset(
    ("title", "pattern", "unless", "header", "said", "file", "near", "against", "terse", "status", "stage", "when", "where", "cause", "remedy", "links", "examples")
)  # fmt: skip
_PATTERNS = ("pattern", "unless", "header", "file", "near", "against")
HEADER = re.compile(
    r"(?:could not|[cC]annot) open (?:source|include) file:? [\"'](?P<open>[^\"']{1,300})[\"']"
    r"|(?:^|error: )(?P<gcc>[^\s:'\"]{1,300}): No such file or directory$|'(?P<clang>[^'\s]{1,300})' file not found"
)
"""A missing header, in the words of each compiler."""

_NVRTC = frozenset(("nvrtc", "ptxas", "nvlink", "nvvm"))
_NVCC = frozenset(("nvcc", "gcc", "ptxas", "nvlink", "ld", "nvvm", "sh"))
_VOICES = {"nvrtc": _NVRTC, "nvcc": _NVCC, "numba": frozenset(("python", "nvvm", "ptxas", "nvlink"))}


@dataclass(frozen=True, kw_only=True)
class Cause:
    """A known cause.

    Parameters
    ----------
    name, title : str
        Its key in the table, and one line.
    pattern : Pattern or None
        Its words; None if the status or `header` is enough.
    unless : Pattern or None
        Words that mark a message of another cause.
    header : Pattern or None
        The name of a missing header, in any compiler's message.
    said : frozenset of str
        Tools that can report it; empty for any.
    file : Pattern or None
        The file that the message is about.
    near : Pattern or None
        What else the log has to say, where the message alone could mean other things.
    against : Pattern or None
        What the log must not say anywhere: evidence of another cause.
    terse : bool
        Whether the first error of a log of NVRTC's that shows no line of the program is enough without `near`.
    status, stage : frozenset of str
        Outcomes it can explain; an empty `stage` is any.
    when : Condition
        Cells it applies to.
    where : str
        The same in words, empty for everywhere.
    cause, remedy : str
        Sentences.
    links : tuple of str
        Upstream's pages.
    examples : tuple of str
        What compilers really said.
    """

    name: str
    title: str
    pattern: Pattern | None
    unless: Pattern | None
    header: Pattern | None
    said: frozenset[str]
    file: Pattern | None
    near: Pattern | None
    against: Pattern | None
    terse: bool
    status: frozenset[str]
    stage: frozenset[str]
    when: Condition
    where: str
    cause: str
    remedy: str
    links: tuple[str, ...]
    examples: tuple[str, ...]

    @property
    def wordless(self) -> bool:
        """Return whether the status is enough."""
        return self.pattern is None and self.header is None

    def worded(self, message: str, file: str) -> bool:
        """Return whether a message about a file has its words."""
        if self.header is not None:
            match = HEADER.search(message)
            name = match and (match["open"] or match["gcc"] or match["clang"])
            if not name or not self.header.found_in(name):
                return False
            # NVRTC speaks in the front end's words, never in gcc's.
            if match and match["gcc"] and self.said == {"nvrtc"}:
                return False
        if self.file is not None and file and not self.file.found_in(file):
            return False
        if self.wordless or (self.pattern is not None and not self.pattern.found_in(message)):
            return False
        return self.unless is None or not self.unless.found_in(message)

    def fits(self, said: LogMessage, context: Context) -> bool:
        """Return whether it applies, by the tool and by the rest of the log."""
        if self.said and not self._by(said.tool, context.speaker):
            return False
        # Without a file that includes it, a name is an input of gcc's driver and no header.
        if self.header is not None and said.tool == "gcc" and not said.file and "gcc" not in self.said:
            return False
        if self.against is not None and self.against.found_in(context.text):
            return False
        # Old NVRTCs show no line of the program: where nothing else can be known, the first error speaks for itself.
        alone = (
            self.terse
            and said.first
            and context.terse
            and (bool(context.speaker) or not re.search(r"[/\\]", said.file))
        )
        return alone or self.near is None or self.near.found_in(context.text)

    def _by(self, tool: str, speaker: str) -> bool:
        if tool not in ("", "edg", "python"):
            return tool in self.said
        return (
            tool in self.said
            or not speaker
            or speaker in self.said
            or (tool != "edg" and bool(_VOICES.get(speaker, frozenset()) & self.said))
        )


@dataclass(frozen=True, kw_only=True)
class Match:
    """A cause, and the words that matched (empty if the status was enough).

    `line` counts from 1 in a log, 0 elsewhere; `severity` is that of the message, empty where it has no known form; `tool` is who said
    it, as far as that can be known.
    """

    cause: Cause
    text: str
    line: int = 0
    severity: str = ""
    tool: str = ""

    @property
    def of_warning(self) -> bool:
        """Return whether it explains only a warning or a note."""
        return self.severity in ("warning", "remark", "note")


@cache
def catalogue() -> Mapping[str, Cause]:
    """Every known cause by name, in the order of the tables: the special before the general, those of other distributions first."""
    found: dict[str, Cause] = {}
    for point, place in plugged(GROUP).items():
        try:
            text = Path(place).read_text("utf-8")
            found |= {name: _cause(str(place), name, entry) for name, entry in tomllib.loads(text).items()}
        except (OSError, TypeError, ValueError, KeyError) as error:
            refuse(GROUP, point, f"{type(error).__name__}: {error}")
    for file in FILES:
        for name, entry in tomllib.loads(files(__package__).joinpath(file).read_text("utf-8")).items():
            if name in found:
                raise ValueError(f"{file}: {name} is there twice")
            found[name] = _cause(file, name, entry)
    return found


def _cause(file: str, name: str, entry: Mapping[str, Any]) -> Cause:
    unknown = set(entry) - _KEYS
    if unknown:
        raise ValueError(f"{file}: {name}: unknown key {min(unknown)!r}")
    patterns = {key: _pattern(file, name, key, entry.get(key)) for key in _PATTERNS}
    return Cause(
        name=name,
        title=entry["title"],
        **patterns,
        terse=entry.get("terse", False),
        said=frozenset(entry.get("said", ())),
        status=frozenset(Status(word) for word in entry.get("status", ["rejected"])),
        stage=frozenset(Stage(word) for word in entry.get("stage", [])),
        when=Condition.parse(entry.get("when", ""), values={"backend": BACKENDS}),
        where=entry.get("where", ""),
        cause=entry["cause"],
        remedy=entry["remedy"],
        links=tuple(entry.get("links", ())),
        examples=tuple(entry.get("examples", ())),
    )


def _pattern(file: str, name: str, key: str, text: str | None) -> Pattern | None:
    if text is None:
        return None
    try:
        return Pattern(text)
    except PatternError as error:
        raise ValueError(f"{file}: {name}.{key} {error}") from None


def causes_of(record: Mapping[str, Any]) -> tuple[Match, ...]:
    """Known causes of what happened to a cell, that of the most telling diagnostic first; those of warnings come last."""
    if record["status"] == "built" and not record["diagnostics"]:
        return ()
    possible, words = _possible(record["status"], record["stage"]), words_of(record)
    found = _matches(possible, words)
    # The cell's condition is evaluated only after the words have matched, because it takes longer than all the rest.
    if any(match.cause.when.text for match in found):
        facts = facts_of(record)
        found = _matches(tuple(name for name in possible if catalogue()[name].when(facts)), words)
    return found


@lru_cache(maxsize=256)
def _possible(status: str, stage: str | None) -> tuple[str, ...]:
    """Causes of a status at a stage, whatever the message."""
    causes = catalogue().items()
    return tuple(name for name, cause in causes if status in cause.status and (not cause.stage or stage in cause.stage))


@lru_cache(maxsize=16_384)
def _matches(fitting: tuple[str, ...], words: Words) -> tuple[Match, ...]:
    """Those of `fitting` that words or else the log tell; else those that the status is enough for.

    Many cells say the same, and all patterns over a whole log take milliseconds.
    """
    among = frozenset(fitting)
    said, context = said_of(words)
    found = _first(said, context, among)
    # Of what only warned while it was built the log tells nothing that went wrong.
    if not words.built and all(match.of_warning for match in found.values()):
        found = {**_first(said_in(words.log, context.speaker)[0], context, among), **found}
    if not found:
        found = {name: Match(cause=cause, text="") for name in fitting if (cause := catalogue()[name]).wordless}
    return tuple(sorted(found.values(), key=lambda match: match.of_warning))


def _first(said: Iterable[LogMessage], context: Context, among: frozenset[str]) -> dict[str, Match]:
    """For each message the first cause that tells it."""
    found: dict[str, Match] = {}
    for each in said:
        for cause in _telling(each, context):
            if cause.name in among:
                found.setdefault(cause.name, _match(cause, each, context))
                break
    return found


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Known causes of a log, those of errors first; `unexplained` is its first error without a known cause."""

    matches: tuple[Match, ...]
    unexplained: LogMessage | None = None


def explain_log(log: str) -> Explained:
    """Known causes in any log, each with the first line that tells it: those of errors, then those of warnings.

    Lines without a known form are asked only where no error has a known cause. Of several causes of the same words, the first of the table
    that does not depend on a cell is listed, and those before it that do: without a cell they cannot be decided.
    """
    said, context = said_in(log)
    found: dict[str, Match] = {}
    unexplained = None
    for each in said:
        if not each.severity and any(not match.of_warning for match in found.values()):
            continue
        causes = _telling(each, context)
        for cause in causes:
            found.setdefault(cause.name, _match(cause, each, context))
            if not cause.where:
                break
        if not causes and each.first:
            unexplained = each
    matches = sorted(found.values(), key=lambda match: (match.of_warning, bool(match.cause.where)))
    return Explained(matches=tuple(matches), unexplained=unexplained)


def causes_in_log(log: str) -> tuple[Match, ...]:
    """The causes of `explain_log`."""
    return explain_log(log).matches


def _match(cause: Cause, said: LogMessage, context: Context) -> Match:
    tool = context.speaker if said.tool == "edg" else said.tool
    return Match(cause=cause, text=one_line(said.text, 4000), line=said.number, severity=said.severity, tool=tool)


def _telling(said: LogMessage, context: Context) -> list[Cause]:
    """Causes that tell a message, wherever they apply."""
    found = [cause for cause in _worded(said.message, said.file) if cause.fits(said, context)]
    # nvcc's front end and NVRTC speak alike, and a log that names neither is more often nvcc's.
    unknown = said.tool == "edg" and not context.speaker
    return sorted(found, key=lambda cause: cause.said == {"nvrtc"}) if unknown else found


@lru_cache(maxsize=4096)
def _worded(message: str, file: str) -> tuple[Cause, ...]:
    """Causes that have the words of a message; logs say the same again and again."""
    match = _UNDECLARED.match(message)
    forms = (message, f'identifier "{match["name"]}" is undefined') if match else (message,)
    return tuple(cause for cause in catalogue().values() if any(cause.worded(form, file) for form in forms))
