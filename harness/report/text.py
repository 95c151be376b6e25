"""Text that came out of compilers and files, made harmless to look at."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from harness.diagnostics.text import clean, one_line

__all__ = ["clean", "natural_key", "one_line", "safe_link"]


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
