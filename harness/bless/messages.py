"""Messages of compilers: what tells two kinds of them apart, and an expression that finds what several have in common."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import lru_cache

_QUOTED = r""""[^"]*"|'[^']*'|`[^`]*`"""
_PATH = r"(?<![\w.])(?:\$\w+|[.…~])?/[^\s:,;]+"
_HEX = r"0x[0-9a-fA-F]+"
# The tool comes before the message; the class of a Python exception is a part of the tool.
_WHO = re.compile(r"^(?!\w*(?:Error|Exception):)[\w.]+ ?: ")
_WHERE = re.compile(r" \(\w+\)$")
_TOKEN = re.compile(
    rf"(?P<space>\s*)(?:(?P<quoted>{_QUOTED})|(?P<path>{_PATH})|(?P<hex>{_HEX})|(?P<number>\b\d+\b)|(?P<word>\w+|\S))"
)
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")
_SHORT = 10
_LONG = 140
_MANGLED = 40
_ANY = {"path": r"\S+", "hex": "0x[0-9a-f]+", "number": r"\d+"}


@lru_cache(maxsize=1 << 14)
def core(message: str) -> str:
    """A message without who says it, names in quotes, paths and numbers: ``incomplete type is not allowed``."""
    text = _WHERE.sub("", message.rstrip("…"))
    while (shorter := _WHO.sub("", text)) != text:
        text = shorter
    text = re.sub(f"{_QUOTED}|{_PATH}", "", text)
    return " ".join(re.sub(rf"{_HEX}|\b\d+\b", "N", text).split())


def same_kind(one: str, other: str) -> bool:
    """Return whether the longer of two cores only adds details to the shorter one."""
    short, long_ = sorted((one, other), key=len)
    return short == long_ or (len(short) >= _SHORT and short in long_)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    """The token's text; empty if the messages differ."""
    space: str = ""
    """The text before the token: nothing, a space, or anything."""

    @property
    def key(self) -> str:
        """The part that must equal a token of another message."""
        return self.text if self.kind == "word" else self.kind

    @property
    def pattern(self) -> str:
        """As an expression."""
        return self.space + self._pattern

    @property
    def _pattern(self) -> str:
        if self.kind == "quoted":
            quote = self.text[0]
            own = self.text if len(self.text) > 2 and len(self.text) < _MANGLED and "/home/" not in self.text else ""
            return escaped(own) if own else f"{quote}[^{quote}]*{quote}"
        return escaped(self.text) if self.text and self.kind != "path" else _ANY[self.kind]


def pattern_of(messages: Sequence[str]) -> str:
    """An expression that finds all of the messages, by the words that they have in common.

    Parameters
    ----------
    messages : sequence of str
        At least one.
    """
    common = _tokens(messages[0])
    for message in messages[1:]:
        common = _common(common, _tokens(message))
    while common and common[0].kind == "word" and not common[0].text.isidentifier():
        common = common[1:]
    made = ""
    for token in common:
        if len(made) > _LONG:
            break
        made += token.pattern if made else replace(token, space="").pattern
    if common and sum(len(token.text) for token in common) >= _SHORT:
        return made
    return "|".join(escaped(message.rstrip("…")[:_LONG]) for message in messages[:8])


def _tokens(message: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(message.rstrip("…")):
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], " " if match["space"] else ""))
    return found


def _common(one: Sequence[_Token], other: Sequence[_Token]) -> list[_Token]:
    """The common tokens of two messages, in order, and whether others come between them."""
    matcher = SequenceMatcher(None, [token.key for token in one], [token.key for token in other], autojunk=False)
    found: list[_Token] = []
    ends = (0, 0)
    for mine, theirs, size in matcher.get_matching_blocks():
        for step in range(size):
            first, second = one[mine + step], other[theirs + step]
            space = first.space if first.space == second.space else r"\s*"
            if not step and ends != (mine, theirs):
                space = ".*"
            same = first.text == second.text
            empty = first.text[0] * 2 if first.kind == "quoted" else ""
            found.append(_Token(first.kind, first.text if same else empty, ".*" if first.space == ".*" else space))
        ends = (mine + size, theirs + size)
    return found


def escaped(text: str) -> str:
    """The text as RE2 finds it; what cannot be printed may be anything."""
    return "".join(each if each.isprintable() else "." for each in _SPECIAL.sub(r"\\\1", text))
