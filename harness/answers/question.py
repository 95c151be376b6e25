"""The grammar of questions: ``cutlass 3.5.1 cuda 13.0 sm_90`` becomes chips, each with its meaning.

The page's script has the same algorithm (`harness/report/assets/question.js`) and gets names, patterns and weights from
this module. ``tests/answers/questions.toml`` tests both with the same examples.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.model.target import VENDORS

NEAREST = 3
_WORD = re.compile(r"[^\s,;?!()\"'\u201c\u201d]+")
_MESSAGE_WORD = re.compile(r"(?<![\w$.])[a-z]{4,40}(?![\w$])")
_PART = re.compile(r"[a-z]+[a-z0-9]*|[0-9]+[a-z0-9]*")


def tokens_of(text: str) -> list[str]:
    """Return the words of a question in lower case: ``["cutlass", "3.5.1", "sm_90"]``."""
    return [token.rstrip(".:") for token in _WORD.findall(text.lower()) if token.rstrip(".:")]


def words_of(text: str) -> list[str]:
    """Return the words of a title, a name or a parameter in lower case: ``fragment=bf16`` has two."""
    return _PART.findall(text.lower())


def words_of_messages(messages: Iterable[str]) -> frozenset[str]:
    """Return the searchable words of compiler messages, without numbers and mangled names."""
    return frozenset(word for message in messages for word in _MESSAGE_WORD.findall(message.lower()))


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers of a version for sorting and comparing, or an empty tuple if the text is not a version."""
    return tuple(int(part) for part in text.split(".")) if re.fullmatch(r"\d{1,9}(\.\d{1,9})*", text) else ()


def in_series(version: str, series: str) -> bool:
    """Return whether a version belongs to a series, as 13.6.0 belongs to 13 and 13.6.

    A text that is not a version matches only itself.
    """
    numbers, wanted = version_of(version), version_of(series)
    if not numbers or not wanted:
        return version == series
    return (*numbers, *(0,) * len(wanted))[: len(wanted)] == wanted


def nearest_versions(version: str, known: Iterable[str]) -> list[str]:
    """Return the known versions on both sides of an unknown one."""
    wanted = version_of(version)
    ordered = sorted((item for item in known if version_of(item)), key=version_of)
    below = [item for item in ordered if version_of(item) < wanted]
    above = [item for item in ordered if version_of(item) >= wanted]
    return [*below[-1:], *above[:1]]


def nearest_words(word: str, known: Sequence[str]) -> list[str]:
    """Return the nearest known words, at most two letters away (one for short words), nearest first."""
    most = 1 if len(word) < 5 else 2
    found = [(distance(word, item), item) for item in known if abs(len(item) - len(word)) <= most]
    return [item for far, item in sorted(found) if far <= most][:NEAREST]


def distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with their neighbor."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


WEIGHTS = (8, 5, 2, 6)
"""Weights of a word in a case's name, in its title, topic and features, in causes and links, and in the parameters of a row."""
_MENTIONED = WEIGHTS[2]

_PREFIX = 3


def says(word: str, other: str, synonyms: Sequence[Sequence[str]]) -> bool:
    """Return whether a word of a question matches one of a title: a prefix, plural or synonym."""
    for each in alike(word, synonyms):
        stem = each[:-1] if len(each) > 4 and each.endswith("s") else each
        # A number after the stem makes another word: float4 is not float.
        if each == other or (
            len(stem) >= _PREFIX
            and not stem.isdigit()
            and other.startswith(stem)
            and not other[len(stem) : len(stem) + 1].isdigit()
        ):
            return True
    return False


def alike(word: str, synonyms: Sequence[Sequence[str]]) -> list[str]:
    """Return the word and its synonyms."""
    return [word, *(other for group in synonyms if word in group for other in group if other != word)]


def score(
    words: Sequence[str],
    fields: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    in_messages: Container[str] = (),
) -> tuple[int, int]:
    """Count the missing words, and weigh the others.

    Parameters
    ----------
    words : sequence of str
        Free words of a question.
    fields : sequence of (sequence of str)
        Words of the name, the title, the causes, the parameters (`WEIGHTS`).
    vocabulary : Vocabulary
        Synonyms, and the words that a case may lack.
    in_messages : container of str
        Words of compiler messages, for a question that is a message. Each of these words has the weight 1.
    """
    synonyms, missing, total = vocabulary.synonyms, 0, 0
    for word in words:
        found = max(
            (weight for weight, known in zip(WEIGHTS, fields, strict=True) if any(says(word, each, synonyms) for each in known)),
            default=0,
        )  # fmt: skip
        if found == _MENTIONED and word in vocabulary.named:
            # The text of a case may name another feature: a case about mma.sync does not answer "wgmma".
            found = 0
        own = {each for known in (*fields[:2], *fields[3:]) for each in known}
        if word not in own and any(word in group and own.intersection(group) for group in vocabulary.rivals):
            found = 0
        # In a name, the word itself counts more than a synonym.
        found += word in fields[0]
        found = found or int(word in in_messages)
        total += found
        missing += not found and (word not in vocabulary.parts or len(words) == 1)
    return missing, total


_KINDS = {kind.rstrip("_"): kind for vendor in VENDORS.values() for kind in vendor.kinds}
_TARGET = re.compile(
    "|".join(
        f"({'|'.join(kind.rstrip('_') for kind in vendor.kinds)})[_-]?({vendor.number}{vendor.suffix})"
        for vendor in VENDORS.values()
    )
)
_NVIDIA = re.compile(r"(?:sm|compute)_(\d+)")
_SHORT = re.compile(r"\d{2,3}[af]")
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)([af]?)")
# A number of four digits is the number of an issue.
_VERSION = re.compile(r"(==|>=|<=|=|<|>|@)?v?(\d{1,3}(?:\.\d+)*)(\+|\.x|\.\*)?")
_RANGE = re.compile(r"v?(\d+(?:\.\d+)*)\.\.v?(\d+(?:\.\d+)*)")
_GLUED = re.compile(r"([a-z][a-z+-]*?)-?((?:==|>=|<=|=|<|>|@)?v?\d[\d.+*x]*)")
_KIB = re.compile(r"(\d{1,4}) ?ki?b")
_BEYOND = ("than", "over", "above", "beyond", "exceeding")
_FROM = "from"
_BELOW = ("before", "below", "pre", "older than", "lower than", "less than", "earlier than")
_PINNED = re.compile(r"(.*?)(?:==?(.*))?")
_EXACT = re.compile(r"v?\d+(?:\.\w+)+")
_PHRASE = 3
_PATTERNS = {
    "token": _WORD,
    "word": _PART,
    "target": _TARGET,
    "short": _SHORT,
    "capability": _CAPABILITY,
    "version": _VERSION,
    "range": _RANGE,
    "glued": _GLUED,
    "kib": _KIB,
    "pinned": _PINNED,
    "exact": _EXACT,
}
"""Patterns of the grammar.

Their syntax is common to Python and JavaScript: the page's script gets the patterns as data.
"""


@dataclass(frozen=True, kw_only=True)
class Chip:
    """A part of a question and its meaning.

    Parameters
    ----------
    kind : str
        ``target``, ``toolkit``, ``tool`` (CuPy, NVRTC …), ``header`` (a header library), ``host`` (a host compiler, or
        its C library), ``package`` (a published one), ``word``, or ``unknown``.
    text : str
        The typed text, in lower case.
    name : str
        The tool, library or host compiler. For a word it is the word itself. For an unknown text it is the expected
        kind of name: ``cuda``, ``target``, ``word``.
    values : tuple of str
        Targets or versions. A tool without values means all its versions.
    near : tuple of str
        The nearest known names, for an unknown text.
    """

    kind: str
    text: str
    name: str = ""
    values: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the chip as plain values."""
        return {**asdict(self), "values": list(self.values), "near": list(self.near)}


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The vocabulary of questions.

    Parameters
    ----------
    architectures : Mapping[str, sequence of str]
        Targets by marketing name.
    aliases : Mapping[str, str]
        Names that take a version, by alias.
    tools : Mapping[str, sequence of str]
        Backends by name of a tool.
    libraries : Mapping[str, str]
        The library behind a backend, by backend. Backends without a library are absent.
    terms : sequence of str
        Names of tools that are also terms of CUDA.
    python : sequence of str
        Backends whose programs are Python files.
    builders : Mapping[str, sequence of str]
        Backends for GPUs of vendors other than NVIDIA, by the prefix of the vendor's targets: ``{"gfx": ["triton"]}``.
    hosts : sequence of str
        Names of host compilers, and the name of their C library.
    hosted : sequence of str
        Backends that use a host compiler.
    versions : Mapping[str, sequence of str]
        Known versions by name: of ``cuda``, of tools, of header libraries, of host compilers.
    targets : sequence of str
        Known targets, in order.
    specific : sequence of str
        Backends that build the architecture-specific target if a question requests the plain one: ``sm_90a`` for
        ``sm_90``.
    ignored : sequence of str
        Words without a meaning for the search.
    synonyms : sequence of (sequence of str)
        Groups of synonyms.
    rivals : sequence of (sequence of str)
        Groups of words that name different things although they have a common synonym.
    words : sequence of str
        Every word of titles, names, features, parameters and causes.
    message_words : sequence of str
        Further words, from compiler messages.
    parts : sequence of str
        First or last words of names of functions and instructions that a case may lack: ``sync`` of ``redux.sync``.
    packages : Mapping[str, str]
        Labels of the packages with known wheels, by each of their names.
    named : sequence of str
        Words of the cases' names.
    phrases : Mapping[str, str]
        Words that replace longer descriptions of a feature, by a pattern of these.
    """

    architectures: Mapping[str, Sequence[str]]
    aliases: Mapping[str, str]
    tools: Mapping[str, Sequence[str]]
    libraries: Mapping[str, str]
    terms: Sequence[str]
    python: Sequence[str]
    builders: Mapping[str, Sequence[str]]
    hosts: Sequence[str]
    hosted: Sequence[str]
    versions: Mapping[str, Sequence[str]]
    targets: Sequence[str]
    specific: Sequence[str]
    ignored: Sequence[str]
    synonyms: Sequence[Sequence[str]]
    rivals: Sequence[Sequence[str]] = field(default=())
    words: Sequence[str] = field(default=())
    message_words: Sequence[str] = field(default=())
    parts: Sequence[str] = field(default=())
    packages: Mapping[str, str] = field(default_factory=dict)
    named: Sequence[str] = field(default=())
    phrases: Mapping[str, str] = field(default_factory=dict)

    def in_messages(self, words: Iterable[str]) -> bool:
        """Return whether words belong to a compiler message.

        They do if a compiler message contains one of the words and no feature has a word that starts with it.
        """
        only = frozenset(words).intersection(self.message_words)
        return any(not any(other.startswith(word) for other in self.words) for word in only)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the page's script, with the grammar's patterns and weights."""
        grammar = {
            "kinds": _KINDS,
            "weights": WEIGHTS,
            "prefix": _PREFIX,
            "phrase": _PHRASE,
            "beyond": _BEYOND,
            "from": _FROM,
            "below": _BELOW,
        }
        return {
            **asdict(self),
            "grammar": {**grammar, "patterns": {name: each.pattern for name, each in _PATTERNS.items()}},
        }


def parse(text: str, vocabulary: Vocabulary) -> list[Chip]:
    """Parse a question.

    Parameters
    ----------
    text : str
        The typed text.
    vocabulary : Vocabulary
        The known names.
    """
    text = text.lower()
    for pattern, words in vocabulary.phrases.items():
        text = re.sub(pattern, words, text)
    tokens = tokens_of(text)
    chips: list[Chip] = []
    at = 0
    while at < len(tokens):
        below = any(f" {' '.join(tokens[:at])}".endswith(f" {words}") for words in _BELOW)
        found, at = _next(tokens, at, vocabulary, chips)
        for one in found:
            chip = _lower(one, vocabulary) if below else one
            if chip not in chips:
                chips.append(chip)
    backends = {backend for chip in chips for backend in vocabulary.tools.get(chip.name, ())}
    hosted = any("host" in (chip.kind, chip.name) for chip in chips) or not backends.isdisjoint(vocabulary.hosted)
    if not backends.isdisjoint(vocabulary.specific):
        chips = [_with_specific(chip, vocabulary) for chip in chips]
    return [_of_two(chip, vocabulary, hosted=hosted) for chip in chips]


def _lower(chip: Chip, known: Vocabulary) -> Chip:
    """Return the chip of the architectures below a target, nearest first, or the chip itself if there are none."""
    numbers = [int(found[1]) for value in chip.values if chip.kind == "target" and (found := _NVIDIA.match(value))]
    lower = [
        target
        for target in known.targets
        if (found := re.fullmatch(r"sm_(\d+)", target)) and int(found[1]) < min(numbers, default=0)
    ]
    lower.sort(key=lambda target: -int(target[3:]))
    return replace(chip, name=lower[0], values=tuple(lower)) if lower else chip


def _with_specific(chip: Chip, known: Vocabulary) -> Chip:
    """Return a plain target's chip with the architecture-specific target added."""
    if chip.kind != "target" or len(chip.values) != 1 or (own := f"{chip.values[0]}a") not in known.targets:
        return chip
    return replace(chip, values=(*chip.values, own))


def _of_two(chip: Chip, known: Vocabulary, *, hosted: bool) -> Chip:
    """Return the chip of clang as a backend or as a host compiler.

    Next to nvcc or another host compiler, clang is a host compiler. Versions of host compilers are major versions.
    """
    if chip.kind != "tool" or chip.name not in known.hosts:
        return chip
    whole = tuple(value for value in chip.values if "." in value)
    if hosted or (chip.values and not whole):
        return replace(chip, kind="host", values=tuple(value for value in chip.values if value not in whole))
    return replace(chip, values=whole)


def with_packages(text: str, vocabulary: Vocabulary) -> list[Chip]:
    """Parse a question that may name packages, each followed by its release.

    Parameters
    ----------
    text : str
        The typed text.
    vocabulary : Vocabulary
        The known names.
    """
    found: list[Chip] = []
    rest: list[str] = []
    tokens = tokens_of(text)
    while tokens:
        name, version = _PINNED.fullmatch(tokens[0]).groups()  # type: ignore[union-attr]  # it matches any token
        if name not in vocabulary.packages:
            rest.append(tokens.pop(0))
            continue
        words = [tokens.pop(0)]
        if not version and tokens and _EXACT.fullmatch(tokens[0]):
            version = tokens[0].lstrip("v")
            words.append(tokens.pop(0))
        values = (version,) if version else ()
        found.append(Chip(kind="package", text=" ".join(words), name=vocabulary.packages[name], values=values))
    return [*found, *parse(" ".join(rest), vocabulary)]


def narrowest(chips: Iterable[Chip]) -> list[Chip]:
    """Return the chips of a question's architectures, without a generation if the question also names one of its products."""
    found = [chip for chip in chips if chip.kind == "target"]
    return [chip for chip in found if not any(set(other.values) < set(chip.values) for other in found)]


def _next(tokens: Sequence[str], at: int, known: Vocabulary, before: Sequence[Chip]) -> tuple[list[Chip], int]:
    for length in range(min(_PHRASE, len(tokens) - at), 0, -1):
        text = " ".join(tokens[at : at + length])
        phrase = text.replace("-", " ")
        if phrase in known.architectures:
            return [Chip(kind="target", text=text, name=phrase, values=tuple(known.architectures[phrase]))], at + length
        if phrase in known.aliases:
            found, end = _versioned(known.aliases[phrase], text, tokens, at + length, known)
            if phrase == "cuda" and before and before[-1].kind == "tool" and found and found[0].kind == "unknown":
                # CUDA has no such release, but the tool before it does: Numba CUDA 0.63.
                own = _chips_of(before[-1].name, f"{before[-1].text} {found[0].text}", tokens[at + length], known)
                found = own if own[0].kind == "tool" else found
            # "numba cuda 12.4" is Numba with CUDA 12.4, because numba-cuda has no release 12.4.
            if length == 1 or all(chip.kind != "unknown" for chip in found):
                return found, end
    token = tokens[at]
    for length in (2, 1):
        text = " ".join(tokens[at : at + length])
        size = _KIB.fullmatch(text)
        if size or (length == 1 and token.isdigit()):
            # "more than 4 KiB" is another size than 4 KiB.
            if at and tokens[at - 1] in _BEYOND:
                return [], at + length
            if size:
                return [replace(_word(str(1024 * int(size[1])), known), text=text, near=())], at + length
    # sm 120 is sm_120.
    both = f"{token}_{tokens[at + 1]}" if token in _KINDS and at + 1 < len(tokens) else ""
    if target := _TARGET.fullmatch(token) or _TARGET.fullmatch(both):
        kind, number = filter(None, target.groups())
        return [_target(_KINDS[kind] + number, token, known)], at + (2 if target[0] == both else 1)
    if _SHORT.fullmatch(token) and f"sm_{token}" in known.targets:
        return [_target(f"sm_{token}", token, known)], at + 1
    glued = _GLUED.fullmatch(token)
    if glued and glued[1] in known.aliases:
        found, end = _versioned(known.aliases[glued[1]], token, [glued[2]], 0, known)
        # The number in triton-8473 is the number of an issue.
        return found if end else [*found, _word(glued[2], known)], at + 1
    if _VERSION.fullmatch(token) or _RANGE.fullmatch(token):
        return _number(token, known, before, after=tokens[at - 1] if at else ""), at + 1
    if token in known.ignored:
        return [], at + 1
    found = [_word(word, known) for word in words_of(token) if word not in known.ignored]
    # The t of int64_t is ignored.
    return [chip for chip in found if chip.kind == "word" or len(chip.text) > 1], at + 1


def _versioned(name: str, text: str, tokens: Sequence[str], at: int, known: Vocabulary) -> tuple[list[Chip], int]:
    """Return the chips of a name that a version can follow, and the next position."""
    version = tokens[at] if at < len(tokens) else ""
    capability = _CAPABILITY.fullmatch(version)
    if name == "cc" and capability:
        target = f"sm_{capability[1]}{capability[2]}{capability[3]}"
        return [_target(target, f"{text} {version}", known)], at + 1
    if not (_VERSION.fullmatch(version) or _RANGE.fullmatch(version)):
        return [chip for chip in (_bare(name, text, known),) if chip], at
    whole = text if text.endswith(version) else f"{text} {version}"
    return _chips_of(name, whole, version, known), at + 1


def _chips_of(name: str, text: str, version: str, known: Vocabulary) -> list[Chip]:
    tool, host = name in known.tools, name in known.hosts
    # nvcc and NVRTC have the version of their CUDA release.
    of = name if known.versions.get(name) or name == "cuda" or not tool else "cuda"
    values = tuple(
        value
        for value in known.versions.get(of, ())
        # gcc 13.2 belongs to gcc-13.
        if _fits(value, version) or (host and in_series(version.lstrip("=@v"), value))
    )
    if not values:
        near = tuple(nearest_versions(_numbers(version), known.versions.get(of, ())))
        return [Chip(kind="unknown", text=text, name=of, near=near)]
    if of == "cuda":
        release = Chip(kind="toolkit", text=text, name="cuda", values=values)
        return [Chip(kind="tool", text=text, name=name), release] if tool else [release]
    return [Chip(kind="tool" if tool else "host" if host else "header", text=text, name=name, values=values)]


def _bare(name: str, text: str, known: Vocabulary) -> Chip | None:
    """Return the chip of a name without a version. ``cuda`` alone has no chip."""
    if text in known.terms:
        return _word(text, known)
    if name in known.tools:
        return Chip(kind="tool", text=text, name=name)
    if name in known.hosts:
        return Chip(kind="host", text=text, name=name)
    return Chip(kind="header", text=text, name=name) if name not in ("cuda", "cc") else None


def _number(token: str, known: Vocabulary, before: Sequence[Chip], *, after: str) -> list[Chip]:
    """Return the chips of a bare version: of the preceding name, else of CUDA.

    `after` is the word before the version (CuPy from 12 to 13).
    """
    name = (
        before[-1].name
        if before and before[-1].kind in ("tool", "toolkit", "header", "host") and (before[-1].values or after == _FROM)
        else ""
    )
    if name:
        found = _chips_of(name, f"{name} {token}", token, known)
        if all(chip.kind != "unknown" for chip in found):
            return found
    if any(_fits(value, token) for value in known.versions.get("cuda", ())) and "." in token:
        return _chips_of("cuda", token, token, known)
    if "." in token:
        # numba cooperative launch 0.59.0
        for chip in reversed(before):
            if chip.kind in ("tool", "header") and not chip.values:
                found = _chips_of(chip.name, f"{chip.name} {token}", token, known)
                if all(each.kind != "unknown" for each in found):
                    return found
    if token.isdigit():
        return [_word(token, known)]  # part of a shape, such as 16 16 8
    return [Chip(kind="unknown", text=token, name="version")]


def _target(target: str, text: str, known: Vocabulary) -> Chip:
    if target in known.targets:
        return Chip(kind="target", text=text, name=target, values=(target,))
    number = re.sub(r"\D", "", target)
    kind = re.sub(r"\d.*", "", target)
    numbers = {re.sub(r"\D", "", item): item for item in reversed(known.targets) if item.startswith(kind)}
    near = tuple(numbers[item] for item in nearest_versions(number, list(numbers)))
    return Chip(kind="unknown", text=text, name="target", near=near)


def _word(word: str, known: Vocabulary) -> Chip:
    if any(says(word, other, known.synonyms) for other in known.words) or word in known.message_words:
        return Chip(kind="word", text=word, name=word)
    return Chip(kind="unknown", text=word, name="word", near=tuple(nearest_words(word, known.words)))


def _fits(value: str, requested: str) -> bool:
    """Return whether a version matches a request: 13 and 13.x match every 13, >=13 and 13+ also later versions, 12.4..13.0 the range."""
    numbers = version_of(value)
    if between := _RANGE.fullmatch(requested):
        return bool(numbers) and version_of(between[1]) <= numbers and (numbers <= version_of(between[2]) or in_series(value, between[2]))  # fmt: skip
    match = _VERSION.fullmatch(requested)
    if match is None or not numbers:
        return False
    sign, wanted = match[1] or "", version_of(match[2])
    if sign == ">=" or match[3] == "+":
        return numbers >= wanted
    if sign == ">":
        return numbers > wanted and not in_series(value, match[2])
    if sign == "<":
        return numbers < wanted
    if sign == "<=":
        return numbers <= wanted or in_series(value, match[2])
    return in_series(value, match[2])


def _numbers(version: str) -> str:
    match = re.search(r"\d+(?:\.\d+)*", version)
    return match[0] if match else ""
