"""Conditions of ``if()`` in CMake (https://cmake.org/cmake/help/latest/command/if.html), as far as they are known without running it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_WORD = re.compile(r'"((?:\\.|[^"\\])*)"|([()])|([^\s()"]+)')
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_FALSE = frozenset({"", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND"})
_TRUE = frozenset({"ON", "YES", "TRUE", "Y"})
_UNARY = frozenset({"COMMAND", "POLICY", "TARGET", "TEST", "EXISTS", "IS_DIRECTORY", "IS_SYMLINK", "IS_ABSOLUTE"})
_BINARY = re.compile(
    r"MATCHES|(?:STR|VERSION_|PATH_)?EQUAL|(?:STR|VERSION_)?(?:LESS|GREATER)(?:_EQUAL)?|IN_LIST|IS_NEWER_THAN"
)

# A build with CUDA on Linux.
_HERE = re.compile(r"UNIX|LINUX|(?:\w+_)?(?:CUDA|CUDAToolkit|CUDATOOLKIT|GPU|NVCC)(?:_FOUND)?")
_ELSEWHERE = re.compile(
    r"\b(?:WIN32|MSVC|MINGW|APPLE|ANDROID|HIP|ROCM|USE_ROCM|USE_HIP|Windows|Darwin|QNX|CMAKE_CROSSCOMPILING)\b"
)
_UNSAID = re.compile(r"CMAKE_\w+|PROJECT_\w+|BUILD_TESTING|\w+_FOUND")
"""Variables that CMake, or what it finds, sets."""


def holds(condition: str, names: Mapping[str, Sequence[str]]) -> bool | None:
    """Whether a condition holds in a build with CUDA on Linux whose options are as they come.

    Parameters
    ----------
    condition : str
        What stands between the parentheses of ``if()`` or ``elseif()``.
    names : mapping of str to sequence of str
        Variables that are set. One that is not is false, as in CMake, unless it asks for CUDA or CMake itself sets it.

    Returns
    -------
    bool or None
        None where only CMake knows.
    """
    return _Condition([match.groups() for match in _WORD.finditer(condition)], names).value()


class _Condition:
    def __init__(self, words: list[tuple[str | None, ...]], names: Mapping[str, Sequence[str]]) -> None:
        self.words, self.names = words, names

    def value(self, depth: int = 0) -> bool | None:
        """AND and OR from left to right, as CMake has them."""
        result = self._negated(depth)
        while self.words and (word := self._bare()) in ("AND", "OR"):
            self.words.pop(0)
            other = self._negated(depth)
            if (decisive := word == "OR") in (result, other):
                result = decisive
            else:
                result = None if None in (result, other) else not decisive
        return result

    def _negated(self, depth: int) -> bool | None:
        odd = False
        while self._bare() == "NOT":
            self.words.pop(0)
            odd = not odd
        found = self._atom(depth)
        return found if found is None else found != odd

    def _atom(self, depth: int) -> bool | None:
        if not self.words or depth > 20:
            return None
        quoted, parenthesis, word = self.words.pop(0)
        if parenthesis == "(":
            inner = self.value(depth + 1)
            if self.words and self.words[0][1] == ")":
                self.words.pop(0)
            return inner
        if word in _UNARY or word == "DEFINED":
            asked = self._take()
            if word == "DEFINED" and not _UNSAID.fullmatch(asked):
                return asked in self.names
            return True if asked in self.names else None
        if _BINARY.fullmatch(operator := self._bare() or ""):
            self.words.pop(0)
            return self._compared(word if quoted is None else quoted, operator, self._take())
        return self._said(word or "") if quoted is None else _truth(self._filled(quoted))

    def _compared(self, left: str | None, operator: str, right: str) -> bool | None:
        """Texts that are the same or not; numbers, versions and patterns are left to CMake."""
        if _ELSEWHERE.search(right):
            return False
        first = " ".join(self.names.get(left or "", [self._filled(left or "")]))
        second = self._filled(right)
        if operator not in ("STREQUAL", "EQUAL") or "${" in first + second or _UNSAID.fullmatch(first):
            return None
        return first == second

    def _said(self, word: str) -> bool | None:
        if _ELSEWHERE.fullmatch(word):
            return False
        if _HERE.fullmatch(word):
            return True
        if (alone := _truth(self._filled(word))) is not None:
            return alone
        if word in self.names:
            value = " ".join(self.names[word])
            if "${" in value:
                return None
            return value.upper() not in _FALSE and not value.upper().endswith("-NOTFOUND")
        return None if "${" in word or _UNSAID.fullmatch(word) else False

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(lambda match: " ".join(self.names.get(match[1], [match[0]])), text)

    def _bare(self) -> str | None:
        return self.words[0][2] if self.words else None

    def _take(self) -> str:
        return next((text for text in self.words.pop(0) if text is not None), "") if self.words else ""


def _truth(text: str) -> bool | None:
    """What a constant says; None for what is none."""
    if text.upper() in _FALSE or text.upper().endswith("-NOTFOUND"):
        return False
    return True if text.upper() in _TRUE or re.fullmatch(r"[1-9]\d*", text) else None
