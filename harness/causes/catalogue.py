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

# Evidence in the log for a product that a cause's title names.
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

# A confused parser reports itself first and the reason after it.
_LOST = re.compile(
    r"^attribute \"__\w+__\" does not apply here|^expected an? |^qualified name is not allowed|qualified name is required"
    r"|^global-scope qualifier|^this declaration has no storage class"
)

_CCCL = re.compile(r"[\\/](cub|thrust|cuda)[\\/]")

# A name that the host compiler does not know. Patterns match such a message in nvcc's words, except for names of device code.
_UNDECLARED = re.compile(
    r"^[`'‘](?P<name>(?!__(?!half|nv_)|(?:tex|surf)[123]D)[\w:]{1,200})['’](?: was not declared in this scope| undeclared \((?:first use|not in)|: undeclared identifier|: identifier not found)"
)


FILES = (
    "triton.toml", "libraries.toml", "headers.toml", "linking.toml", "device.toml", "language.toml", "types.toml", "cupy.toml", "options.toml", "causes.toml", "host.toml", "builds.toml", "running.toml",
)  # fmt: skip
"""The tables, in search order."""
GROUP = "cumatrix.causes"
"""The entry point group of other distributions. Each entry point names the file of a table."""

_KEYS = frozenset(
    ("title", "pattern", "unless", "header", "tools", "file", "near", "against", "terse", "status", "stage", "when", "where", "cause", "remedy", "links", "examples")
)  # fmt: skip
_PATTERNS = ("pattern", "unless", "header", "file", "near", "against")
HEADER = re.compile(
    r"(?:could not|[cC]annot) open (?:source|include) file:? [\"'](?P<open>[^\"']{1,300})[\"']"
    r"|(?:^|error: )(?P<gcc>[^\s:'\"]{1,300}): No such file or directory(?:$| +#include )|['“](?P<clang>[^'”\s]{1,300})(?:' file not found|”: No such file or directory$)|include file '(?P<tcc>[^']{1,300})' not found"
)
"""The message about a missing header, for each compiler."""

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
        The cause's key in the table, and a title of one line.
    pattern : Pattern or None
        The pattern of the message. None if the status or `header` is enough.
    unless : Pattern or None
        The pattern of a message that has another cause.
    header : Pattern or None
        The name of a missing header in any compiler's message.
    tools : frozenset of str
        Tools that can print the message. Empty for any tool.
    file : Pattern or None
        The file in the message.
    near : Pattern or None
        Further evidence that the log must contain if the message alone is ambiguous.
    against : Pattern or None
        Evidence of another cause, which the log must not contain.
    shown : Pattern or None
        The product that the title names. The log must show it.
    terse : bool
        Whether the first error of an NVRTC log without program lines is enough without `near`.
    status, stage : frozenset of str
        Outcomes that the cause can explain. An empty `stage` means any stage.
    when : Condition
        Cells that the cause applies to.
    where : str
        The condition in words. Empty if the cause applies everywhere.
    cause, remedy : str
        Sentences about the cause and its remedy.
    links : tuple of str
        Upstream pages.
    examples : tuple of str
        Compiler messages that match.
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
        """Return whether the status alone is enough."""
        return self.pattern is None and self.header is None

    def worded(self, message: str, file: str) -> bool:
        """Return whether a message about a file matches the cause's patterns."""
        if self.header is not None:
            match = HEADER.search(message)
            name = match and next(filter(None, match.groups()), "")
            if not name or not self.header.found_in(name):
                return False
            # NVRTC prints the front end's messages, never those of gcc or cl.
            if match and self.tools == {"nvrtc"} and (match["gcc"] or "include file" in match[0]):
                return False
        if self.file is not None and file and not self.file.found_in(file):
            return False
        if self.wordless or (self.pattern is not None and not self.pattern.found_in(message)):
            return False
        return self.unless is None or not self.unless.found_in(message)

    def fits(self, message: LogMessage, context: Context) -> bool:
        """Return whether the tool and the rest of the log fit the cause."""
        if self.tools and not self._by(message.tool, context.speaker):
            return False
        # A name without an including file is an input of gcc's driver, not a header.
        if self.header is not None and message.tool == "gcc" and not message.file and "gcc" not in self.tools:
            return False
        # gcc and clang stop at a missing header, so an error that is not fatal is about another file.
        if self.header is not None and message.severity == "error" and not (message.tool or message.file):
            match = HEADER.search(message.message)
            if match and match["gcc"] and "fatal error" not in message.message:
                return False
        # A program that the shell does not find is not a header.
        if self.header is not None and not message.severity:
            match = HEADER.search(message.message)
            if match and match["gcc"] and "error" not in match[0] and not re.search(r"[./]", match["gcc"]):
                return False
        if self.against is not None and self.against.found_in(context.text):
            return False
        if self.shown is not None and not self.shown.found_in(context.whole):
            return False
        # Old NVRTC releases print no program lines. Without other evidence, the first error counts.
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
    """A cause and the text that matched, which is empty if the status was enough.

    `line` counts from 1 in a log and is 0 elsewhere. `severity` is empty if the message has no known form. `tool` printed the message, if the
    log shows it.
    """

    cause: Cause
    text: str
    line: int = 0
    severity: str = ""
    tool: str = ""

    @property
    def of_warning(self) -> bool:
        """Return whether the match explains only a warning or a note."""
        return self.severity in ("warning", "remark", "note")


@cache
def catalogue() -> Mapping[str, Cause]:
    """Return every known cause by name, in search order: other distributions first, and specific causes before general ones."""
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
    """Return the known causes of a cell's outcome. The most specific diagnostic comes first, warnings come last."""
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
    """Return the causes that fit a status and a stage, with any message."""
    causes = catalogue().items()
    return tuple(name for name, cause in causes if status in cause.status and (not cause.stage or stage in cause.stage))


@lru_cache(maxsize=16_384)
def _matches(fitting: tuple[str, ...], words: Words) -> tuple[Match, ...]:
    """Return the causes in `fitting` that match the diagnostics, else the log, else the status alone.

    The result is cached: many cells have the same messages, and matching a whole log takes milliseconds.
    """
    among = frozenset(fitting)
    messages, context = messages_of_record(words)
    found = _first(messages, context, among)
    # The log of a built cell with warnings contains no failure.
    if not words.built and all(match.of_warning for match in found.values()):
        found = {**_first(messages_in_log(words.log, context.speaker)[0], context, among), **found}
    if not found:
        found = {name: Match(cause=cause, text="") for name in fitting if (cause := catalogue()[name]).wordless}
    return tuple(sorted(found.values(), key=lambda match: match.of_warning))


def _first(messages: Iterable[LogMessage], context: Context, among: frozenset[str]) -> dict[str, Match]:
    """Return the first matching cause of each message."""
    found: dict[str, Match] = {}
    for each in messages:
        for cause in _causes_of(each, context):
            if cause.name in among:
                found.setdefault(cause.name, _match(cause, each, context))
                break
    return found


@dataclass(frozen=True, kw_only=True)
class Explained:
    """Known causes of a log, errors first. `unexplained` is the first error without a known cause."""

    matches: tuple[Match, ...]
    unexplained: LogMessage | None = None


def explain_log(log: str) -> Explained:
    """Find the known causes in any log, each with its first matching line: causes of errors, then causes of warnings.

    Lines without a known form count only if no error has a known cause. If several causes match the same text, the result has the first
    one that does not depend on a cell, and the earlier ones that do, because a log without a cell cannot decide them.
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
        # Causes that all depend on a cell are not an answer.
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
    """Return whether an error may follow from a compiler's first error without a known cause. The three lines below an error belong to it."""
    # FindCUDA's script reports that its file failed, but not why.
    summary = first.tool == "cmake" and first.message.startswith("Error generating")
    if summary or first.tool in ("", "python") or message.severity in ("warning", "remark", "note"):
        return False
    # In a program, the reason comes after this error. In a header of CCCL, the later errors follow from it too.
    if _LOST.search(first.message):
        return message.file == first.file and bool(_CCCL.search(first.file))
    return bool(message.severity) or not 0 < message.number - first.number <= 3


def causes_in_log(log: str) -> tuple[Match, ...]:
    """Return the causes of `explain_log`."""
    return explain_log(log).matches


def _match(cause: Cause, message: LogMessage, context: Context) -> Match:
    tool = context.speaker if message.tool == "edg" else message.tool
    return Match(
        cause=cause, text=one_line(message.text, 4000), line=message.number, severity=message.severity, tool=tool
    )


def _causes_of(message: LogMessage, context: Context) -> list[Cause]:
    """Return the causes that match a message and its context."""
    found = [cause for cause in _worded(message.message, message.file) if cause.fits(message, context)]
    # nvcc's front end and NVRTC print the same messages. A log that names neither is more often nvcc's.
    unknown = (message.tool == "edg" or (not message.tool and message.severity == "error")) and not context.speaker
    return sorted(found, key=lambda cause: cause.tools == {"nvrtc"}) if unknown else found


_TOGETHER = 16
"""The number of causes in one combined pattern."""


@cache
def _groups() -> list[tuple[Pattern | None, list[Cause]]]:
    """Return groups of causes with a pattern that matches if any of theirs does. It is None if all are about missing headers."""
    causes = list(catalogue().values())
    found = []
    for start in range(0, len(causes), _TOGETHER):
        group = causes[start : start + _TOGETHER]
        texts = [f"(?:{cause.pattern.text})" for cause in group if cause.pattern]
        found.append((Pattern("|".join(texts)) if texts else None, group))
    return found


@lru_cache(maxsize=4096)
def _worded(message: str, file: str) -> tuple[Cause, ...]:
    """Return the causes whose patterns match a message. The result is cached, because logs repeat messages."""
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
