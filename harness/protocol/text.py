"""Escaping of hostile text in the output of compilers and cases."""

from __future__ import annotations

import re

# ECMA-48: CSI and OSC sequences (colours, cursor, titles, hyperlinks), then two-character sequences.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
# Control characters except tab and newline, and Unicode characters that reorder or hide text.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

# Commands to a CI: GitHub's `::error::` at the start of a line and `##[error]` anywhere in it
# (https://docs.github.com/actions/reference/workflow-commands-for-github-actions), Azure's `##vso[`, TeamCity's
# `##teamcity[`.
_COMMANDS = re.compile(r"^(?:[^\S\n]|\x1b\[[0-9;?]*[A-Za-z])*:(?=:)|#(?=#(?:vso|teamcity)?\[)", re.MULTILINE)


def clean(text: str) -> str:
    """Remove escape sequences and replace control characters; the result is safe in a terminal and in JSON."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text).encode("utf-8", "replace").decode("utf-8")


def decoded(data: bytes) -> str:
    """Decode a program's text as UTF-8, or as Latin-1, which accepts every byte and which compilers also accept."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def one_line(text: str, limit: int = 500) -> str:
    """Return the cleaned text on one line, cut at `limit` characters."""
    text = " ".join(clean(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def no_command(text: str) -> str:
    """Insert a space into texts that a CI would execute as commands: ``: :error::x``."""
    return _COMMANDS.sub(r"\g<0> ", text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Format a number of things: ``1 case``, ``1,234 cases``, ``2 libraries``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def safe_link(address: str) -> str:
    """Return the address if a browser may follow it (http and https); otherwise an empty string."""
    from urllib.parse import urlsplit  # imported late: workers do not read addresses

    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    plain = not re.search(r"[\s\x00-\x20\x7f<>\"'\\]", address)
    return address if plain and parts.scheme in ("http", "https") and parts.netloc else ""
