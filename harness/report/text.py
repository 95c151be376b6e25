"""Text that came out of compilers and files, made harmless to look at."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from harness.protocol.text import clean, one_line

__all__ = ["clean", "one_line", "safe_link"]


def safe_link(address: str) -> str:
    """Return the address when a browser may follow it (http and https), and the empty text otherwise."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    plain = not re.search(r"[\s\x00-\x20\x7f<>\"'\\]", address)
    return address if plain and parts.scheme in ("http", "https") and parts.netloc else ""
