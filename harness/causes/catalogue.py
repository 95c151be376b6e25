"""The catalogue of causes: matches a compiler's messages to a cause and a remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.backends import BACKENDS
from harness.causes.reading import Context, LogMessage, Words, messages_in_log, messages_of_record, words_of
from harness.diagnostics import one_line
from harness.model import Stage, Status
from harness.model.condition import Condition
from harness.plugins import plugged, refuse
from harness.records.record_names import facts_of
from harness.regex import Pattern, PatternError

# What the log has to show of a product that a cause's title names.
_PRODUCTS = {
    "CuPy": r"(?i)cupy|auto-detect CUDA root",
    "FlashAttention": r"(?i)flash.?att",
    "Jitify": r"(?i)jitify|cupy",
    "Numba": r"(?i)numba|nopython|\bcuda mode pipeline|TypingError|CUDADispatcher|_LaunchConfiguration|No (definition|implementation) (for lowering|of function)|CUDACallConv|JITCUDACodegen|unicode_type|class\(\w+\), <class|CUDACodeLibrary|UnsupportedBytecodeError|griddim|Kernel launch configuration|NvvmSupportError",
    "PyTorch": r"(?i)torch|Unknown CUDA arch|c10|\bat(en)?\b|2at\d|pybind11|\bAT_(ASSERT|CHECK|DISPATCH|ERROR)|\bTH[CPA]",
    "Triton": r"(?i)triton|inductor|= tt\.\w|fp8e4nv|AccelerateMatmul|getMMAVersion|f8e4m3nv|Unsupported rounding mode for",
    "XLA": r"(?i)xla|jax|tensorflow|\btf\b|HLO|CustomCall|PTX compilation provider|\$\{CUDA_DIR\}/nvvm",
    "bitsandbytes": r"(?i)bitsandbytes",
    "clang": r"(?i)clang|llvm|unsupported CUDA gpu architecture|cannot find libdevice for sm_",
}
_PRODUCT = re.compile(rf"\b({'|'.join(_PRODUCTS)})\b")

# A parser that lost its way says so first, and the reason after it.
_LOST = re.compile(
    r"^attribute \"__\w+__\" does not apply here|^expected an? |^qualified name is not allowed|qualified name is required"
    r"|^global-scope qualifier|^this declaration has no storage class"
)

_CCCL = re.compile(r"[\\/](cub|thrust|cuda)[\\/]")

# A name that the host's compiler does not know, unless it is one of device code's own: patterns have it in nvcc's words.
_UNDECLARED = re.compile(
    r"^[`'‘](?P<name>(?!__(?!half|nv_)|(?:tex|surf)[123]D)[\w:]{1,200})['’](?: was not declared in this scope| undeclared \((?:first use|not in)|: undeclared identifier|: identifier not found)"
)


FILES = (
    "triton.toml", "libraries.toml", "headers.toml", "linking.toml", "device.toml", "language.toml", "types.toml", "cupy.toml", "options.toml", "causes.toml", "host.toml", "builds.toml", "running.toml",
)  # fmt: skip
"""The tables, in search order."""
GROUP = "cumatrix.causes"
"""Entry points of other distributions: each names the file of a table."""

_KEYS = frozenset(
    ("title", "pattern", "unless", "header", "tools", "file", "near", "against", "terse", "status", "stage", "when", "where", "cause", "remedy", "links", "examples")
)  # fmt: skip
_PATTERNS = ("pattern", "unless", "header", "file", "near", "against")
HEADER = re.compile(
    r"(?:could not|[cC]annot) open (?:source|include) file:? [\"'](?P<open>[^\"']{1,300})[\"']"
    r"|(?:^|error: )(?P<gcc>[^\s:'\"]{1,300}): No such file or directory(?:$| +#include )|['“](?P<clang>[^'”\s]{1,300})(?:' file not found|”: No such file or directory$)|include file '(?P<tcc>[^']{1,300})' not found"
)
"""A missing header, in the words of each compiler."""

_NVRTC = frozenset(("nvrtc", "ptxas", "nvlink", "nvvm"))
_NVCC = frozenset(("nvcc", "gcc", "ptxas", "nvlink", "ld", "nvvm", "sh"))
_CLANG = frozenset(("gcc", "ptxas", "nvlink"))
_VOICES = {"nvrtc": _NVRTC, "nvcc": _NVCC, "clang": _CLANG, "numba": frozenset(("python", "nvvm", "ptxas", "nvlink"))}


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
    tools : frozenset of str
        Tools that can report it; empty for any.
    file : Pattern or None
        The file that the message is about.
    near : Pattern or None
        What else the log has to say, where the message alone could mean other things.
    against : Pattern or None
        What the log must not say anywhere: evidence of another cause.
    shown : Pattern or None
        The product that the title names, which the log has to show.
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
        Messages of compilers.
    """

    name: str
    title: str
    pattern: Pattern | None
    unless: Pattern | None
    header: Pattern | None
    tools: frozenset[str]
    file: Pattern | None
    near: Pattern | None
    against: Pattern | None
    shown: Pattern | None
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
            name = match and next(filter(None, match.groups()), "")
            if not name or not self.header.found_in(name):
                return False
            # NVRTC speaks in the front end's words, never in gcc's or cl's.
            if match and self.tools == {"nvrtc"} and (match["gcc"] or "include file" in match[0]):
                return False
        if self.file is not None and file and not self.file.found_in(file):
            return False
        if self.wordless or (self.pattern is not None and not self.pattern.found_in(message)):
            return False
        return self.unless is None or not self.unless.found_in(message)

    def fits(self, message: LogMessage, context: Context) -> bool:
        """Return whether it applies, by the tool and by the rest of the log."""
        if self.tools and not self._by(message.tool, context.speaker):
            return False
        # Without a file that includes it, a name is an input of gcc's driver and no header.
        if self.header is not None and message.tool == "gcc" and not message.file and "gcc" not in self.tools:
            return False
        # gcc and clang end at a missing header: what is no fatal error is about another file.
        if self.header is not None and message.severity == "error" and not (message.tool or message.file):
            match = HEADER.search(message.message)
            if match and match["gcc"] and "fatal error" not in message.message:
                return False
        # A program that the shell does not find is no header.
        if self.header is not None and not message.severity:
            match = HEADER.search(message.message)
            if match and match["gcc"] and "error" not in match[0] and not re.search(r"[./]", match["gcc"]):
                return False
        if self.against is not None and self.against.found_in(context.text):
            return False
        if self.shown is not None and not self.shown.found_in(context.whole):
            return False
        # Old NVRTCs show no line of the program: where nothing else can be known, the first error speaks for itself.
        alone = (
            self.terse
            and message.first
            and context.terse
            and (bool(context.speaker) or not re.search(r"[/\\]", message.file))
        )
        return alone or self.near is None or self.near.found_in(context.text)

    def _by(self, tool: str, speaker: str) -> bool:
        if tool not in ("", "edg", "python"):
            return tool in self.tools
        return (
            tool in self.tools
            or not speaker
            or speaker in self.tools
            or (tool != "edg" and bool(_VOICES.get(speaker, frozenset()) & self.tools))
        )


@dataclass(frozen=True, kw_only=True)
class Match:
    """A cause, and the words that matched (empty if the status was enough).

    `line` counts from 1 in a log, 0 elsewhere; `severity` is that of the message, empty where it has no known form; `tool` printed
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
    products = _PRODUCT.findall(entry["title"])
    return Cause(
        name=name,
        title=entry["title"],
        **patterns,
        shown=Pattern("|".join(_PRODUCTS[product] for product in products)) if products else None,
        terse=entry.get("terse", False),
        tools=frozenset(entry.get("tools", ())),
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
    messages, context = messages_of_record(words)
    found = _first(messages, context, among)
    # Of what only warned while it was built the log tells nothing that went wrong.
    if not words.built and all(match.of_warning for match in found.values()):
        found = {**_first(messages_in_log(words.log, context.speaker)[0], context, among), **found}
    if not found:
        found = {name: Match(cause=cause, text="") for name in fitting if (cause := catalogue()[name]).wordless}
    return tuple(sorted(found.values(), key=lambda match: match.of_warning))


def _first(messages: Iterable[LogMessage], context: Context, among: frozenset[str]) -> dict[str, Match]:
    """For each message the first cause that tells it."""
    found: dict[str, Match] = {}
    for each in messages:
        for cause in _causes_of(each, context):
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
    messages, context = messages_in_log(log)
    found: dict[str, Match] = {}
    unexplained = None
    for each in messages:
        if not each.severity and any(not match.of_warning for match in found.values()):
            continue
        if unexplained is not None and ((each.notice and not unexplained.notice) or _may_follow(each, unexplained)):
            continue
        causes = [cause for cause in _causes_of(each, context) if cause.status != {Status.UNAVAILABLE}]
        # What only a cell can decide is no answer alone.
        if all(cause.where for cause in causes):
            causes = []
        for cause in causes:
            found.setdefault(cause.name, _match(cause, each, context))
            if not cause.where:
                break
        if not causes and each.first:
            unexplained = each
    matches = sorted(found.values(), key=lambda match: (match.of_warning, bool(match.cause.where)))
    return Explained(matches=tuple(matches), unexplained=unexplained)


def _may_follow(message: LogMessage, first: LogMessage) -> bool:
    """Return whether an error may be a consequence of the first, a compiler's, whose cause is not known; the lines beneath it are its own."""
    # FindCUDA's script says of its file that it failed, not why.
    summary = first.tool == "cmake" and first.message.startswith("Error generating")
    if summary or first.tool in ("", "python") or message.severity in ("warning", "remark", "note"):
        return False
    # In a program the reason comes after it; in a header of CCCL's own, what follows is lost too.
    if _LOST.search(first.message):
        return message.file == first.file and bool(_CCCL.search(first.file))
    return bool(message.severity) or not 0 < message.number - first.number <= 3


def causes_in_log(log: str) -> tuple[Match, ...]:
    """The causes of `explain_log`."""
    return explain_log(log).matches


def _match(cause: Cause, message: LogMessage, context: Context) -> Match:
    tool = context.speaker if message.tool == "edg" else message.tool
    return Match(
        cause=cause, text=one_line(message.text, 4000), line=message.number, severity=message.severity, tool=tool
    )


def _causes_of(message: LogMessage, context: Context) -> list[Cause]:
    """Causes that tell a message, wherever they apply."""
    found = [cause for cause in _worded(message.message, message.file) if cause.fits(message, context)]
    # nvcc's front end and NVRTC speak alike, and a log that names neither is more often nvcc's.
    unknown = (message.tool == "edg" or (not message.tool and message.severity == "error")) and not context.speaker
    return sorted(found, key=lambda cause: cause.tools == {"nvrtc"}) if unknown else found


_TOGETHER = 16
"""Causes that are searched as one first."""


@cache
def _groups() -> list[tuple[Pattern | None, list[Cause]]]:
    """Causes in order, some at a time, with a pattern that finds what any of theirs does; None where they are about headers alone."""
    causes = list(catalogue().values())
    found = []
    for start in range(0, len(causes), _TOGETHER):
        group = causes[start : start + _TOGETHER]
        texts = [f"(?:{cause.pattern.text})" for cause in group if cause.pattern]
        found.append((Pattern("|".join(texts)) if texts else None, group))
    return found


@lru_cache(maxsize=4096)
def _worded(message: str, file: str) -> tuple[Cause, ...]:
    """Causes that have the words of a message; logs say the same again and again."""
    match = _UNDECLARED.match(message)
    forms = (message, f'identifier "{match["name"]}" is undefined') if match else (message,)
    header = any(map(HEADER.search, forms))
    return tuple(
        cause
        for pattern, causes in _groups()
        if header or (pattern and any(map(pattern.found_in, forms)))
        for cause in causes
        if any(cause.worded(form, file) for form in forms)
    )
