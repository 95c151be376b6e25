"""Regular expressions of users, matched by RE2 in linear time.

Python's engine backtracks, and can take hours for an expression such as ``(a+)+$``.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

_HINTS = {
    "(?=": "it has no lookahead",
    "(?!": "it has no lookahead",
    "(?<": "it has no lookbehind",
    "(?P": "it has no backreferences",
    "(?(": "it has no conditions",
    "(?>": "it has no atomic groups",
    "(?x": "it has no verbose mode",
    "(?a": "its classes are those of ASCII anyway",
    r"\Z": r"write \z",
    r"\u": r"write \x{…} for a character by its number",
}
_LONGEST = 100
_BACKREFERENCE = re.compile(r"\\[1-9]")
# Repetitions of Python that RE2 matches literally: `{,3}` and `{9999999999}`.
_REPETITION = re.compile(r"(?<!\\)(?:\\\\)*\{(?P<least>\d*)(?:,(?P<most>\d*))?\}")
_MOST = 1000


class PatternError(ValueError):
    """A text that is no RE2 expression. The message is the end of a sentence: ``is not a regular expression that …``."""


class Pattern:
    """A regular expression in RE2's syntax.

    Parameters
    ----------
    text : str
        The expression.

    Raises
    ------
    PatternError
        If RE2 does not accept the expression.
    """

    __slots__ = ("_compiled", "text")

    def __init__(self, text: str) -> None:
        for found in _REPETITION.finditer(text):
            least, most = found["least"], found["most"] or ""
            if most and not least:
                raise PatternError(_refused(f"{{,{most}}} has no lower number", f"write {{0,{most}}}"))
            if any(len(number) > len(str(_MOST)) for number in (least, most)):
                raise PatternError(_refused(f"{found[0]} repeats too often", f"at most {_MOST} times"))
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text.encode("utf-8", "replace"), options)
        except re2.error as error:
            words = error.args[0].decode("utf-8", "replace")
            raise PatternError(_refused(_shortened(words), _hint(words))) from None
        self.text = text

    def found_in(self, text: str) -> bool:
        """Return whether some part of `text` matches."""
        return self._compiled.search(text.encode("utf-8", "replace")) is not None


@lru_cache(maxsize=512)
def pattern(text: str) -> Pattern:
    """Compile an expression; the result is cached. See `Pattern`."""
    return Pattern(text)


def _refused(words: str, hint: str) -> str:
    return f"is not a regular expression that RE2 accepts: {words}" + (f" ({hint})" if hint else "")


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _hint(words: str) -> str:
    suggestion = words.rpartition(": ")[2]
    if _BACKREFERENCE.match(suggestion):
        return "it has no backreferences"
    return next((hint for start, hint in _HINTS.items() if suggestion.startswith(start)), "")
