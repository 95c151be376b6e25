"""Text that came out of compilers and files, made harmless to look at."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

# ECMA-48: CSI and OSC sequences (colours, cursor, titles, hyperlinks), then the two-character ones.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]", re.S
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Marks that change the direction of what follows: a log must read as it is.
_DIRECTIONS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """Remove terminal escapes and control characters but newline and tab; show marks of direction as U+FFFD."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    return _DIRECTIONS.sub("\ufffd", _CONTROLS.sub("", text))


def one_line(text: str, limit: int = 300) -> str:
    """First `limit` characters of the cleaned text, on one line."""
    text = " ".join(clean(text).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_link(address: str) -> str:
    """Return the address when a browser may follow it (http and https), and the empty text otherwise."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    plain = not re.search(r"[\s\x00-\x20\x7f<>\"'\\]", address)
    return address if plain and parts.scheme in ("http", "https") and parts.netloc else ""


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that takes the numbers in a text for numbers."""
    return tuple(
        (0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part)
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+|[0-9]+", text)
    )
